"""Translation of v2 to v1."""
