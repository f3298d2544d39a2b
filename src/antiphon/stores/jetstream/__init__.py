"""Sessions in NATS JetStream, shared by several hosts: journals, snapshots, the list of sessions, claims."""
