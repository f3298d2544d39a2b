"""Translation of v1 to v2."""
