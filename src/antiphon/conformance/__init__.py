"""What the Agent Client Protocol asks of agents, clients and proxies, as data."""
