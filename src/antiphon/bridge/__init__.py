"""v1 and v2 to each other, and one session written in every dialect: pure state machines, no I/O."""
