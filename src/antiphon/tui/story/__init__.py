"""The story of a session: the entries of its transcript, and the window of them that is laid out."""
