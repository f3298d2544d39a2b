"""The methods that clients call, by topic. `table` lists them all."""
