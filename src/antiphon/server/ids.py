"""Ids that this side makes."""

from __future__ import annotations

import secrets


def new_id(kind: str) -> str:
    """Return a unique id that begins with what it is the id of."""
    return f"{kind}_{secrets.token_hex(12)}"
