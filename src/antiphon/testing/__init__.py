"""The contracts of transports and stores as functions, for tests of other implementations."""

from antiphon.testing.store_searches import check_search
from antiphon.testing.stores import check_damaged_store, check_shared_store, check_store
from antiphon.testing.transports import check_transport

__all__ = ["check_damaged_store", "check_search", "check_shared_store", "check_store", "check_transport"]
