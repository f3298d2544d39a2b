"""What Antiphon is tested with, shipped for whoever builds on it: contracts as functions."""

from antiphon.testing.transports import check_transport

__all__ = ["check_transport"]
