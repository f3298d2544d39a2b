"""The wire format per protocol version: types, the method table, the codec. No I/O, no behaviour."""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.schema.version import META_KEY, ours_in
    from antiphon.schema.wire import UNSET, Unknown

__all__ = [
    "META_KEY", "UNSET", "Unknown", "ours_in",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "version": ("META_KEY", "ours_in"),
    "wire": ("UNSET", "Unknown"),
})  # fmt: skip
