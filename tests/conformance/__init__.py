"""The judge: good peers pass, each broken one fails for exactly its requirement."""
