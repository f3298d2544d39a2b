"""Scenarios for v2 agents."""
