"""Pictures of the page and of the terminal, made by a story that is always the same: `python -m tools.shots`."""
