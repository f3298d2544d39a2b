"""Live sessions: the engine's fold, the store's journal, and whoever follows them."""
