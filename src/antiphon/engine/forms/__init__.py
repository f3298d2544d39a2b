"""Forms of elicitations: their fields, and the patterns that text fields may have."""
