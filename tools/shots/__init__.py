"""Pictures and a recording of page and terminal. They show a scripted agent: `python -m tools.shots`."""
