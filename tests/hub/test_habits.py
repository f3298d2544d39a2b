"""Habits of real agents, each behind a hub: what clients see of them in every dialect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.hub import Hub
from tests.agent.talk import Talk, client
from tests.hub.habits import Frame, Habit, end_turn, refuse, text
from tests.hub.running import DEADLINE
from tests.hub.test_first_words import DIALECTS, begin

V1_DIALECTS = [name for name, (version, _) in DIALECTS.items() if version == 1]


@asynccontextmanager
async def talking(agent: Habit, dialect: str, other: int | None = None) -> AsyncIterator[list[Any]]:
    """A session that a client of one dialect began, and perhaps one of another follows."""
    version, asked = DIALECTS[dialect]
    hub = Hub({"habit": agent})
    async with asyncio.timeout(DEADLINE), hub.serving(), client(hub, version, **asked) as talk:
        session = await begin(talk)
        if other is None:
            yield [talk, session]
            return
        async with client(hub, other) as second:
            await _load(second, session, other)
            yield [talk, session, second]


async def _load(talk: Talk, session: str, version: int) -> None:
    params: dict[str, Any] = {"sessionId": session, "cwd": "/", "mcpServers": []}
    if version == 1:
        await talk.call("load", "session/load", **params)
    else:
        await talk.call("load", "session/resume", **params, replayFrom={"type": "start"})


async def ended(talk: Talk, id: str) -> Any:
    """The answer to a prompt, once its turn is over."""
    answer = await talk.answer_to(id)
    if "stopReason" not in answer.get("result", {"stopReason": ""}):
        while not any(_is_idle(frame) for frame in talk.seen[talk.seen.index(answer) :]):
            await talk.until(lambda _: True)
    return answer


def _is_idle(frame: Frame) -> bool:
    return frame.get("params", {}).get("update", {}).get("state") == "idle"


# --- a question is the first that is heard of a tool call --------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("announced", [True, False], ids=["announced behind it", "never announced"])
@pytest.mark.parametrize("waits", [True, False], ids=["waits", "goes on"])
async def test_the_first_news_of_a_tool_call_announces_it(
    version: int, dialect: str, announced: bool, waits: bool
) -> None:
    def prompt(agent: Habit, frame: Frame) -> None:
        if version == 2:
            agent.answer(frame, messageId="u")
            agent.update("user_message", messageId="u", content=frame["params"]["prompt"])
            agent.update("state_update", state="running")
        agent.ask_permission({"toolCallId": "t", "title": "Read", "status": "pending"})
        agent.on_answer = lambda agent, _: work(agent, frame)
        if not waits:
            work(agent, frame)

    def work(agent: Habit, frame: Frame) -> None:
        agent.on_answer = None
        if announced:
            kind = "tool_call" if version == 1 else "tool_call_update"
            agent.update(kind, toolCallId="t", title="Read", status="pending")
        agent.update("tool_call_update", toolCallId="t", status="in_progress")
        agent.update("tool_call_update", toolCallId="t", status="completed")
        if version == 2:
            agent.update("state_update", state="idle", stopReason="end_turn")
        else:
            end_turn(agent, frame)

    shape = DIALECTS[dialect][0]
    async with talking(Habit(version, prompt=prompt), dialect, other=1) as (talk, session, other):
        talk.prompt("p", session, "go")
        if waits:
            for each in (other, talk):
                request = await each.request("session/request_permission")
            chosen = {"outcome": "selected", "optionId": "yes"}
            talk.send(id=request["id"], result={"outcome": chosen})
        await ended(talk, "p")
        await other.update("tool_call_update", status="completed")
        for each, spoken in ((talk, shape), (other, 1)):
            news = [
                update["sessionUpdate"]
                for update in each.updates()
                if update.get("toolCallId") == "t" or "tool_call" in update["sessionUpdate"]
            ]
            assert news[0] == ("tool_call" if spoken == 1 else "tool_call_update")
            assert news[-1] == "tool_call_update"
            if spoken == 1:
                first = next(update for update in each.updates() if update["sessionUpdate"] == "tool_call")
                assert first["title"] == "Read"
                told = [frame.get("method") for frame in each.seen if "toolCall" in str(frame.get("params"))]
                assert told[0] == "session/update"


# --- what stands in a chunk --------------------------------------------------------------------------

CHUNKS: list[dict[str, Any]] = [
    {"content": text("a"), "_meta": {"vendor": {"x": None}}},
    {"content": text("b"), "vendor": [1, {"y": None}]},
    {"content": text("c"), "messageId": "own", "vendor": 1, "_meta": {"k": 1}},
    {"content": {**text("d"), "vendor": 2}},
    {"content": {**text("e"), "_meta": {"k": 1}}},
    {"content": text('f ":": " : plain, "x":1'), "messageId": "own"},
    {"content": {**text("g"), "annotations": {"audience": ["user"]}}, "vendor": 1},
    {"content": text("h")},
]


@pytest.mark.parametrize("dialect", V1_DIALECTS)
@pytest.mark.parametrize("kind", ["agent_message_chunk", "agent_thought_chunk"])
async def test_invariant_8_a_v1_client_gets_the_chunks_of_a_v1_agent_as_they_were_written(
    dialect: str, kind: str
) -> None:
    def prompt(agent: Habit, frame: Frame) -> None:
        for chunk in CHUNKS:
            agent.update(kind, **chunk)
        agent.updates({"sessionUpdate": kind, "content": text("i")}, _meta={"beside": 1})
        end_turn(agent, frame)

    async with talking(Habit(1, prompt=prompt), dialect) as (talk, session):
        talk.prompt("p", session, "go")
        await ended(talk, "p")
        told = [update for update in talk.updates() if update["sessionUpdate"] == kind]
        assert all(update["messageId"] for update in told)
        for update, chunk in zip(told, [*CHUNKS, {"content": text("i")}], strict=True):
            assert update == {"sessionUpdate": kind, "messageId": update["messageId"], **chunk}


# --- echoes of prompts by v1 agents ------------------------------------------------------------------

PROMPT = "Why is the build red?"
ECHOES: dict[str, list[dict[str, Any]]] = {
    "with an id": [{"content": text(PROMPT), "messageId": "echo"}],
    "without one": [{"content": text(PROMPT)}],
    "in pieces": [{"content": text(PROMPT[:8])}, {"content": text(PROMPT[8:])}],
    "in named pieces": [
        {"content": text(PROMPT[:8]), "messageId": "echo"},
        {"content": text(PROMPT[8:]), "messageId": "echo"},
    ],
    "wrapped": [{"content": text(f"<user>\n{PROMPT}\n</user>"), "messageId": "echo"}],
    "wrapped in pieces": [{"content": text(each)} for each in ("<user>", PROMPT[:5], PROMPT[5:], "</user>")],
    "reflowed": [{"content": text(PROMPT.replace(" ", "\n")), "messageId": "echo"}],
    "in part": [{"content": text(PROMPT[:9]), "messageId": "echo"}],
    "with more beside it": [{"content": text(PROMPT), "messageId": "echo", "vendor": 1, "_meta": {"k": 1}}],
}


def user_texts(talk: Talk) -> list[str]:
    """The user messages that a client saw, each as one text."""
    found: dict[str, str] = {}
    for update in talk.updates():
        if update["sessionUpdate"] == "user_message":
            content = update.get("content")
            if content is not None:
                found[update["messageId"]] = "".join(block.get("text", "") for block in content)
        elif update["sessionUpdate"] == "user_message_chunk":
            id = update["messageId"]
            found[id] = found.get(id, "") + update["content"].get("text", "")
    return list(found.values())


def own_texts(dialect: str) -> list[str]:
    """What a client is told of its own prompt: v1 does not tell it."""
    return [] if dialect in ("v1", "turn_complete") else [PROMPT]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("echo", "late"),
    # A part of the prompt behind the agent's first word cannot be told from what somebody else says.
    [(echo, late) for echo in ECHOES for late in (False, True) if not (late and echo == "in part")],
)
async def test_the_echo_of_a_v1_agent_is_the_prompt_and_no_second_message(
    echo: str, late: bool, dialect: str
) -> None:
    def prompt(agent: Habit, frame: Frame) -> None:
        if late:
            agent.say("Let me see. ")
        for chunk in ECHOES[echo]:
            agent.update("user_message_chunk", **chunk)
        agent.say("Done.")
        end_turn(agent, frame)

    async with talking(Habit(1, prompt=prompt), dialect, other=2) as (talk, session, other):
        for id in ("p1", "p2"):
            talk.prompt(id, session, PROMPT)
            await ended(talk, id)
        while other.text().count("Done.") < 2:
            await other.until(lambda _: True)
        assert user_texts(talk) == own_texts(dialect) * 2
        assert user_texts(other) == [PROMPT, PROMPT]
        assert talk.text().count("Done.") == 2


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_a_v1_agent_lets_somebody_else_say_is_told(dialect: str) -> None:
    def prompt(agent: Habit, frame: Frame) -> None:
        agent.update("user_message_chunk", content=text("From the "), messageId="x", vendor=1)
        agent.update("user_message_chunk", content=text("phone."), messageId="x")
        agent.say("Done.")
        agent.update("user_message_chunk", content=text("And again."), messageId="y")
        end_turn(agent, frame)

    async with talking(Habit(1, prompt=prompt), dialect, other=1) as (talk, session, other):
        talk.prompt("p", session, PROMPT)
        await ended(talk, "p")
        await other.until(lambda frame: "And again." in str(frame))
        assert user_texts(talk) == [*own_texts(dialect), "From the phone.", "And again."]
        assert user_texts(other) == [PROMPT, "From the phone.", "And again."]


# --- what the hub tells an agent that has lost its session -------------------------------------------

HALVES = (slice(0, 30), slice(30, None))


def _echo(agent: Habit, id: str, prompt: list[dict[str, Any]], form: str) -> None:
    named = {"messageId": id} if agent.version == 2 or form != "pieces" else {}
    if form == "whole" and agent.version == 2:
        agent.update("user_message", messageId=id, content=prompt)
    elif form == "joined":
        agent.update("user_message_chunk", content=text("".join(b["text"] for b in prompt)), **named)
    elif form == "twice":
        for _ in range(2 if agent.version == 2 else 0):
            agent.update("user_message", messageId=id, content=prompt)
    elif form in ("blocks", "whole"):
        for block in prompt:
            agent.update("user_message_chunk", content=block, **named)
    elif form == "pieces":
        for block in prompt:
            for half in HALVES:
                agent.update("user_message_chunk", content=text(block["text"][half]), **named)


@pytest.mark.parametrize("dialect", ["v1", "lifecycle", "v2"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("early", [True, False], ids=["before the answer", "behind it"])
@pytest.mark.parametrize("form", ["whole", "twice", "blocks", "joined", "pieces", "none"])
async def test_the_preamble_of_the_hub_is_never_shown_as_the_user_s_words(
    version: int, dialect: str, early: bool, form: str
) -> None:
    prompts: list[str] = []

    def prompt(agent: Habit, frame: Frame) -> None:
        id, content = f"user-{frame['id']}", frame["params"]["prompt"]
        prompts.append("".join(block["text"] for block in content))
        if early:
            _echo(agent, id, content, form)
        if version == 2:
            agent.answer(frame, messageId=id)
            agent.update("state_update", state="running")
        if not early:
            _echo(agent, id, content, form)
        agent.say(f"Done {len(prompts)}.", f"agent-{len(prompts)}")
        if version == 2:
            agent.update("state_update", state="idle", stopReason="end_turn")
        else:
            end_turn(agent, frame)

    agent = Habit(version, prompt=prompt, resume=refuse)
    async with talking(agent, dialect, other=2) as (talk, session, other):
        talk.prompt("p1", session, PROMPT)
        await ended(talk, "p1")
        await agent.transport.aclose()
        talk.prompt("p2", session, "And now?")
        await ended(talk, "p2")
        await other.until(lambda frame: "Done 2." in str(frame))
        assert PROMPT in prompts[1]
        assert prompts[1] != "And now?"  # it was told what had happened
        own = [] if dialect == "v1" else [PROMPT, "And now?"]
        assert user_texts(talk) == own
        assert user_texts(other) == [PROMPT, "And now?"]
        shown = [update for update in other.updates() if "And now?" in str(update)]
        assert [update["sessionUpdate"] for update in shown] == ["user_message"]  # once
        shape = DIALECTS[dialect][0]
        await _load(talk, session, shape)
        await _load(other, session, 2)
        assert "began earlier" not in str(talk.seen)
        assert "began earlier" not in str(other.seen)
