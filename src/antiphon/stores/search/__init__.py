"""Search over the contents of sessions: an optional part of a store, and what stores share for it."""
