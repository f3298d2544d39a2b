"""What a v1 peer says, as v2 says it."""
