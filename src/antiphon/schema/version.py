"""Versions and dialects, and how two peers agree on one.

Pure functions over the params and the result of `initialize`, as plain JSON values: these functions find out
which shape they have (section 2 of the catalogue, INIT).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct, structs, to_builtins

from antiphon.errors import InvalidParams, InvalidRequest, RemoteError, UnsupportedVersion, one_line

V1 = 1
V2 = 2
VERSIONS: tuple[int, ...] = (V1, V2)
META_KEY = "antiphon"
UNKNOWN_IMPLEMENTATION: Mapping[str, str] = {"name": "unknown", "version": "unknown"}
_UINT16 = 0xFFFF


class Dialect(StrEnum):
    """How updates are written on one connection. Readers accept every dialect."""

    V1 = "v1"
    V2 = "v2"
    V2_PROPOSED = "v2-proposed"


class OptIns(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Opt-ins of a v1 client, under `_meta["antiphon"]` of its capabilities."""

    turn_complete: bool = False
    """The update `turn_complete`, once per prompt request, last of its turn, before the response. Also
    announced as `sessionCapabilities.turnComplete: {}`."""
    prompt_lifecycle: bool = False
    """v1 shapes with v2's lifecycle. A prompt is answered at insertion with `{messageId}`; `user_message` and
    `state_update` are sent, and `turn_complete` is not. If a client asks for both, `turnComplete` is not
    confirmed."""
    message_update: bool = False
    """A message that is changed by its id is sent as `message_update {messageId, updateType, content}`: see
    Messages by id."""

    def __and__(self, other: OptIns) -> OptIns:
        return _both(self, other)

    def consistent(self) -> OptIns:
        """Return the opt-ins that take effect: `prompt_lifecycle` excludes `turn_complete`, because state
        updates report the end of a turn."""
        return structs.replace(self, turn_complete=self.turn_complete and not self.prompt_lifecycle)

    def to_meta(self) -> dict[str, Any]:
        """Return the flags for the wire, in a request and in its confirmation."""
        meta: dict[str, Any] = to_builtins(self)
        return meta | ({"promptLifecycle": 2} if self.prompt_lifecycle else {})

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> OptIns:
        return _flags(cls, {**meta, "promptLifecycle": meta.get("promptLifecycle") == 2})


