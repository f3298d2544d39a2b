"""Access to a hub: tokens, roles, tickets, cookies, limits, the audit log, and the admission of
connections."""
