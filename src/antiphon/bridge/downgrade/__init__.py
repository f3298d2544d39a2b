"""What a v2 peer says, as v1 says it."""
