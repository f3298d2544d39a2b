"""Public names that a module imports only when they are used: start-up stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(module: str, sources: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module. `sources`: names by the module that defines them, in full or
    relative to `module`."""
    source_of = {name: source for source, names in sources.items() for name in names}

    def find(name: str) -> Any:
        if name not in source_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        source = source_of[name]
        full = source if source.startswith("antiphon.") else f"{module}.{source}"
        value = getattr(import_module(full), name)
        setattr(sys.modules[module], name, value)
        return value

    return find
