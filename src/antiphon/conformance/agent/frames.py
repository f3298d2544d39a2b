"""Scenarios about bytes: how lines arrive, and what happens when no more come. Only for processes."""

from __future__ import annotations

import contextlib

import msgspec
from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation
from antiphon.conformance.link import BARRIER, NotSeen, why_unseen
from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.conformance.scenario import Collection

scenarios = Collection("framing")


async def opened(case: AgentCase) -> Conversation:
    """Open a connection to a process; without one, the scenario does not apply."""
    case.decide.applies(case.target.stdio, "the agent is not reached over stdin and stdout")
    return await case.open()


def request(id: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": BARRIER, "params": {}})


def record(agent: Conversation, line: bytes) -> RecordedFrame:
    """Record a frame whose bytes are sent in another way."""
    return agent.link.recording.add(Role.CLIENT, line)


@scenarios.add("TRANS-02")
async def lines_may_arrive_in_pieces(case: AgentCase) -> None:
    """A message ends with its newline: pieces and several messages in one write are read alike."""
    agent = await opened(case)
    pieces, one, two = request("pieces"), request("one"), request("two")
    sent = [record(agent, line) for line in (pieces, one, two)]
    for piece in (pieces[:20], pieces[20:] + b"\n" + one + b"\n" + two + b"\n"):
        record(agent, b"")  # an agent that reads pieces as messages refuses each
        agent.link.send_bytes(piece)
    with contextlib.suppress(NotSeen):
        await agent.link.barrier()
    for frame in sent:
        answers = [each for each in agent.link.since(frame) if each.is_response and each.id == frame.id]
        case.decide.check(
            "TRANS-02", len(answers) == 1,
            f"expected one response to the request {frame.id!r}, got {len(answers)}", frame, *answers,
        )  # fmt: skip


@scenarios.add("TRANS-07")
async def blank_lines_are_ignored(case: AgentCase) -> None:
    """Blank lines get no answer, and the last line counts without its newline."""
    agent = await opened(case)
    first = agent.link.send_raw(request("before"))
    for _ in range(2):
        record(agent, b"")
        agent.link.send_bytes(b"\n")
    await agent.link.barrier()
    answers = [frame for frame in agent.link.since(first) if frame.is_response and frame.error is not UNSET]
    case.decide.check(
        "TRANS-07", all(frame.id is not None for frame in answers),
        "expected no answer to a blank line", first, *answers,
    )  # fmt: skip
    last = request("last")
    sent = record(agent, last)
    agent.link.send_bytes(last)
    await agent.link.end_input()
    reason = await why_unseen(agent.link.response(sent))
    expected = "expected a response to a last line without a newline at the end of input"
    case.decide.check("TRANS-07", not reason, expected, sent)


@scenarios.add("TRANS-06")
async def the_agent_exits_at_the_end_of_input(case: AgentCase) -> None:
    """When its input ends, the agent exits."""
    agent = await opened(case)
    await agent.new_session()
    last = await agent.link.barrier()
    record(agent, b"")  # some read the end of input as a blank line
    await agent.link.end_input()
    reason = await why_unseen(agent.link.end())
    expected = f"expected the agent to exit at the end of input; {reason}"
    case.decide.check("TRANS-06", not reason, expected, last)
