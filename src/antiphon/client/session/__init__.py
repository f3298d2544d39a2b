"""One session of an agent, as a client uses it."""
