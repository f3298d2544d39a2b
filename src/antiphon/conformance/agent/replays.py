"""Scenarios about v1 sessions that are loaded or resumed."""

from __future__ import annotations

from contextlib import suppress

from msgspec import UNSET

from antiphon.conformance.agent.cancel import long_turn, more_work
from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation, is_content
from antiphon.conformance.agent.sessions import offers
from antiphon.conformance.agent.turns import words
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("reopening", shares=True)


class Reopened:
    """A session that was loaded or resumed: the frames of the request, and the updates around the answer."""

    def __init__(self, agent: Conversation, request: RecordedFrame, response: RecordedFrame) -> None:
        self.agent = agent
        self.request = request
        self.response = response

    @property
    def replay(self) -> list[RecordedFrame]:
        """The updates of the conversation between the request and its answer."""
        return [
            frame for frame in self.agent.updates(self.request.session_id, after=self.request)
            if frame.index < self.response.index and is_content(frame)
        ]  # fmt: skip

    @property
    def late(self) -> list[RecordedFrame]:
        """The updates of the conversation after the answer."""
        return [
            frame for frame in self.agent.updates(self.request.session_id, after=self.response)
            if is_content(frame)
        ]  # fmt: skip


async def reopen(case: AgentCase, agent: Conversation, session: str, *, load: bool) -> Reopened:
    """Load or resume a session, on a new connection if the agent refuses it on the one that made it.

    Raises `NotSeen` if both are refused.
    """
    request = agent.load(session) if load else agent.resume(session)
    response = await agent.link.response(request)
    if response.error is not UNSET:
        agent = await case.open()
        request = agent.load(session) if load else agent.resume(session)
        response = await agent.link.accepted(request)
    return Reopened(agent, request, response)


async def ended_turn(case: AgentCase, agent: Conversation, session: str) -> list[RecordedFrame]:
    """Run a turn to its end and return its updates. Raises `NotSeen` if it fails."""
    prompt, end = await agent.run_turn(session, case.prompts.plain)
    case.decide.need(end.error is UNSET, "the prompt was answered with an error")
    return [frame for frame in agent.updates(session, after=prompt) if frame.index < end.index]


@scenarios.add("SESS-13", "MSG-11", versions=(1,))
async def a_load_replays_the_conversation(case: AgentCase) -> None:
    """`session/load` sends the whole conversation, and then answers."""
    agent = await case.open()
    case.decide.applies(agent.offers("loadSession"), "the agent does not advertise `loadSession`")
    session = await agent.new_session()
    turns = [await ended_turn(case, agent, session) for _ in range(2)]
    live = [frame for turn in turns for frame in turn]
    loaded = await reopen(case, agent, session, load=True)
    await loaded.agent.link.barrier()
    case.decide.check(
        "SESS-13", not loaded.late,
        "expected the whole replay before the answer to `session/load`",
        loaded.request, loaded.response, *loaded.late,
    )  # fmt: skip
    if not loaded.late:
        prompt = "".join(case.prompts.plain.split())
        replayed = words(loaded.replay)
        case.decide.check(
            "SESS-13",
            words(loaded.replay, "user_message").count(prompt) >= len(turns)
            and all(words(turn) in replayed for turn in turns),
            "expected the messages of both turns in the replay of `session/load`",
            *live, loaded.request, *loaded.replay, loaded.response,
        )  # fmt: skip
    kept = message_ids(loaded.replay) >= message_ids(live)
    case.decide.check("MSG-11", True, f"the ids of the messages were {'kept' if kept else 'changed'}")


def message_ids(frames: list[RecordedFrame]) -> set[str]:
    return {str(frame.update["messageId"]) for frame in frames if frame.update.get("messageId") is not None}


@scenarios.add("SESS-13", "PROMPT-V1-02", versions=(1,))
async def a_load_during_a_turn_loses_nothing(case: AgentCase) -> None:
    """A client that loads a session while it works gets each piece once: replayed or live."""
    agent = await case.open()
    case.decide.applies(agent.offers("loadSession"), "the agent does not advertise `loadSession`")
    session = await agent.new_session()
    prompt = await long_turn(case, agent, session)
    request = agent.load(session)
    response = await agent.link.response(request)
    case.decide.need(response.error is UNSET, "the agent refuses to load a session that works")
    during = Reopened(agent, request, response)
    with suppress(NotSeen):
        await more_work(agent, prompt)
    agent.cancel(session)
    await case.answered("PROMPT-V1-02", agent.link, prompt)
    case.decide.check("PROMPT-V1-02", True, "the prompt was answered")
    early = [frame for frame in agent.updates(session, after=prompt) if frame.index < request.index]
    between, live = during.replay, words(during.late)
    request = agent.load(session)
    afterwards = Reopened(agent, request, await agent.link.response(request))
    whole = words(afterwards.replay)
    # What comes before the replay, which begins with the prompt, was sent before the agent read the request.
    begin = next((at for at, frame in enumerate(between) if is_prompt(frame)), len(between))
    replayed = words(between[begin:])  # nothing, if the agent keeps a message only when it is complete
    view = (replayed or words([*early, *between])) + live
    case.decide.check(
        "SESS-13", view.startswith(whole) or whole.startswith(view),
        "expected each piece of the running turn once, in the replay or after the answer",
        prompt, *early[-2:], during.request, *between[-3:], during.response, *during.late[:3],
    )  # fmt: skip


def is_prompt(frame: RecordedFrame) -> bool:
    return str(frame.update_kind).startswith("user_message")


@scenarios.add("SESS-15", versions=(1,))
async def a_resume_replays_nothing(case: AgentCase) -> None:
    """`session/resume` answers without the history."""
    agent = await case.open()
    case.decide.applies(offers(agent, "resume"), "the agent does not advertise `resume`")
    session = await agent.new_session()
    await ended_turn(case, agent, session)
    resumed = await reopen(case, agent, session, load=False)
    case.decide.check(
        "SESS-15", not resumed.replay, "expected no history before the answer to `session/resume`",
        resumed.request, *resumed.replay, resumed.response,
    )  # fmt: skip
