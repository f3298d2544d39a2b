"""Scenarios about clients that come and go while the session works."""

from __future__ import annotations

from collections import Counter

from antiphon.conformance.agent.conversation import Conversation, is_busy, is_idle, state
from antiphon.conformance.hub.case import HubCase
from antiphon.conformance.hub.shared_sessions import judge_story, last_frame
from antiphon.conformance.hub.story import message_texts, spoken
from antiphon.conformance.hub.turn import PlayedTurn
from antiphon.conformance.link import NotSeen, Refused, why_unseen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("joining")
FLOOD = 32
FILLING = "x" * 64 * 1024
INVALID_PARAMS = -32602


@scenarios.add("QUEUE-06", "PROXY-07", "SESS-13", "SESS-18", "SESS-21", "SESS-22", "MSG-12")
async def late_joiner(case: HubCase) -> None:
    """A client that joins in the middle of a turn gets what was, and then what comes: no gap, no overlap."""
    session, (first,) = await case.shared_session(case.version)
    turn = await case.begin(first, session, case.prompts.slow, lasts=True)
    for _ in range(3):
        await turn.say()
    joiner, mixed = await case.client(), await case.client(version=case.other)
    response = await case.attach(joiner, session)
    await case.attach(mixed, session)
    if case.version == 2 and isinstance(turn, PlayedTurn):
        _judge_state(case, joiner, session, response)
    for _ in range(3):
        await turn.say()
    await turn.end()
    for client in (joiner, mixed):
        await case.settled(
            client, turn, lambda: spoken(client.updates(session)) == spoken(first.updates(session))  # noqa: B023
        )  # fmt: skip
    _judge_cut(case, first, joiner, session, response)
    if case.version == 2:
        _judge_ids(case, first, joiner, session, response, turn.prompt)
    _judge_words(case, first, mixed, session)


def _judge_state(case: HubCase, joiner: Conversation, session: str, response: RecordedFrame) -> None:
    """Check that the state before the answer to a resume is that of the turn that runs."""
    before = [frame for frame in joiner.updates(session) if frame.index < response.index and state(frame)]
    case.decide.check(
        "SESS-21", bool(before) and is_busy(before[-1]),
        "expected a running state before the answer to a resume, because a turn runs", *before, response,
    )  # fmt: skip


def _judge_cut(
    case: HubCase, first: Conversation, joiner: Conversation, session: str, response: RecordedFrame
) -> None:
    """Check each message of the agent: whole, or if nothing of it was replayed, its rest."""
    whole = message_texts(first.updates(session))
    replayed = message_texts(frame for frame in joiner.updates(session) if frame.index < response.index)
    joined = message_texts(joiner.updates(session))
    requirement = "SESS-18" if case.version == 2 else "SESS-13"
    sentence = "expected a late joiner to have each message once and without a gap"
    frames = [frame for frame in joiner.updates(session) if frame.update.get("content") is not None]
    for id, text in whole.items():
        got = joined.get(id, "")
        kept = got == text or (id not in replayed and text.endswith(got))
        extra, missing = (
            Counter(one.split()) - Counter(other.split()) for one, other in ((got, text), (text, got))
        )
        decide = case.decide.check
        decide(requirement, kept or not extra, f"{sentence}; some of it came twice: {got[:200]!r}", *frames)
        if not extra:
            lost = bool(missing) and not kept
            decide("QUEUE-06", not lost, f"{sentence}; some of it is missing: {got[:200]!r}", *frames)
            decide("PROXY-07", kept or lost, f"{sentence}; it came in another order: {got[:200]!r}", *frames)


def _judge_words(case: HubCase, first: Conversation, mixed: Conversation, session: str) -> None:
    """Check the text of a late joiner of the other version, whose messages may have other ids."""
    expected, got = (spoken(client.updates(session))[0].text.split() for client in (first, mixed))
    sentence = (
        f"expected a client of v{mixed.version} that joined late to have the text of the agent once and "
        f"without a gap, got {' '.join(got)[:200]!r}"
    )
    if Counter(got) - Counter(expected):
        return  # what comes twice is judged by the client of the judged version
    kept = expected[len(expected) - len(got) :] == got and bool(got)
    reordered = sorted(expected) == sorted(got)
    case.decide.check("QUEUE-06", kept or reordered, sentence, *mixed.updates(session))
    if kept or reordered:
        case.decide.check("PROXY-07", kept, sentence, *mixed.updates(session))


def _judge_ids(
    case: HubCase,
    first: Conversation,
    joiner: Conversation,
    session: str,
    response: RecordedFrame,
    prompt: RecordedFrame,
) -> None:
    """Check that replayed messages have the ids under which the first client got them."""
    accepted = first.link.recording.response_to(prompt)
    assert accepted is not None
    replay = [frame for frame in joiner.updates(session) if frame.index < response.index]
    judge_replayed_ids(case, [accepted, *first.updates(session)], replay)


def judge_replayed_ids(case: HubCase, live: list[RecordedFrame], replay: list[RecordedFrame]) -> None:
    """Check the ids of replayed messages; `live` are the answer to the prompt and the updates of its turn."""
    prompted = {frame.get("result", "messageId") for frame in live if frame.is_response}
    known = prompted | {frame.update.get("messageId") for frame in live}
    for frame in replay:
        kind, id = frame.update_kind or "", frame.update.get("messageId")
        if kind.startswith("user_message"):
            case.decide.check(
                "SESS-22", id in prompted,
                f"expected the prompt in the replay under the id of its response, got {id!r}",
                *(each for each in live if each.is_response), frame,
            )  # fmt: skip
        elif kind.startswith("agent_message"):
            case.decide.check(
                "MSG-12", id in known, f"expected a replayed message under the id that it had, got {id!r}",
                *(each for each in live if each.update_kind == kind), frame,
            )  # fmt: skip


