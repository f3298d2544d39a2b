"""The folders and files of the hub's machine that clients choose from."""
