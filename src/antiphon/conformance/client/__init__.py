"""Scenarios for clients: the judge plays the agent."""
