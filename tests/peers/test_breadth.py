"""Every kind of content, a login, and all that the complete agent does, with the official SDKs."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import File, connect
from antiphon.content import annotations, audio, embedded, image, link
from antiphon.schema import v2
from tests.peers.test_interop import DEADLINE, HERE, python_sdk, ts_sdk

OURS = [sys.executable, str(HERE.parents[1] / "examples" / "complete_agent.py")]
PEERS = ["ts-sdk-v1", "ts-sdk-v2", "python-sdk-v1"]


def command(peer: str, script: str) -> list[str]:
    if peer == "python-sdk-v1":
        return python_sdk(f"{script}.py")
    return [*ts_sdk(f"{script}.mjs"), peer.rpartition("-")[2]]


def text_of(turn: dict[str, Any]) -> str:
    said = [update for update in turn["updates"] if update["sessionUpdate"].startswith("agent_message")]
    return json.dumps([update["content"] for update in said])


@pytest.mark.parametrize("peer", PEERS)
async def test_a_client_of_an_official_sdk_tries_all_that_our_agent_can(peer: str) -> None:
    started = [*command(peer, "breadth_client"), "--", *OURS]
    process = await asyncio.create_subprocess_exec(
        *started, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert (process.returncode, err.decode()) == (0, ""), "the SDK reports what it cannot read there"
    told: dict[str, Any] = json.loads(out)
    turns = told["turns"]

    came = "".join(
        update["content"]["text"]
        for update in turns["this: "]["updates"]
        if update["sessionUpdate"] == "agent_message_chunk"
    )
    assert came == "You said: this: [image/gif][audio/wav][a link to song.py][all of file:///all.txt]"

    drawn = [update.get("content") for update in turns["/draw"]["updates"]]
    picture, more, file = [one for one in drawn if isinstance(one, dict) and one.get("type") != "text"]
    assert (picture["mimeType"], picture["annotations"]) == (
        "image/gif",
        {"audience": ["user"], "priority": 0.9},
    )
    assert (more["uri"], more["title"]) == ("https://example.org/dots", "More dots")
    assert file["resource"]["text"] == ". . ."

    assert told["asked"] == ["form", "permission", "permission", "form", "url"]
    assert "feature" in text_of(turns["/say"])
    plans = [update for update in turns["/plan"]["updates"] if "plan" in update["sessionUpdate"]]
    assert len(plans) == 4
    assert "la la la" in json.dumps(turns["/edit"]["updates"])
    assert "1 to Ulm by train" in json.dumps(turns["/ask"]["updates"])
    assert "The visit: accept." in text_of(turns["/visit"])
    assert "Found it." in text_of(turns["/delegate"])
    assert "Good evening, Ann." in text_of(turns["/private"])
    if peer.endswith("v1"):
        assert {turn["answer"]["stopReason"] for turn in turns.values()} == {"end_turn"}


@pytest.mark.parametrize("peer", PEERS)
async def test_an_agent_of_an_official_sdk_takes_and_gives_every_kind_of_content(
    peer: str, tmp_path: Path
) -> None:
    (tmp_path / "dot.gif").write_bytes(b"GIF")
    async with asyncio.timeout(DEADLINE), connect(command(peer, "content_agent")) as client:
        session = await client.new_session(tmp_path)
        turn = await session.prompt(
            "this",
            image(b"GIF", "image/gif", annotations=annotations(audience=["assistant"], priority=0.5)),
            audio(b"\0\0\0", "audio/wav"),
            link("file:///song.py", title="A song", size=12),
            embedded("file:///all.txt", "all of it", mime_type="text/plain"),
            File(tmp_path / "dot.gif"),
        )
        end = await turn.drained()
        assert end.stop_reason == "end_turn"
        text, picture, more, file = session.messages[-1].content
        assert isinstance(text, v2.TextContent)
        told = json.loads(text.text)
        assert told["user"] == "nobody"
        assert told["prompt"][:5] == [
            {"type": "text", "text": "this"},
            {
                "type": "image",
                "data": "R0lG",
                "mimeType": "image/gif",
                "annotations": {"audience": ["assistant"], "priority": 0.5},
            },
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {
                "type": "resource_link",
                "uri": "file:///song.py",
                "name": "song.py",
                "title": "A song",
                "size": 12,
            },
            {
                "type": "resource",
                "resource": {"uri": "file:///all.txt", "text": "all of it", "mimeType": "text/plain"},
            },
        ]
        assert told["prompt"][5]["mimeType"] == "image/gif"
        shown = annotations(audience=["user"], priority=0.9)
        assert picture == image(b"GIF", "image/gif", annotations=shown)
        assert more == link("https://example.org/dots", "dots", title="More dots")
        assert file == embedded("file:///dots.txt", ". . .")


@pytest.mark.parametrize("peer", PEERS)
async def test_our_client_logs_in_at_an_agent_of_an_official_sdk_and_sets_an_option(peer: str) -> None:
    async with asyncio.timeout(DEADLINE), connect(command(peer, "content_agent")) as client:
        assert [getattr(method, "name", None) for method in client.auth_methods] == ["By key"]
        await client.login("key")
        session = await client.new_session("/")
        assert getattr(session.config["model"], "current_value", None) == "fast"
        await session.set_config("model", "deep")
        assert getattr(session.config["model"], "current_value", None) == "deep"
        turn = await session.prompt("go")
        await turn.drained()
        assert json.loads(turn.text)["user"] == "key"
