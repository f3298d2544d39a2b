"""Short ways to write updates in tests, and the checks that every update has to pass that a bridge makes."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from antiphon.bridge.downgrade.session import Downgrade
from antiphon.bridge.losses import Loss
from antiphon.bridge.upgrade.session import Upgrade
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.wire import choose

_strict = msgspec.json.Decoder(v1.SessionNotification, dec_hook=choose)


def update(tag: str, **fields: Any) -> Any:
    """A v2 update, read from JSON as a peer would send it. `_meta` is written `meta`."""
    if "meta" in fields:
        fields["_meta"] = fields.pop("meta")
    return read({"sessionUpdate": tag, **fields})


def read(raw: dict[str, Any]) -> Any:
    params = codec(2).encode({"sessionId": "s", "update": raw})
    return codec(2).params(Kind.NOTIFICATION, "session/update", params).update


def v1_update(tag: str, **fields: Any) -> Any:
    """A v1 update, read from JSON as a peer would send it. `_meta` is written `meta`."""
    if "meta" in fields:
        fields["_meta"] = fields.pop("meta")
    return read_v1({"sessionUpdate": tag, **fields})


def read_v1(raw: dict[str, Any]) -> Any:
    params = codec(1).encode({"sessionId": "s", "update": raw})
    return codec(1).params(Kind.NOTIFICATION, "session/update", params).update


def permission(**fields: Any) -> v2.RequestPermissionRequest:
    """A permission request, read from JSON."""
    raw = msgspec.json.encode({"sessionId": "s", **fields})
    made: v2.RequestPermissionRequest = codec(2).params(Kind.REQUEST, "session/request_permission", raw)
    return made


def elicitation(properties: dict[str, Any], **fields: Any) -> v2.ElicitationFormMode:
    """A form that is asked for, read from JSON."""
    schema = {"type": "object", "properties": properties}
    asked = {"mode": "form", "sessionId": "s", "message": "?", "requestedSchema": schema, **fields}
    made: v2.ElicitationFormMode = codec(2).params(Kind.REQUEST, "elicitation/create", codec(2).encode(asked))
    return made


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def shown(words: str, **fields: Any) -> dict[str, Any]:
    """A tool call's content item."""
    return {"type": "content", "content": text(words), **fields}


def b64(data: str | bytes) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def plain(sent: Any) -> Any:
    """A wire value as the JSON it goes out as."""
    return msgspec.json.decode(sent if isinstance(sent, bytes) else msgspec.json.encode(sent))


def check_v1(sent: Any) -> dict[str, Any]:
    """Every v1 update decodes strictly in v1 and means the same when written again."""
    raw = sent if isinstance(sent, bytes) else msgspec.json.encode(sent)
    read_back = _strict.decode(b'{"sessionId":"s","update":%b}' % raw)
    assert plain(read_back.update) == plain(raw)
    return dict(plain(raw))


def check_v2(sent: Any) -> dict[str, Any]:
    """Every v2 update reads back in v2 as what it is."""
    raw = plain(sent)
    assert read(raw) == sent
    return dict(raw)


class Up:
    """An upgrade under test: takes JSON or typed values, gives JSON, and keeps the losses."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.lost: list[str] = []
        self.machine = Upgrade(*args, report=self._report, **kwargs)

    def _report(self, loss: Loss, original: Any) -> None:
        self.lost.append(loss.name)

    def feed(self, *updates: Any) -> list[dict[str, Any]]:
        return self.told(lifted for given in updates for lifted in self.machine.update(given))

    def prompted(self, request: Any, words: str = "go", **fields: Any) -> list[dict[str, Any]]:
        return self.told(self.machine.prompted(request, [v2.TextContent(text=words)], **fields))

    def responded(self, request: Any, reason: str = "end_turn", **fields: Any) -> list[dict[str, Any]]:
        result = codec(1).result("session/prompt", msgspec.json.encode({"stopReason": reason, **fields}))
        return self.told(self.machine.responded(request, result))

    def told(self, lifted: Iterable[Any]) -> list[dict[str, Any]]:
        return [check_v2(each) for each in lifted]


class Down:
    """A downgrade under test: gives JSON, and keeps the losses."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.lost: list[str] = []
        self.machine = Downgrade(*args, report=self._report, **kwargs)

    def _report(self, loss: Loss, original: Any) -> None:
        self.lost.append(loss.name)

    def feed(self, *updates: Any) -> list[dict[str, Any]]:
        return [check_v1(sent) for given in updates for sent in self.machine.apply(given)]

    def flush(self) -> list[dict[str, Any]]:
        return [check_v1(sent) for sent in self.machine.flush()]


def capabilities(**fields: Any) -> v1.ClientCapabilities:
    return msgspec.convert(fields, v1.ClientCapabilities)


def originals(sent: Iterable[Any]) -> list[Any]:
    """Every original that travels in what was sent, wherever it is."""
    found: list[Any] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            meta = value.get("_meta")
            if isinstance(meta, dict) and "acp.bridge/original" in meta:
                found.append(meta["acp.bridge/original"])
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(list(sent))
    return found
