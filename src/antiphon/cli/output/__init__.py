"""Output: how turns, questions and sessions are shown on a terminal, as plain text or as JSON."""