class Extras(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Extensions that any client may ask for, in the same place. All are optional."""

    queue_updates: bool = False
    """`_antiphon_queue` updates: the queue, after each change."""
    seq: bool = False
    """Updates have the number of their journal event, to resume after it."""
    presence: bool = False
    """`_antiphon_presence` and `_antiphon_question` updates: which clients are attached, and which of them
    answered a question."""
    session_updates: bool = False
    """`_antiphon/sessions` notifications of a hub: sessions that were added, changed or deleted."""
    annotations: bool = False
    """`_antiphon_annotation` updates, and the methods that add and remove annotations of messages."""
    message_deleted: bool = False
    """`_antiphon_message_deleted` updates, after the upsert that empties a deleted message."""
    prompt_ids: bool = False
    """In v2 as first proposed: the result of a prompt has the message id in `_meta["antiphon"]`."""

    def __and__(self, other: Extras) -> Extras:
        return _both(self, other)

    def to_meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = to_builtins(self)
        return meta

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Extras:
        return _flags(cls, meta)


_Flags = TypeVar("_Flags", OptIns, Extras)


def _both(one: _Flags, other: _Flags) -> _Flags:
    return type(one)(*(a and b for a, b in zip(structs.astuple(one), structs.astuple(other), strict=True)))


def _flags(type: type[_Flags], meta: Mapping[str, Any]) -> _Flags:
    return type(**{field.name: meta.get(field.encode_name) is True for field in structs.fields(type)})


EXTRAS = Extras(
    queue_updates=True, seq=True, presence=True, annotations=True, message_deleted=True, prompt_ids=True
)
"""The extras of every Antiphon agent."""


class Agreement(Struct, frozen=True):
    """The version, dialect and flags of a connection after `initialize` (INIT-07)."""

    version: int
    dialect: Dialect
    opt_ins: OptIns = OptIns()
    extras: Extras = Extras()


def choose_version(requested: int, supported: Sequence[int] = VERSIONS) -> int:
    """Return the version that an agent answers with, always one that it supports (INIT-04)."""
    if max(supported) < V2:
        # INIT-02, INIT-05: a v1 agent answers with the requested version or its latest, and never fails.
        return requested if requested in supported else max(supported)
    fitting = [version for version in supported if version <= requested]
    if not fitting:
        raise UnsupportedVersion(requested, sorted(supported))  # INIT-03
    return max(fitting)


def requested_version(params: Any) -> int:
    """Return the version that `initialize` asks for (INIT-01: a uint16)."""
    version = params.get("protocolVersion") if isinstance(params, Mapping) else None
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version <= _UINT16:
        given = one_line(repr(version), limit=60)
        raise InvalidParams(f"`protocolVersion` must be an integer from 0 to 65535, got {given}")
    return version


class Offer(Struct, frozen=True):
    """A decoded `initialize` request, before the agent decides about its result."""

    version: int
    params: dict[str, Any]
    """The params, prepared for decoding in `version`."""
    exact: bool
    """Whether the client asked for exactly `version`: its params are then decoded strictly (INIT-09)."""
    wanted: OptIns
    proposed: bool
    extras: Extras = Extras()

    def agree(self, able: OptIns | None = None, extras: Extras | None = None) -> Agreement:
        """Return the agreement with an agent that supports the opt-ins `able` and these extras."""
        given = self.extras & (extras or Extras())
        if self.version == V1:
            return Agreement(V1, Dialect.V1, (self.wanted & (able or OptIns())).consistent(), given)
        return Agreement(V2, Dialect.V2_PROPOSED if self.proposed else Dialect.V2, extras=given)


def read_offer(params: Any, *, supported: Sequence[int] = VERSIONS, selected: int | None = None) -> Offer:
    """Choose the version for an `initialize` request. `selected` is set when it is a repeat.

    Raises `InvalidParams`, `InvalidRequest` (INIT-27) or `UnsupportedVersion`.
    """
    requested = requested_version(params)
    if selected is not None and requested < selected:
        raise InvalidRequest(
            f"a repeated initialize must ask for at least version {selected}, got {requested}"
        )
    version = choose_version(requested, supported)
    exact = requested == version
    params = dict(params)
    if version == V2 and not exact and not _is_implementation(params.get("info")):
        params["info"] = dict(UNKNOWN_IMPLEMENTATION)  # INIT-09
    return Offer(
        version=version,
        params=params,
        exact=exact,
        wanted=OptIns.from_meta(_ours(params.get("clientCapabilities"))),
        proposed=_ours(params).get("dialect") == "proposed",
        extras=Extras.from_meta(_ours(params.get("clientCapabilities" if version == V1 else "capabilities"))),
    )


def read_answer(result: Any, *, supported: Sequence[int] = VERSIONS) -> Agreement:
    """Return the agreement of an `initialize` result, by its version number and its shape.

    Some v1 agents answer with the requested number, which is never above 2, and continue in v1. An agent
    speaks v2 only if its result also has v2's shape (`info`, which INIT-13 requires). Raises `RemoteError`
    for any other version, also in v1's shape (INIT-06).
    """
    if not isinstance(result, Mapping):
        raise RemoteError(
            f"the result of initialize must be an object, got {one_line(repr(result), limit=60)}"
        )
    answered = result.get("protocolVersion")
    v2_shape = _is_implementation(result.get("info"))
    version = V1 if answered == V2 and not v2_shape else answered
    if isinstance(version, bool) or version not in supported:
        raise RemoteError(
            f"the agent answered protocol version {answered!r}; supported here: "
            + ", ".join(map(str, supported))
        )
    if version == V1:
        confirmed = _ours(result.get("agentCapabilities"))
        opt_ins = OptIns.from_meta(confirmed).consistent()
        return Agreement(V1, Dialect.V1, opt_ins, Extras.from_meta(confirmed))
    proposed = _ours(result).get("dialect") == "proposed"
    extras = Extras.from_meta(_ours(result.get("capabilities")))
    return Agreement(V2, Dialect.V2_PROPOSED if proposed else Dialect.V2, extras=extras)


def _ours(holder: Any) -> Mapping[str, Any]:
    """Return the `_meta["antiphon"]` of an object, or `{}`."""
    return ours_in(holder.get("_meta") if isinstance(holder, Mapping) else None)


def ours_in(meta: Any) -> Mapping[str, Any]:
    """Return the object under Antiphon's key of a `_meta`, or `{}`."""
    ours = meta.get(META_KEY) if isinstance(meta, Mapping) else None
    return ours if isinstance(ours, Mapping) else {}


def with_ours(meta: Any, **added: Any) -> dict[str, Any]:
    """Return a `_meta` with keys added under Antiphon's key."""
    return {**(meta or {}), META_KEY: {**ours_in(meta), **added}}


def without_ours(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a `_meta` without Antiphon's key; `None` if it is then empty."""
    return {key: value for key, value in (meta or {}).items() if key != META_KEY} or None


def _is_implementation(info: Any) -> bool:
    return isinstance(info, Mapping) and all(
        isinstance(info.get(key), str) and info[key] for key in ("name", "version")
    )
