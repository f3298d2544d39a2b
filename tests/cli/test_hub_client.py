"""Commands that wait for a hub whose agent is still starting say so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli.acp import EditorRelay
from antiphon.cli.commands.options import HubPlace
from antiphon.cli.hub_client import AT_A_HUB, noted_wait, open_client
from antiphon.transports.memory import memory_pair
from tests.agent.talk import INFO
from tests.hub.doors import doors
from tests.hub.parrots import parrot
from tests.hub.test_known_agents import close_gate, open_gate

SAID = f"antiphon: {AT_A_HUB}\n"


async def test_a_client_of_a_hub_says_that_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("antiphon.cli.hub_client.A_MOMENT", 0.0)
    close_gate(tmp_path)
    agents = {"slow": parrot(1, gate=str(tmp_path / "gate"))}
    async with doors(tmp_path, agents=agents) as at:
        place = HubPlace(at.address, at.hub.token, str(tmp_path))

        async def come(*, notes: bool) -> None:
            async with open_client(place, notes=notes) as client:
                assert client.agents == ["slow"]

        coming = [asyncio.ensure_future(come(notes=notes)) for notes in (True, False)]
        await open_gate(tmp_path)
        await asyncio.gather(*coming)
    assert capsys.readouterr().err == SAID


async def test_nothing_is_said_where_nobody_waits(capsys: pytest.CaptureFixture[str]) -> None:
    with noted_wait("a hub") as done:
        done()
    assert capsys.readouterr().err == ""


async def test_an_editor_s_hub_that_takes_its_time_is_told_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("antiphon.cli.acp.A_MOMENT", 0.0)
    editor, ours = memory_pair()
    theirs, hub = memory_pair()
    got: list[Any] = []
    editor.start(got.extend, lambda: None)
    relay = asyncio.ensure_future(EditorRelay(ours, theirs).run())
    asked = asyncio.Event()
    hub.start(lambda _: asked.set(), lambda: None)
    opening = {"protocolVersion": 1, "clientInfo": INFO, "clientCapabilities": {}}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    await asyncio.sleep(0)
    editor.send(json.dumps(frame).encode())
    async with asyncio.timeout(20):
        await asked.wait()
        said = ""
        while not said:
            await asyncio.sleep(0)
            said = capsys.readouterr().err
    assert said == SAID
    await editor.aclose()
    await hub.aclose()
    await asyncio.wait([relay])
    relay.exception()
