"""Child processes: agents over stdio, and commands with their output."""
