"""Sessions that another server owns, and the other servers as a registry sees them."""
