"""JSON-RPC 2.0 without I/O and without ACP: frames, lines, and the peer that keeps both id spaces."""
