"""Scenarios about frames: unknown methods, ids, malformed input."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import say
from antiphon.conformance.client.printed import Words, printed_words
from antiphon.conformance.link import BARRIER, METHOD_NOT_FOUND, Link, NotSeen, why_unseen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("framing")

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
LARGE = 1024 * 1024
"""Bytes of a large line. The customary bound is 32 MiB."""
ODD_IDS = ("7", "judge id", -1, 9007199254740991)


async def goes_on_in_silence(link: Link, sent: RecordedFrame) -> bool:
    """Return whether the client goes on after a frame that it must not answer, and does not answer it.

    The caller has seen that the client answers barriers.
    """
    try:
        await link.barrier()
    except NotSeen:
        return False
    return not [frame for frame in link.since(sent) if frame.is_response and frame.id in (None, sent.id)]


@scenarios.add("EXT-01", "RPC-18", "RPC-05")
async def requests(case: ClientCase) -> None:
    """Each request is answered under its own id, also if nobody knows its method."""
    agent, prompt = await case.open_prompt()
    link = agent.link
    custom = link.request("_antiphon.judge/unknown", {})
    answer = await _answer(case, link, "EXT-01", custom)
    case.decide.check(
        "EXT-01", answer.error_code == METHOD_NOT_FOUND,
        f"expected the error {METHOD_NOT_FOUND} for an unknown custom method, got {answer.error_code}",
        custom, answer,
    )  # fmt: skip
    undefined = link.request("antiphon_judge/undefined", {})
    answer = await _answer(case, link, "RPC-18", undefined)
    case.decide.check(
        "RPC-18", answer.error_code == METHOD_NOT_FOUND,
        f"expected the error {METHOD_NOT_FOUND} for an unknown method, got {answer.error_code}",
        undefined, answer,
    )  # fmt: skip
    for id in ODD_IDS:
        request = link.send({"id": id, "method": BARRIER, "params": {}})
        case.decide.check(
            "RPC-05", await _is_answered(link, request),
            f"expected a response with the same id {id!r}, of the same JSON type", request,
        )  # fmt: skip
    agent.accept(prompt)
    await agent.complete(prompt)


@scenarios.add("RPC-07")
async def same_id_in_both_directions(case: ClientCase) -> None:
    """A request of the agent may have the id of the client's open prompt."""
    agent, prompt = await case.open_prompt()
    await agent.link.barrier()
    request = agent.link.send({"id": prompt.id, "method": BARRIER, "params": {}})
    expected = "expected the client to keep its own request apart from one of the agent with the same id"
    if not await _is_answered(agent.link, request):
        case.decide.check("RPC-07", False, f"{expected}; it did not answer", prompt, request)
        return
    agent.accept(prompt)
    words = Words()
    chunk = agent.say(words())
    end = agent.finish(prompt)
    found = printed_words(await agent.output(), words.all)
    case.decide.check(
        "RPC-07", found.complete, f"{expected}; its turn ended early", prompt, request, chunk, end
    )


async def _answer(case: ClientCase, link: Link, requirement: str, request: RecordedFrame) -> RecordedFrame:
    try:
        return await link.response(request)
    except NotSeen as unseen:
        case.decide.check(requirement, False, f"expected a response to an unknown method; {unseen}", request)
        raise


async def _is_answered(link: Link, request: RecordedFrame) -> bool:
    return not await why_unseen(link.response(request))


@scenarios.add("RPC-19", "EXT-02", "RPC-12")
async def frames_that_get_no_answer(case: ClientCase) -> None:
    """Unknown notifications and unmatched responses are ignored."""
    agent, prompt = await case.begin_turn()
    await agent.link.barrier()
    for requirement, what, frame in (
        ("RPC-19", "ignore an unknown notification", {"method": "antiphon_judge/undefined", "params": {}}),
        ("EXT-02", "ignore a custom notification", {"method": "_antiphon.judge/unknown", "params": {}}),
        ("RPC-12", "drop a response that it did not ask for", {"id": "judge-unmatched", "result": {}}),
    ):
        sent = agent.link.send(frame)
        ignored = await goes_on_in_silence(agent.link, sent)
        case.decide.check(requirement, ignored, f"expected the client to {what}", sent)
        case.decide.need(not agent.link.ended, f"the client did not survive the check of {requirement}")
    await agent.complete(prompt)


@scenarios.add("RPC-10", "RPC-11", "RPC-14", "RPC-04", "RPC-20")
async def malformed_input(case: ClientCase) -> None:
    """Malformed input is answered with an error, and the connection goes on."""
    agent, prompt = await case.begin_turn()
    link = agent.link
    await link.barrier()
    await _errs(case, link, "RPC-10", b"the judge logs this line to stdout", PARSE_ERROR)
    await _errs(case, link, "RPC-11", b'"no object"', INVALID_REQUEST)
    entry = b'{"jsonrpc":"2.0","id":"judge-entry","method":"_antiphon.judge/unknown"}'
    await _errs(case, link, "RPC-14", b"[" + entry + b"]", INVALID_REQUEST)
    if case.version == 2:
        await _errs(case, link, "RPC-04", entry.replace(b'"judge-entry"', b"1.5"), INVALID_REQUEST)
    wrong, answer = await link.exchange("session/request_permission", {"options": 7})
    usable = await _is_answered(link, link.request(BARRIER))
    case.decide.check(
        "RPC-20", usable and answer.error is not UNSET,
        "expected an error for malformed params, and a connection that stays usable", wrong, answer,
    )  # fmt: skip
    await agent.complete(prompt)


async def _errs(case: ClientCase, link: Link, requirement: str, line: bytes, code: int) -> None:
    """Send a line and check that it gets one error with `id: null`, and nothing else."""
    sent = link.send_raw(line)
    expected = f"expected one error {code} with `id: null`"
    try:
        barrier = await link.barrier()
    except NotSeen as unseen:
        case.decide.check(
            requirement, False, f"{expected} and a connection that stays usable; {unseen}", sent
        )
        raise
    answers = [frame for frame in link.since(sent) if frame.is_response and frame is not barrier]
    got = ", ".join(str(frame.error_code) for frame in answers) or "nothing"
    case.decide.check(
        requirement, [(frame.id, frame.error_code) for frame in answers] == [(None, code)],
        f"{expected}, got {got}", sent, *answers,
    )  # fmt: skip


@scenarios.add("TRANS-07", "RPC-38")
async def odd_lines(case: ClientCase) -> None:
    """Blank lines are ignored, and a line of a megabyte is taken."""
    agent, prompt = await case.begin_turn()
    await agent.link.barrier()
    words = Words()
    agent.link.send_bytes(b"\n\r\n\n")
    blank = agent.say(f"{words()} ")
    case.decide.check(
        "TRANS-07", await goes_on_in_silence(agent.link, blank),
        "expected the client to ignore three blank lines before this frame", blank,
    )  # fmt: skip
    case.decide.need(not agent.link.ended, "the client did not survive blank lines")
    filled: dict[str, Any] = {**say(f"{words()} "), "_meta": {"antiphon.judge": "x" * LARGE}}
    large = agent.update(filled)
    expected = f"expected the client to take a line of {LARGE} bytes"
    try:
        await agent.link.barrier()
    except NotSeen as unseen:
        case.decide.check("RPC-38", False, f"{expected}; {unseen}", large)
        return
    end = agent.finish(prompt)
    found = printed_words(await agent.output(), words.all[1:])
    case.decide.check("RPC-38", found.complete, f"{expected}; it did not show its text", large, end)
