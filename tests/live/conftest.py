from tests.stores.conftest import apart, nats

__all__ = ["apart", "nats"]
