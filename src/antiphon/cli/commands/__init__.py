"""Command lines: arguments, options and help. The work of a command is loaded when it is called."""
