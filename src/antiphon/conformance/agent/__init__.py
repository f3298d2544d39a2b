"""Scenarios for agents: the judge plays the client."""
