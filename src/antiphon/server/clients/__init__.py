"""The clients of a server: which of them are attached to which session, and how they come and go."""
