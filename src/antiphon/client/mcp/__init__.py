"""MCP servers that a client offers to its agent over ACP."""
