"""Scenarios for hubs: the judge plays several clients, and the agent behind a hub that it starts itself."""
