"""Short ways to write v2 updates in tests, and the check every v1 update has to pass."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from antiphon.bridge.downgrade import Downgrade
from antiphon.bridge.losses import Loss
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


def permission(**fields: Any) -> v2.RequestPermissionRequest:
    """A permission request, read from JSON."""
    raw = msgspec.json.encode({"sessionId": "s", **fields})
    made: v2.RequestPermissionRequest = codec(2).params(Kind.REQUEST, "session/request_permission", raw)
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
