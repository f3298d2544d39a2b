"""Scenarios about several clients of one session: everybody is shown the same, in the same order."""

from __future__ import annotations

from antiphon.conformance.agent.conversation import Conversation, is_busy, is_content, is_idle
from antiphon.conformance.hub.case import HubCase
from antiphon.conformance.hub.story import Difference, Entry, as_text, difference, spoken, story, text_of
from antiphon.conformance.hub.turn import PlayedTurn
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("sharing")
CHUNKS = 6


@scenarios.add("QUEUE-06", "PROXY-07", "PROMPT-V1-03")
async def same_for_all(case: HubCase) -> None:
    """Five clients of both versions are shown the same turn in the same order."""
    session, clients = await case.shared_session(
        case.version, case.version, case.other, case.version, case.other
    )
    first, others = clients[0], clients[1:]
    marks = {id(client): last_frame(client) for client in clients}
    turn = await case.begin(first, session, case.prompts.plain)
    for _ in range(CHUNKS):
        await turn.say()
    if isinstance(turn, PlayedTurn):
        for _ in range(CHUNKS):  # these and the end of the turn follow each other at once
            turn.say_now()
    await turn.end()

    def shown(client: Conversation, *, mixed: bool) -> list[Entry]:
        return (spoken if mixed else story)(client.updates(session, after=marks[id(client)]))

    for client in others:
        mixed = client.version != first.version
        await case.settled(
            client, turn, lambda: shown(client, mixed=mixed) == shown(first, mixed=mixed)  # noqa: B023
        )  # fmt: skip
        judge_story(case, client, shown(first, mixed=mixed), shown(client, mixed=mixed), session)
    if case.version == 1:
        await case.settled(first, turn, lambda: True)
        _judge_end(case, first, turn.prompt, session)
    for client in others:
        if client.version == case.version == 2:
            _judge_idle(case, client, session, marks[id(client)])


def judge_story(
    case: HubCase, client: Conversation, expected: list[Entry], got: list[Entry], session: str
) -> None:
    """Check that a client was shown what another one was shown."""
    found = difference(expected, got)
    sentence = (
        f"expected a client of v{client.version} to be shown what the client that prompted was shown, "
        f"{as_text(expected)}; it was shown {as_text(got)}"
    )
    frames = client.updates(session)
    case.decide.check("QUEUE-06", found is not Difference.WORDS, sentence, *frames)
    if found is not Difference.WORDS:
        case.decide.check("PROXY-07", found is None, sentence, *frames)


def _judge_end(case: HubCase, client: Conversation, prompt: RecordedFrame, session: str) -> None:
    """Check that no update of a v1 turn follows the response that ends it."""
    response = client.link.recording.response_to(prompt)
    assert response is not None
    late = [frame for frame in client.updates(session, after=response) if is_content(frame)]
    case.decide.check(
        "PROMPT-V1-03", not late, "expected every update of the turn before the response that ends it",
        prompt, response, *late,
    )  # fmt: skip


def _judge_idle(case: HubCase, client: Conversation, session: str, mark: RecordedFrame) -> None:
    """Check that no update of a turn follows the idle state that ends it."""
    updates = client.updates(session, after=mark)
    idle = next((frame for frame in updates if is_idle(frame)), None)
    if idle is None:
        return  # judged by another scenario
    late = [frame for frame in updates if frame.index > idle.index and is_content(frame)]
    case.decide.check(
        "PROXY-07", not late, "expected the updates of the turn before the idle state that ends it",
        idle, *late,
    )  # fmt: skip


@scenarios.add("PROMPT-V2-04", "PROXY-08", versions=(2,))
async def prompts_and_states_reach_all(case: HubCase) -> None:
    """The prompt of one client and the states of its turn reach every client of the session."""
    session, clients = await case.shared_session(2, 2, 2)
    marks = [last_frame(client) for client in clients]
    turn = await case.begin(clients[0], session, case.prompts.plain)
    await turn.end()
    prompt = turn.prompt
    response = await clients[0].link.response(prompt)
    message, words = response.get("result", "messageId"), text_of(prompt.get("params", "prompt"))
    for client, mark in zip(clients, marks, strict=True):
        echo = await _echo(case, client, session, message, words)
        kept = case.decide.check(
            "PROMPT-V2-04", echo == words,
            f"expected the message {message!r} with the text of the prompt at every attached client; "
            f"{client.link.recording.frames[0].link} was shown {echo!r}",
            prompt, response, *(frame for frame in client.updates(session, after=mark) if _is_user(frame)),
        )  # fmt: skip
        if not kept:
            break
    for client, mark in zip(clients[1:], marks[1:], strict=True):
        sentence = "expected the states of the turn at a client that did not prompt"
        try:
            began = await client.update(session, is_busy, "a running state", after=mark)
            await client.update(session, is_idle, "the idle state", after=began)
            case.decide.check("PROXY-08", True, sentence)
        except NotSeen as unseen:
            frames = client.updates(session, after=mark)
            case.decide.check("PROXY-08", False, f"{sentence}; {unseen}", prompt, *frames)
            break


async def _echo(case: HubCase, client: Conversation, session: str, message: object, words: str) -> str:
    """Wait for the echo of a prompt, and return its text."""

    def text() -> str:
        found = ""
        for frame in client.updates(session):
            if _is_user(frame) and frame.update.get("messageId") == message and "content" in frame.update:
                part = text_of(frame.update["content"])
                found = part if frame.update_kind == "user_message" else found + part
        return found

    await case.until(client, lambda: text() == words)
    return text()


def _is_user(frame: RecordedFrame) -> bool:
    return frame.update_kind in ("user_message", "user_message_chunk")


@scenarios.add("PROMPT-V1-22", versions=(1,))
async def own_prompts_are_not_echoed(case: HubCase) -> None:
    """A v1 client does not get its own prompt back, even if others of the session do."""
    session, (first, second) = await case.shared_session(1, 1)
    turn = await case.begin(first, session, case.prompts.plain)
    await turn.say()
    await turn.end()
    await second.link.barrier()
    echoes = [frame for frame in first.updates(session, after=turn.prompt) if _is_user(frame)]
    case.decide.check(
        "PROMPT-V1-22", not echoes, "expected no echo of the prompt at the v1 client that sent it",
        turn.prompt, *echoes,
    )  # fmt: skip


def last_frame(client: Conversation) -> RecordedFrame:
    """Return the last frame of a client so far."""
    return client.link.recording.frames[-1]
