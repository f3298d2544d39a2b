"""Work of a v2 agent: how scenarios begin it, wait for its end, and read what it sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation, is_busy, is_idle, stop_reason
from antiphon.conformance.link import Condition, NotSeen
from antiphon.conformance.recording import RecordedFrame, same_id

PERMISSION = "session/request_permission"
INVALID_PARAMS = -32602
REQUEST_CANCELLED = -32800
CANCELLED = {"outcome": {"outcome": "cancelled"}}
"""The result of a permission request of cancelled work."""
MESSAGES = ("user_message", "agent_message", "agent_thought")
FINAL = ("completed", "failed", "cancelled")

Entity = tuple[str, str]
"""A message or a tool call: its type and its id. Ids of different types may be equal (MSG-08)."""


class Work(Struct, frozen=True):
    """Foreground work that has begun and not ended. `question` is the permission request it waits for."""

    agent: Conversation
    session: str
    prompt: RecordedFrame
    question: RecordedFrame | None = None

    async def end(self, *, after: RecordedFrame) -> RecordedFrame:
        """Return the idle state after a frame. Raises `NotSeen`."""
        return await self.agent.update(
            self.session, is_idle, "the idle state that ends the work", after=after
        )

    def entities(self, end: RecordedFrame) -> set[Entity]:
        """Return the messages and tool calls of the agent in this work, up to the frame that ended it."""
        frames = self.agent.updates(self.session, after=self.prompt)
        found = (entity(frame) for frame in frames if frame.index < end.index and is_output(frame))
        return {each for each in found if each is not None}

    async def ends(self, *, after: RecordedFrame) -> list[RecordedFrame]:
        """Return the idle states after a frame, once the agent has had time to act on it."""
        for _ in range(3):
            await self.agent.link.barrier()
        return [frame for frame in self.agent.updates(self.session, after=after) if is_idle(frame)]


async def begin_slow(case: AgentCase, words: str = "", *, option: str = "slow") -> Work:
    """Begin a turn that lasts until it is cancelled, and wait for its first output.

    Raises `NotSeen` if the turn ends by itself: then the judge cannot tell what a cancel does.
    """
    agent, session = await case.open_session()
    prompt = agent.prompt(session, words or case.prompts.slow)
    seen = await _first(agent, session, prompt, is_output, "output of the agent")
    case.decide.need(is_output(seen), f"the turn ended before its first output; see --prompt {option}=TEXT")
    await still_works(case, Work(agent, session, prompt), option)
    return Work(agent, session, prompt)


async def still_works(case: AgentCase, work: Work, option: str = "slow") -> None:
    """End the scenario here if the work has ended by itself."""
    await work.agent.link.barrier()
    ended = any(is_idle(frame) for frame in work.agent.updates(work.session, after=work.prompt))
    case.decide.need(not ended, f"the turn ended by itself; a longer one needs --prompt {option}=TEXT")


async def begin_blocked(case: AgentCase, agent: Conversation | None = None, session: str = "") -> Work:
    """Begin a turn that waits for permission. The request stays open. Raises `NotSeen` if none comes."""
    if agent is None:
        agent = await case.open()
    agent.link.on_request(PERMISSION, None)
    session = session or await agent.new_session()
    prompt = agent.prompt(session, case.prompts.permission)
    seen = await _first(agent, session, prompt, is_question, "a permission request")
    case.decide.need(is_question(seen), "the agent did not ask for permission; see --prompt permission=TEXT")
    return Work(agent, session, prompt, seen)


async def _first(
    agent: Conversation, session: str, prompt: RecordedFrame, condition: Condition, what: str
) -> RecordedFrame:
    """Return the first frame of a turn that fits, or that ends the turn."""

    def fits(frame: RecordedFrame) -> bool:
        if frame.is_response and same_id(frame.id, prompt.id):
            return frame.error is not UNSET
        return frame.session_id == session and (condition(frame) or is_idle(frame))

    return await agent.link.wait(fits, what, after=prompt)


async def run_turn(agent: Conversation, session: str, words: str) -> tuple[RecordedFrame, RecordedFrame]:
    """Send a prompt, and return the frame of it and the idle state that ends its turn.

    Raises `NotSeen`; `Refused` if the prompt is refused. Unlike `Conversation.run_turn` it does not need a
    running state, so that an agent which sends none is failed by the one check for that.
    """
    prompt = agent.prompt(session, words)
    return prompt, await turn_end(agent, prompt)


async def turn_end(agent: Conversation, prompt: RecordedFrame) -> RecordedFrame:
    """Return the idle state that ends the turn of a prompt. An idle before any work repeats an old state."""
    await agent.link.accepted(prompt)
    busy = False

    def ends(frame: RecordedFrame) -> bool:
        nonlocal busy
        busy = busy or is_busy(frame)
        return is_idle(frame) and (busy or stop_reason(frame) is not None)

    session = prompt.session_id
    return await agent.update(session, ends, "the idle state that ends the work", after=prompt)


async def inserted_id(agent: Conversation, prompt: RecordedFrame) -> str:
    """Return the message id that the answer to a prompt has. Raises `NotSeen`."""
    response = await agent.link.accepted(prompt)
    id = response.get("result", "messageId")
    if not isinstance(id, str):
        raise NotSeen("the answer to `session/prompt` has no `messageId`")
    return id


def is_question(frame: RecordedFrame) -> bool:
    return frame.is_request and frame.method == PERMISSION


def first_option(question: RecordedFrame) -> Any:
    """Return the id of the first option of a permission request."""
    options = question.get("params", "options")
    first = options[0] if isinstance(options, list) and options else {}
    return first.get("optionId") if isinstance(first, dict) else None


def entity(frame: RecordedFrame) -> Entity | None:
    """Return the message or tool call that an update is about; `None` for another frame or without an id."""
    kind = (frame.update_kind or "").removesuffix("_chunk")
    if kind in MESSAGES:
        id = frame.update.get("messageId")
    elif kind in ("tool_call_update", "tool_call_content"):
        kind, id = "tool_call", frame.update.get("toolCallId")
    else:
        return None
    return (kind, id) if isinstance(id, str) else None


def is_output(frame: RecordedFrame) -> bool:
    """Whether a frame is an update of a message, a thought or a tool call of the agent."""
    found = entity(frame)
    return found is not None and found[0] != "user_message"


def is_tool_call(frame: RecordedFrame) -> bool:
    found = entity(frame)
    return found is not None and found[0] == "tool_call"


def is_user_message(frame: RecordedFrame) -> bool:
    return (frame.update_kind or "").removesuffix("_chunk") == "user_message"


def words_of(frames: Iterable[RecordedFrame]) -> dict[Entity, str]:
    """Fold updates in order: the text of every message, by type and id."""
    words: dict[Entity, str] = {}
    for frame in frames:
        found = entity(frame)
        if found is None or found[0] == "tool_call":
            continue
        content = frame.update.get("content", UNSET)
        if (frame.update_kind or "").endswith("_chunk"):
            words[found] = words.get(found, "") + _text([content])
        elif content is None or isinstance(content, list):
            words[found] = _text(content or [])
        else:
            words.setdefault(found, "")
    return words


def _text(blocks: list[Any]) -> str:
    return "".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))


def statuses(frames: Iterable[RecordedFrame]) -> dict[str, list[str]]:
    """Return the statuses that each tool call was given, in order."""
    found: dict[str, list[str]] = {}
    for frame in frames:
        id, status = frame.update.get("toolCallId"), frame.update.get("status")
        if frame.update_kind == "tool_call_update" and isinstance(id, str) and isinstance(status, str):
            found.setdefault(id, []).append(status)
    return found


def background(frame: RecordedFrame) -> list[Entity] | None:
    """Return the background work that a state update lists; `None` if it does not report any."""
    items = frame.update.get("background")
    if frame.update_kind != "state_update" or not isinstance(items, list):
        return None
    keys = {"tool_call": "toolCallId", "terminal": "terminalId"}
    return [
        (item["type"], str(item.get(keys[item["type"]])))
        for item in items
        if isinstance(item, dict) and item.get("type") in keys
    ]
