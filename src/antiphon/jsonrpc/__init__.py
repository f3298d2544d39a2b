"""JSON-RPC 2.0 without I/O and without ACP: frames, lines, and the peer with both id spaces."""
