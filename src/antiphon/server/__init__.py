"""The server: it serves sessions to ACP clients. A worker does the work of each session."""
