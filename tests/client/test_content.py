"""Files go into a prompt as the agent can take them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Abilities, File
from antiphon.client.session.content import EMBEDDED_BYTES, content_blocks
from antiphon.errors import LocalError
from antiphon.schema import v2
from tests.client.driving import WAYS, driven

ALL = Abilities(image=True, audio=True, embedded_context=True)
NONE = Abilities()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    (tmp_path / "a.py").write_bytes(b"one\r\ntwo\n")
    (tmp_path / "a.bin").write_bytes(b"\xff\x00")
    (tmp_path / "long.txt").write_bytes(b"x" * (EMBEDDED_BYTES + 1))
    return tmp_path


def test_each_kind_of_file_is_sent_as_what_it_is(folder: Path) -> None:
    assert content_blocks([File(folder / "a.png")], ALL) == [
        v2.ImageContent(data=base64.b64encode(b"\x89PNG").decode(), mime_type="image/png")
    ]
    (audio,) = content_blocks([File(folder / "a.wav")], ALL)
    assert isinstance(audio, v2.AudioContent)
    (embedded,) = content_blocks([File(folder / "a.py")], ALL)
    uri = (folder / "a.py").as_uri()
    resource = v2.TextResourceContents(uri=uri, text="one\r\ntwo\n", mime_type="text/x-python")
    assert embedded == v2.EmbeddedResource(resource=resource)


@pytest.mark.parametrize("name", ["a.png", "a.wav", "a.py", "a.bin"])
def test_what_the_agent_cannot_take_is_linked(folder: Path, name: str) -> None:
    (linked,) = content_blocks([File(folder / name)], NONE)
    assert isinstance(linked, v2.ResourceLink)
    assert (linked.uri, linked.name) == ((folder / name).as_uri(), name)
    assert linked.size == (folder / name).stat().st_size


@pytest.mark.parametrize("name", ["a.bin", "long.txt"])
def test_what_is_no_text_or_too_long_is_linked(folder: Path, name: str) -> None:
    (linked,) = content_blocks([File(folder / name)], ALL)
    assert isinstance(linked, v2.ResourceLink)


def test_a_type_can_be_given(folder: Path) -> None:
    (image,) = content_blocks([File(folder / "a.bin", mime_type="image/webp")], ALL)
    assert isinstance(image, v2.ImageContent)
    assert image.mime_type == "image/webp"


def test_a_file_that_is_not_there_is_our_mistake(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="No such file"):
        content_blocks([File(tmp_path / "gone")], ALL)


@pytest.mark.parametrize("way", WAYS)
async def test_a_file_reaches_the_agent_embedded_or_linked_by_its_capabilities(
    way: str, folder: Path
) -> None:
    for accepts, expected in (([], "resource_link"), (["image"], "image")):
        agent = Agent("takes files", accepts=accepts)
        got: list[v2.ContentBlock] = []

        @agent.on_prompt
        async def look(turn: AgentTurn, got: list[v2.ContentBlock] = got) -> None:
            got.extend(turn.prompt.content)

        async with driven(agent, way) as session:
            await (await session.prompt("look", File(folder / "a.png"))).drained()
        assert [block.__struct_config__.tag for block in got] == ["text", expected]
