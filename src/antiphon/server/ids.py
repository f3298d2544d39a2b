"""Ids that this side makes."""

from __future__ import annotations

import hashlib
import secrets

from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import OperationMeta
from antiphon.schema.antiphon.readers import read_meta

Wanted = v2.NewSessionRequest | v2.ForkSessionRequest
"""A request for a session that is to be made."""


def new_id(kind: str) -> str:
    """Return a unique id that begins with what it is the id of."""
    return f"{kind}_{secrets.token_hex(12)}"


def session_id_of(wanted: Wanted) -> str:
    """Return the id of a new session. Under an operation id it is made from that: so the store alone decides
    whether the session is there, also after a restart."""
    operation_id = read_meta(OperationMeta, wanted.meta).operation_id
    if operation_id is None:
        return new_id("sess")
    source = wanted.session_id if isinstance(wanted, v2.ForkSessionRequest) else ""
    named = hashlib.sha256(f"{source}\n{operation_id}".encode())
    return f"sess_{named.hexdigest()[:24]}"
