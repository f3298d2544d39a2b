"""Versions and dialects: which ones there are, and how two peers come to agree on one.

Pure functions over the params and the result of `initialize`, as plain JSON values: what shape they have
is exactly what has to be found out here (section 2 of the catalogue, INIT).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct, structs, to_builtins

from antiphon.errors import InvalidParams, InvalidRequest, RemoteError, UnsupportedVersion

V1 = 1
V2 = 2
VERSIONS: tuple[int, ...] = (V1, V2)
META_KEY = "antiphon"
UNKNOWN_IMPLEMENTATION: Mapping[str, str] = {"name": "unknown", "version": "unknown"}
_UINT16 = 0xFFFF


class Dialect(StrEnum):
    """How updates are written on one connection. Readers understand every spelling always."""

    V1 = "v1"
    V2 = "v2"
    V2_PROPOSED = "v2-proposed"


class OptIns(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a v1 client may ask for beyond plain v1, under `_meta["antiphon"]` of its capabilities."""

    turn_complete: bool = False
    """The update `turn_complete`, once per prompt request, last of its turn, before the response. Also
    announced as `sessionCapabilities.turnComplete: {}`."""
    prompt_lifecycle: bool = False
    """v1 shapes with v2's lifecycle. A prompt is answered at insertion with `{messageId}`;
    `user_message` and `state_update` are sent, and no `turn_complete`: a client that asks for both gets this
    one, and `turnComplete` is not confirmed."""
    message_update: bool = False
    """A message changed by its id comes as `message_update {messageId, updateType, content}`: see Messages
    by id."""

    def __and__(self, other: OptIns) -> OptIns:
        return _both(self, other)

    def consistent(self) -> OptIns:
        """The opt-ins as they take effect together: `prompt_lifecycle` rules out `turn_complete`, because the
        state updates already report the end of a turn."""
        return structs.replace(self, turn_complete=self.turn_complete and not self.prompt_lifecycle)

    def to_meta(self) -> dict[str, Any]:
        """As it stands on the wire, in a request and in its confirmation."""
        meta: dict[str, Any] = to_builtins(self)
        return meta | ({"promptLifecycle": 2} if self.prompt_lifecycle else {})

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> OptIns:
        return _flags(cls, {**meta, "promptLifecycle": meta.get("promptLifecycle") == 2})


class Extras(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What any client may ask for beyond its version, in the same place; every plain client goes without."""

    queue_updates: bool = False
    """`_antiphon_queue` updates: the queue, whenever it changes."""
    seq: bool = False
    """Updates carry the number of their event in the journal, to resume after it."""
    presence: bool = False
    """`_antiphon_presence` and `_antiphon_question` updates: which clients are attached, and which of them
    answered a question."""
    session_updates: bool = False
    """`_antiphon/sessions` notifications of a hub: which of its sessions came, changed or were deleted."""
    annotations: bool = False
    """`_antiphon_annotation` updates, and the methods that add and remove annotations of messages."""
    message_deleted: bool = False
    """`_antiphon_message_deleted` updates, behind the upsert that empties a deleted message."""
    prompt_ids: bool = False
    """In v2 as first proposed: the answer to a prompt names its message under our key, and is not `{}`."""

    def __and__(self, other: Extras) -> Extras:
        return _both(self, other)

    def to_meta(self) -> dict[str, Any]:
        return to_builtins(self)  # type: ignore[no-any-return]

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
"""What every agent of ours gives."""


class Agreement(Struct, frozen=True):
    """What both ends of a connection speak after `initialize` (INIT-07)."""

    version: int
    dialect: Dialect
    opt_ins: OptIns = OptIns()
    extras: Extras = Extras()


def choose_version(requested: int, supported: Sequence[int] = VERSIONS) -> int:
    """The version an agent answers with. Never an echo of what it does not speak (INIT-04)."""
    if max(supported) < V2:
        # INIT-02, INIT-05: a v1 agent answers the asked version or its latest, and never fails.
        return requested if requested in supported else max(supported)
    fitting = [version for version in supported if version <= requested]
    if not fitting:
        raise UnsupportedVersion(requested, sorted(supported))  # INIT-03
    return max(fitting)


def requested_version(params: Any) -> int:
    """The version an `initialize` asks for (INIT-01: a uint16)."""
    version = params.get("protocolVersion") if isinstance(params, Mapping) else None
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version <= _UINT16:
        raise InvalidParams("`protocolVersion` must be an integer from 0 to 65535")
    return version


class Offer(Struct, frozen=True):
    """What an agent made of an `initialize` request before it decides what to answer."""

    version: int
    params: dict[str, Any]
    """The params, fit to be decoded in `version`."""
    exact: bool
    """Whether that very version was asked for: then its params are held to it strictly (INIT-09)."""
    wanted: OptIns
    proposed: bool
    extras: Extras = Extras()

    def agree(self, able: OptIns | None = None, extras: Extras | None = None) -> Agreement:
        """The agreement with an agent that can give `able` of the opt-ins, and these extras."""
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
        raise InvalidRequest(f"a repeated initialize must ask for at least version {selected}")
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
    """What an `initialize` result agrees to, by its number and its shape.

    Some v1 agents answer any number with the same number and go on in v1: only one that also answers in
    v2's shape (`info`, required there by INIT-13) speaks v2. Raises where it speaks nothing we do (INIT-06).
    """
    if not isinstance(result, Mapping):
        raise RemoteError("the answer to initialize is no object")
    answered = result.get("protocolVersion")
    v2_shape = _is_implementation(result.get("info"))
    v1_shape = bool(result.keys() & {"agentInfo", "agentCapabilities"}) and not v2_shape
    version = answered
    if (answered == V2 and not v2_shape) or (answered not in supported and v1_shape):
        version = V1
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
    """The `_meta["antiphon"]` of an object, or nothing."""
    return ours_in(holder.get("_meta") if isinstance(holder, Mapping) else None)


def ours_in(meta: Any) -> Mapping[str, Any]:
    """What stands under our own key of a `_meta`."""
    ours = meta.get(META_KEY) if isinstance(meta, Mapping) else None
    return ours if isinstance(ours, Mapping) else {}


def with_ours(meta: Any, **said: Any) -> dict[str, Any]:
    """A `_meta` with this under our own key, beside what stands there."""
    return {**(meta or {}), META_KEY: {**ours_in(meta), **said}}


def without_ours(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A `_meta` without what is under our own key; `None` where nothing is left."""
    return {key: value for key, value in (meta or {}).items() if key != META_KEY} or None


def _is_implementation(info: Any) -> bool:
    return isinstance(info, Mapping) and all(
        isinstance(info.get(key), str) and info[key] for key in ("name", "version")
    )
