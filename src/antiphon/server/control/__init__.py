"""What clients ask of a session: operations, and who performs them."""
