"""The server: it serves sessions to ACP clients, whoever does the work of the sessions."""
