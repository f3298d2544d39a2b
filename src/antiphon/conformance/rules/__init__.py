"""Rules: pure functions over the recording of one connection. They judge any traffic, whoever caused it."""
