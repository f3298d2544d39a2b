"""Several hubs on one store: which of them owns a session, and how the others reach it."""
