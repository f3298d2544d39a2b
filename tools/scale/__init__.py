"""A cluster on paper: placement, takeover storms and fan-out, simulated with measured costs."""
