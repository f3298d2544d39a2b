"""What Antiphon is tested with, shipped for whoever builds on it: contracts as functions."""

from antiphon.testing.stores import check_damaged_store, check_shared_store, check_store
from antiphon.testing.transports import check_transport

__all__ = ["check_damaged_store", "check_shared_store", "check_store", "check_transport"]
