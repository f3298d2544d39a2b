"""What a client may ask for beyond the protocol: to see the queue, and to resume after an event."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk, client, session

TEXT = {"type": "text", "text": "later"}


def asking(**ours: bool) -> dict[str, Any]:
    return {"capabilities": {"_meta": {"antiphon": ours}}}


def asking_v1(**ours: bool) -> dict[str, Any]:
    return {"clientCapabilities": {"_meta": {"antiphon": ours}}}


class Gate:
    """An agent whose turns wait for a word."""

    def __init__(self, **options: Any) -> None:
        self.agent = Agent("gate", version="1.0", **options)
        self.go = asyncio.Event()

        @self.agent.on_prompt
        async def answer(turn: AgentTurn) -> None:
            async with turn.message() as message:
                await message.write("working on ")
                await self.go.wait()
                await message.write(turn.prompt.text)


async def queue(talk: Talk) -> tuple[list[str], bool]:
    shown = await talk.update("_antiphon_queue")
    return [entry["content"][0]["text"] for entry in shown["entries"]], shown["paused"]


@pytest.mark.parametrize(
    ("version", "wanted"), [(2, asking(queueUpdates=True)), (1, asking_v1(queueUpdates=True))]
)
async def test_who_asks_sees_the_queue_whenever_it_changes(version: int, wanted: dict[str, Any]) -> None:
    gate = Gate()
    async with session(gate.agent, version, **wanted) as (talk, id):
        answer = talk.seen[0]["result"]
        capabilities = answer["agentCapabilities" if version == 1 else "capabilities"]
        assert capabilities["_meta"]["antiphon"]["queueUpdates"] is True
        talk.prompt(1, id, "first")
        assert await queue(talk) == (["first"], False)
        assert await queue(talk) == ([], False)

        async def change(method: str, **params: Any) -> tuple[str, list[str]]:
            """What becomes of the queue, and the message it is about; the two may come in either order."""
            request = f"{method} {len(talk.seen)}"
            talk.send(id=request, method=f"_antiphon/{method}", params={"sessionId": id, **params})
            texts, _ = await queue(talk)
            return (await talk.answer_to(request))["result"].get("messageId", ""), texts

        one, waiting = await change("inject", content=[TEXT])
        assert waiting == ["later"]
        other = {"type": "text", "text": "instead"}
        assert await change("replace_inject", messageId=one, content=[other]) == (one, ["instead"])
        two, waiting = await change("inject", content=[TEXT])
        assert waiting == ["instead", "later"]
        assert await change("move_inject", messageId=two, before=one) == (two, ["later", "instead"])
        async with client(gate.agent, 2, **asking(queueUpdates=True)) as late:
            await late.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            assert await queue(late) == (["later", "instead"], False), "who joins later sees what waits"
        assert await change("revoke_inject", messageId=two) == ("", ["instead"])
        talk.send(method="session/cancel", params={"sessionId": id})
        assert await queue(talk) == (["instead"], True)


async def test_who_does_not_ask_sees_nothing_of_it() -> None:
    gate = Gate()
    async with session(gate.agent) as (talk, id):
        assert "queueUpdates" not in talk.seen[0]["result"]["capabilities"]["_meta"]["antiphon"]
        talk.prompt(1, id, "first")
        await talk.call(2, "_antiphon/inject", sessionId=id, content=[TEXT])
        gate.go.set()
        await talk.update("state_update", state="idle")
        await talk.update("state_update", state="idle")
        assert not any("_antiphon" in step for step in talk.story())
        assert not any("_meta" in frame.get("params", {}) for frame in talk.seen)


def updates(talk: Talk) -> list[tuple[int, Any]]:
    """Number and update of every update that carries one."""
    numbered = [frame["params"] for frame in talk.seen if "_meta" in frame.get("params", {})]
    return [(params["_meta"]["antiphon"]["seq"], params["update"]) for params in numbered]


async def test_a_client_that_kept_its_cursor_gets_exactly_what_it_missed(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    gate = Gate(store=SQLiteStore(path))
    async with gate.agent.serving(), session(gate.agent, **asking(seq=True)) as (watcher, id):
        watcher.prompt(1, id, "the build")
        await watcher.update("agent_message_chunk")
        async with client(gate.agent, **asking(seq=True)) as talk:
            start = {"type": "start"}
            await talk.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[], replayFrom=start)
            closing = [frame["params"] for frame in talk.seen if "params" in frame][-1]
            assert closing["update"]["state"] == "running"
            cursor = closing["_meta"]["antiphon"]["seq"]
            replayed = [frame["params"] for frame in talk.seen if "params" in frame][:-1]
            assert not any("_meta" in params for params in replayed), "what is folded has no number"
        gate.go.set()
        await watcher.update("state_update", state="idle")
        seen = updates(watcher)
    again = Gate(store=SQLiteStore(path))
    async with again.agent.serving(), client(again.agent, **asking(seq=True)) as talk:
        after = {"type": "_antiphon_after", "seq": cursor}
        await talk.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[], replayFrom=after)
        missed = [(seq, update) for seq, update in seen if seq > cursor]
        assert missed
        *caught_up, (last, state) = updates(talk)
        assert caught_up == missed, "the raw events, each once, after a restart too"
        assert state["state"] == "idle"
        assert last == missed[-1][0]
        for bad in ({"seq": last + 1000}, {"seq": -1}, {"seq": "1"}, {}):
            wrong = {"type": "_antiphon_after", **bad}
            params = {"sessionId": id, "cwd": "/", "mcpServers": [], "replayFrom": wrong}
            talk.send(id=f"bad {bad}", method="session/resume", params=params)
            assert (await talk.answer_to(f"bad {bad}"))["error"]["code"] == -32602
