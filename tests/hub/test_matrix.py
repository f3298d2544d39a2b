"""Every agent with every client through one hub: real processes, one `antiphon serve` for all of them.

Each cell is the same conversation: a turn that is cancelled, which a second client joins on its way; a
stream; a tool call for which both clients are asked, and one answers; a prompt of the second client. Both
read the same, in the same order. What a client cannot do of it stands in `CANNOT`, with the reason.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hub.running import AGENT, Served
from tests.hub.running import served as serving
from tests.hub.voices import CLIENTS, Ours, Seen, Voice, order, said, speaking
from tests.peers import agents, install
from tests.peers.test_interop import AGENTS as SDK_AGENTS


@dataclass(frozen=True)
class Words:
    """What to say to an agent, and what it does then."""

    stream: str
    streamed: str
    tool: str
    tooled: str
    wait: str
    waiting: str


OURS = Words("stream 20", "18 19", "ask", "allowed: True", "wait", "waiting")
OF_AN_SDK = Words("stream 20", "more .", "permission", "permission: yes", "wait", "waiting")
OF_A_MODEL = Words("hello there", "You said: hello there", "TOOL", "hello-from-tool", "SLOW", "slow-1")


@dataclass(frozen=True)
class Cast:
    """An agent of the matrix."""

    version: int
    words: Words
    real: bool = False
    """Its process is heavy, and so its one session is that of all its cells."""


CASTS = {
    "antiphon-v1": Cast(1, OURS),
    "antiphon-v2": Cast(2, OURS),
    "python-sdk-v1": Cast(1, OF_AN_SDK),
    "ts-sdk-v1": Cast(1, OF_AN_SDK),
    "ts-sdk-v2": Cast(2, OF_AN_SDK),
    "claude-agent-acp": Cast(2, OF_A_MODEL, real=True),
    "qwen-code": Cast(1, OF_A_MODEL, real=True),
}
STREAM, HEAR, WAIT = "a turn that only streams", "hear the other's prompt", "wait with its answer"
CANNOT: dict[tuple[str, str], str] = {
    ("acpx", STREAM): "each turn is a process of its own; its other turns stream",
    ("acpx", HEAR): "it is there for one turn at a time",
    ("acpx", WAIT): "--approve-all answers at once",
}
"""Clients, and what of the conversation they cannot do."""


class Stage:
    """The one hub, and the sessions of agents that are shared."""

    def __init__(self, hub: Served, folder: Path, missing: dict[str, str]) -> None:
        self.hub = hub
        self.folder = folder
        self.missing = missing
        self._shared: dict[str, str] = {}

    def cwd(self, agent: str) -> Path:
        return self.folder / agent / "work"

    async def enter(self, voice: Voice, agent: str) -> str:
        if not CASTS[agent].real:
            return await voice.new(agent, self.cwd(agent))
        if agent not in self._shared:
            async with speaking(Ours(self.hub, self.folder)) as first:
                self._shared[agent] = await first.new(agent, self.cwd(agent))
        await voice.join(self._shared[agent], self.cwd(agent))
        return self._shared[agent]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("matrix")
    arguments, missing, launches = [], {}, []
    for name, cast in CASTS.items():
        (folder / name / "work").mkdir(parents=True)
        try:
            if cast.real:
                launches.append(agents.prepare(name, folder / name))
                command = launches[-1].command
            else:
                command = AGENT if name.startswith("antiphon") else SDK_AGENTS[name][1]()
        except (install.PeerUnavailable, pytest.skip.Exception) as reason:
            missing[name] = str(reason)
            continue
        arguments += ["--agent", f"{name}={shlex.join(command)}", "--acp-version", f"{name}={cast.version}"]
    with serving(folder / "hub", *arguments, agent=()) as hub:
        yield Stage(hub, folder, missing)
    left = [process for launch in launches for process in launch.left_running()]
    assert not agents.still_there(left, 5.0)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("agent", CASTS)
async def test_an_agent_and_a_client_and_a_second_one(
    stage: Stage, tmp_path: Path, agent: str, client: str
) -> None:
    if agent in stage.missing:
        pytest.skip(f"{agent} cannot be had: {stage.missing[agent]}")
    words, make = CASTS[agent].words, CLIENTS[client]
    other = 2 if client.endswith("v1") or client == "acpx" else 1
    async with (
        speaking(make(stage.hub, tmp_path)) as voice,
        speaking(Ours(stage.hub, tmp_path, version=other)) as second,
    ):
        assert isinstance(second, Ours)
        session = await stage.enter(voice, agent)
        began = len(voice.seen)

        # Cancelled on its way, with a second client that joined it there.
        await voice.prompt(words.wait)
        await voice.hears(words.waiting, began)
        await second.join(session, stage.cwd(agent))
        if other == 2:  # v1 has no word for it
            assert second.session.turn is not None, "it learns that a turn is open"
        assert words.waiting in second.session.messages[-1].text
        await voice.cancel()
        assert await voice.ended() == "cancelled"

        # From here on both read everything as it comes.
        first = len(voice.seen)
        if (client, STREAM) not in CANNOT:
            await voice.prompt(words.stream)
            assert await voice.ended() == "end_turn"
            assert words.streamed in said(voice.seen[first:])

        await voice.prompt(words.tool)
        if (client, WAIT) not in CANNOT:
            await second.until(lambda: second.asked == 1)
            await voice.until(lambda: voice.asked == 1)
            await voice.allow()
        assert await voice.ended() == "end_turn"
        assert voice.asked == 1
        assert words.tooled in said(voice.seen[first:])
        await second.until(lambda: not second.session.questions)  # its copy was withdrawn
        assert sum(each["kind"] == "agent_message_chunk" for each in voice.seen[began:]) > 1

        behind: Voice = second
        if (client, HEAR) not in CANNOT:
            await second.prompt(words.stream)
            assert await second.ended() == "end_turn"
            behind = voice
        begins = {words.stream, words.tool}
        with suppress(TimeoutError):  # the comparison says more
            await behind.until(lambda: order(since(begins, second.seen)) == order(voice.seen[first:]))
        assert order(since(begins, second.seen)) == order(voice.seen[first:])
        assert "tool completed" in order(voice.seen[first:])


def since(prompts: Collection[str], seen: Sequence[Seen]) -> Sequence[Seen]:
    """From the first of these prompts on."""
    at = [
        at for at, each in enumerate(seen) if each["kind"].startswith("user") and each.get("text") in prompts
    ]
    return seen[at[0] :] if at else []
