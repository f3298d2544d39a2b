"""Pictures of page and terminal, made by a story that is always the same: `python -m tools.shots`."""
