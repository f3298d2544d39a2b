"""A hub in the terminal: its start, its links and its tokens."""
