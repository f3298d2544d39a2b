"""HTTP/1.1 and server-sent events, without knowledge of ACP methods."""
