"""Alerts: what happens in sessions that a person wants to hear of, sent to where that person is."""
