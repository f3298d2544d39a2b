"""Live sessions: the fold of the engine, the journal of the store, and the attachments that follow them."""
