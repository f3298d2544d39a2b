"""Fuzzing: everything that comes in over a socket, a pipe or a file, changed at random.

One module per target. A target has `SEEDS`, `WORDS` and `opened()`, a context manager that gives a check. The
check takes an input as bytes and says in a word what came of it. Whatever it raises is a crash.
"""
