"""The agents behind a hub: their processes, and what is exchanged with them outside of a session's work."""
