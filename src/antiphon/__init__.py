"""Antiphon: the Python runtime for Agent Client Protocol sessions. One session, many voices."""
