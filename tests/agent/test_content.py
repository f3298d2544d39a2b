"""Content (section 18): blocks made by hand are right on the wire, in updates and prompts, both versions."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from antiphon import content
from antiphon.agent import Agent, AgentTurn
from antiphon.errors import CallFailed, LocalError
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from tests.agent.talk import session
from tests.client.driving import driven
from tests.requirements.marks import requirement

PNG = b"\x89PNG\r\n\x1a\n\x00"
DATA = base64.b64encode(PNG).decode()
BLOCKS: list[tuple[Any, dict[str, Any]]] = [
    (
        content.text("hi", annotations=content.annotations(audience=["user"], priority=0.5)),
        {"type": "text", "text": "hi", "annotations": {"audience": ["user"], "priority": 0.5}},
    ),
    (
        content.image(PNG, "image/png", uri="https://x/y.png"),
        {"type": "image", "data": DATA, "mimeType": "image/png", "uri": "https://x/y.png"},
    ),
    (content.audio(PNG, "audio/wav"), {"type": "audio", "data": DATA, "mimeType": "audio/wav"}),
    (
        content.link("file:///a/b%20c.txt", title="T", description="D", mime_type="text/plain", size=0),
        {"type": "resource_link", "uri": "file:///a/b%20c.txt", "name": "b c.txt", "title": "T",
         "description": "D", "mimeType": "text/plain", "size": 0},
    ),
    (
        content.embedded("file:///a", "text", mime_type="text/plain"),
        {"type": "resource", "resource": {"uri": "file:///a", "text": "text", "mimeType": "text/plain"}},
    ),
    (
        content.embedded("file:///a", PNG),
        {"type": "resource", "resource": {"uri": "file:///a", "blob": DATA}},
    ),
]  # fmt: skip


@requirement("CONT-03")
@pytest.mark.parametrize("version", [1, 2])
async def test_every_block_goes_out_as_it_was_made(version: int) -> None:
    agent = Agent("shows")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.message() as message:
            for block, _ in BLOCKS:
                await message.write(block)
        async with turn.tool_call("Look") as call:
            for block, _ in BLOCKS:
                await call.write(block)

    async with agent.serving(), session(agent, version) as (talk, id):
        talk.prompt(1, id, "go")
        if version == 1:
            await talk.answer_to(1)
        else:
            await talk.update("state_update", state="idle")
        updates = [frame["params"]["update"] for frame in talk.seen if "update" in frame.get("params", {})]
        said = [u["content"] for u in updates if u["sessionUpdate"] == "agent_message_chunk"]
        assert said == [raw for _, raw in BLOCKS]
        if version == 1:
            shown = [u["content"] for u in updates if u.get("toolCallId") and "content" in u][-1]
        else:
            shown = [u["content"] for u in updates if u["sessionUpdate"] == "tool_call_content_chunk"]
        assert [item["content"] for item in shown] == [raw for _, raw in BLOCKS]


@requirement("CONT-01", "CONT-02", "CONT-03")
@pytest.mark.parametrize("way", ["v1", "v2"])
async def test_every_block_reaches_an_agent_that_takes_it(way: str) -> None:
    agent, got = Agent("takes", accepts=["image", "audio", "embedded_context"]), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        got.extend(turn.prompt.content)

    async with driven(agent, way) as opened:
        await (await opened.prompt(*(block for block, _ in BLOCKS))).drained()
    assert got == [block for block, _ in BLOCKS]


@requirement("CONT-01", "CONT-02")
@pytest.mark.parametrize("way", ["v1", "v2"])
async def test_text_and_links_are_always_taken_and_the_rest_refused_here(way: str) -> None:
    agent, got = Agent("plain"), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        got.extend(turn.prompt.content)

    async with driven(agent, way) as opened:
        for index in (1, 2, 4, 5):
            with pytest.raises(LocalError):
                await opened.prompt(BLOCKS[index][0])
        await (await opened.prompt(BLOCKS[0][0], BLOCKS[3][0])).drained()
    assert got == [BLOCKS[0][0], BLOCKS[3][0]]


@requirement("CONT-02")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("index", [1, 2, 4, 5])
async def test_the_agent_refuses_what_it_does_not_take(version: int, index: int) -> None:
    agent = Agent("plain")
    agent.on_prompt(_nothing)
    async with agent.serving(), session(agent, version) as (talk, id):
        talk.send(id=1, method="session/prompt", params={"sessionId": id, "prompt": [BLOCKS[index][1]]})
        assert (await talk.answer_to(1))["error"]["code"] == -32602


@requirement("CONT-08")
async def test_an_unknown_block_is_kept_in_updates_and_refused_in_prompts() -> None:
    agent = Agent("odd")
    odd = Unknown({"type": "_hologram", "points": [1, 2]})

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.message() as message:
            await message.write(odd)

    async with driven(agent) as opened:
        await (await opened.prompt("go")).drained()
        assert opened.messages[-1].content == [odd]
        with pytest.raises(CallFailed) as refused:
            await opened.prompt(odd)
        assert refused.value.error.code == -32602


async def _nothing(turn: AgentTurn) -> None:
    pass


def wrong() -> list[Any]:
    image = {"mime_type": "image/png"}
    made: list[Any] = [
        v2.ImageContent(data=data, **image) for data in ("!", "A", "AA", "AA==\n", "_-8=", "AAAA=")
    ]
    made += [
        v2.AudioContent(data="nope!", mime_type="audio/wav"),
        v2.ImageContent(data=DATA, mime_type="png"),
        v2.ImageContent(data=DATA, mime_type="image/png", uri="no uri"),
        v2.ResourceLink(uri="/a/path", name="x"),
        v2.ResourceLink(uri="file:///a b", name="x"),
        v2.ResourceLink(uri="file:///%zz", name="x"),
        v2.ResourceLink(uri="file:///é", name="x"),
        v2.ResourceLink(uri="file:///x", name="x", size=-1),
        v2.EmbeddedResource(resource=v2.TextResourceContents(uri="x", text="y")),
        v2.EmbeddedResource(resource=v2.BlobResourceContents(uri="file:///x", blob="?")),
        v2.TextContent(text="x", annotations=v2.Annotations(priority=1.5)),
        v2.TextContent(text="x", annotations=v2.Annotations(audience=[v2.Role("nobody")])),
    ]
    made += [
        v2.ResourceLink(uri="file:///x", name="x", icons=[v2.Icon(src=src)])
        for src in ("http://x/i.png", "file:///i.png", "javascript:alert(1)", "/i.png", "https://a b")
    ]
    return made


@requirement("CONT-04")
@pytest.mark.parametrize("block", wrong())
async def test_what_is_wrong_is_told_to_its_author_and_not_sent(block: Any) -> None:
    agent, refused = Agent("careless", accepts=["image", "audio", "embedded_context"]), []

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.message() as message, turn.tool_call("Look") as call:
            for write in (message.write, message.replace, call.write):
                with pytest.raises(LocalError) as caught:
                    await write(block)
                refused.append(caught.value)

    async with driven(agent) as opened:
        with pytest.raises(LocalError):
            await opened.prompt(block)
        end = await (await opened.prompt("go")).drained()
        assert end.stop_reason == "end_turn"
        assert [message.role for message in opened.messages] == ["user"]
    assert len(refused) == 3


@requirement("CONT-04")
def test_the_makers_refuse_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(PNG)
    for make in (
        lambda: content.image(PNG),
        lambda: content.image(tmp_path / "x"),
        lambda: content.image(tmp_path / "none.png"),
        lambda: content.link("not a uri"),
        lambda: content.link("https://x", icons=["http://x/i.png"]),
        lambda: content.link("https://x", size=-1),
        lambda: content.embedded("x", "text"),
        lambda: content.annotations(priority=-0.1),
        lambda: content.annotations(audience=["nobody"]),
    ):
        with pytest.raises(LocalError):
            make()


def test_files_are_read_and_named(tmp_path: Path) -> None:
    picture = tmp_path / "a b.png"
    picture.write_bytes(PNG)
    assert content.image(picture) == v2.ImageContent(data=DATA, mime_type="image/png")
    assert content.image(str(picture), "image/x-odd").mime_type == "image/x-odd"
    link = content.link(picture, icons=["data:image/png;base64,AAAA", v2.Icon(src="https://x/i.png")])
    assert (link.uri, link.name) == (picture.as_uri(), "a b.png")
    assert link.icons is not None
    assert [icon.src for icon in link.icons] == ["data:image/png;base64,AAAA", "https://x/i.png"]
    assert content.fault(Unknown({"type": "_x"})) is None
