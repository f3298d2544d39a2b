"""Whatever is in the files of a data folder: it is refused or ignored, and never an unexpected exception."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from antiphon.errors import LocalError
from antiphon.hub import HubFolder
from antiphon.hub.access.tokens import Tokens, create_token
from antiphon.hub.upstream.known_agents import KnownAgents
from antiphon.server.method import Role
from antiphon.tui.history import History

GARBAGE = {
    "nothing": b"",
    "no UTF-8": b"\xff\xfe",
    "zeros": b"\0" * 64,
    "open arrays": b"[" * 100_000,
    "open objects": b'{"a":' * 100_000,
    "a large number": b'{"url":"","acp":"","token":"","pid":1' + b"0" * 30 + b"}",
    "a hash that is not ASCII": '[{"name":"a","hash":"\u00e9","role":"owner","id":"x","created":1}]'.encode(),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_in_any_file_is_refused_or_ignored(garbage: bytes, tmp_path: Path) -> None:
    folder = HubFolder(tmp_path)
    for name in ("token", "mark", "hub.json", "tokens.json", "agents.json", "history"):
        (tmp_path / name).write_bytes(garbage)
        (tmp_path / name).chmod(0o600)
    with suppress(LocalError):
        assert folder.token.isascii()
        assert folder.token.isprintable()
    assert isinstance(folder.mark, str)
    assert folder.running() is None
    assert Tokens("own", folder.tokens).find("secret") is None
    assert KnownAgents(folder.known_agents, {}).get("a") is None
    assert History(tmp_path / "history").previous("draft") is None


def test_a_token_works_beside_one_whose_hash_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    create_token(file, "ann", Role.OBSERVER)
    secret = create_token(file, "bob", Role.OBSERVER)
    content = file.read_bytes()
    at = content.index(b'"hash":"') + 8
    file.write_bytes(content[:at] + b"\xc3\xa9" + content[at + 2 :])
    found = Tokens("own", file).find(secret)
    assert found is not None
    assert found.name == "bob"
