"""The worker of a hub session: its work is done by an agent behind the hub."""
