"""The `initialize` request of a client: both versions in one request."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from antiphon.errors import LocalError
from antiphon.schema.version import META_KEY, V1, V2, VERSIONS, Extras, OptIns

SESSION_ABLE: dict[str, Any] = {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}}
"""What a v1 agent has to know that this client takes (INIT-18, CONF-V1-06, NOTE-01, COMP-01). In v2 every
client does."""


class ClientOffer(Struct, frozen=True, kw_only=True):
    """What a client offers to an agent."""

    name: str
    client_version: str
    client_id: str
    version: int | None
    """The only version that it accepts; None accepts both."""
    proposed: bool
    """Whether to ask for v2 as first proposed."""
    opt_ins: OptIns
    extras: Extras
    elicitation: dict[str, Any]
    workspace: dict[str, Any]
    terminal_login: bool


def initialize_params(offer: ClientOffer) -> dict[str, Any]:
    """The params of `initialize`. The shape of the answer decides on the version."""
    ours = offer.extras.to_meta()
    info = {"name": offer.name, "version": offer.client_version}
    params: dict[str, Any] = {
        "protocolVersion": V1 if offer.version == V1 else V2,
        "clientInfo": info,
        "clientCapabilities": {
            **offer.elicitation,
            **offer.workspace,
            "session": SESSION_ABLE,
            "subagents": {},  # SUB-01
            **({"auth": {"terminal": True}} if offer.terminal_login else {}),
            "_meta": {META_KEY: {**ours, **offer.opt_ins.to_meta()}},
        },
    }
    if offer.version != V1:
        able = {**offer.elicitation, "_meta": {META_KEY: ours}}
        if offer.terminal_login:
            able["auth"] = {"terminal": {}}
        params |= {"info": info, "capabilities": able}
    dialect = {"dialect": "proposed"} if offer.proposed else {}
    params["_meta"] = {META_KEY: {"clientId": offer.client_id, **dialect}}
    return params


def version_number(version: int | str | None) -> int | None:
    """Return the number of the only version to accept; None for any. Raises `LocalError`."""
    if version == "v2-proposed":
        return V2
    if version is not None and version not in VERSIONS:
        raise LocalError(f"version must be 1, 2 or 'v2-proposed', got {version!r}")
    return None if version is None else int(version)
