"""Web Push: alerts for browsers whose page is closed, with buttons that answer a question."""