@scenarios.add("WS-04")
async def prompter_leaves(case: HubCase) -> None:
    """A session goes on for the other clients when the one that prompted loses its connection."""
    second = await case.client()
    session = await second.new_session()
    first, proxy = await case.proxied_client()
    await case.attach(first, session)
    lost = proxy.to_peer.disconnect_after(lambda frame: frame.method == "session/prompt")
    agent = await case.played(second) if case.place.upstream is not None else None
    case.decide.need(agent is not None or case.version == 2, "a v1 client is not told when a turn has ended")
    mark = last_frame(second)
    first.prompt(session, f"{case.prompts.plain} Thank you.")  # not the text of the second prompt
    await lost.happens(timeout=case.timeout)
    await first.link.end()
    if agent is not None:
        received = await agent.prompt()
        agent.accept(received)
        agent.finish(received)
        await agent.link.barrier()  # the hub has read the end of the turn
    else:
        began = await second.update(session, is_busy, "a running state", after=mark)
        await second.update(session, is_idle, "the idle state", after=began)
    sentence = "expected the session to go on for a client when another one lost its connection"
    frames = second.link.recording.frames
    try:
        turn = await case.begin(second, session, case.prompts.plain)
        await turn.say()
        await turn.end()
    except Refused as refused:
        case.decide.check("WS-04", False, f"{sentence}; {refused}", refused.response)
        return
    except NotSeen as unseen:
        case.decide.check("WS-04", False, f"{sentence}; {unseen}", *frames[-3:])
        return
    response = second.link.recording.response_to(turn.prompt)
    refusal = response is not None and response.error_code is not None
    case.decide.check("WS-04", not refusal, sentence, turn.prompt, *([response] if response else []))


@scenarios.add("QUEUE-06", "PROXY-07")
async def slow_reader(case: HubCase) -> None:
    """A client that stops reading costs the others nothing, and misses nothing if its connection stays."""
    session, (first, second) = await case.shared_session(case.version, case.version)
    slow, proxy = await case.proxied_client()
    await case.attach(slow, session)
    turn = await case.begin_played(first, session)
    proxy.to_client.pause()
    marks = [last_frame(client) for client in (first, second, slow)]
    for _ in range(FLOOD):
        turn.agent.say(f"{FILLING} ", turn.message)
    word = turn.say_now().encode()
    for client in (first, second):
        case.decide.check(
            "QUEUE-06", await _reached(client, word),
            "expected the updates of the turn at the clients that read, while another client does not",
            *client.link.recording.frames[-2:],
        )  # fmt: skip
    await turn.end()
    proxy.to_client.resume()
    if await _reached(slow, word) or not slow.link.ended:
        expected, got = (
            spoken(client.updates(session, after=mark))
            for client, mark in ((second, marks[1]), (slow, marks[2]))
        )
        judge_story(case, slow, expected, got, session)


async def _reached(client: Conversation, word: bytes) -> bool:
    """Wait for a word of the agent at a client."""
    return not await why_unseen(client.link.wait(lambda frame: word in frame.raw, "a chunk of the agent"))


@scenarios.add("SESS-19", "QUEUE-06", "PROXY-07", versions=(2,))
async def resume_by_cursor(case: HubCase) -> None:
    """A client that knows the number of its last update gets everything after it, once."""
    asked = {"_meta": {"antiphon": {"seq": True}}}
    first = await case.client(capabilities=asked)
    offered = first.capabilities.get("_meta")
    ours = offered.get("antiphon") if isinstance(offered, dict) else None
    offers = isinstance(ours, dict) and bool(ours.get("replayAfter"))
    case.decide.applies(offers, "the hub does not offer the cursor `_antiphon_after`")
    session = await first.new_session()
    turn = await case.begin_played(first, session)
    words = [turn.say_now() for _ in range(6)]
    await turn.end()
    numbers = {
        word: frame.get("params", "_meta", "antiphon", "seq")
        for word in words for frame in first.updates(session) if word.encode() in frame.raw
    }  # fmt: skip
    second = await case.client(capabilities=asked)
    malformed = second.resume(session, replayFrom={"type": "_antiphon_after", "seq": "no number"})
    refusal = await second.link.response(malformed)
    case.decide.check(
        "SESS-19", refusal.error_code == INVALID_PARAMS,
        f"expected the error {INVALID_PARAMS} for a malformed cursor, got {refusal.error_code}",
        malformed, refusal,
    )  # fmt: skip
    half = words[2]
    request = second.resume(session, replayFrom={"type": "_antiphon_after", "seq": numbers[half]})
    await second.link.response(request)
    told = spoken(second.updates(session, after=request))[0].text.split()
    later = [word for word in words if numbers[word] > numbers[half]]
    sentence = f"expected everything after the cursor {numbers[half]}, {later}, got {told}"
    frames = (request, *second.updates(session, after=request))
    if case.decide.check("QUEUE-06", sorted(told) == sorted(later), sentence, *frames):
        case.decide.check("PROXY-07", told == later, sentence, *frames)
