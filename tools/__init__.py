"""Tools that build the project; nothing here is shipped."""
