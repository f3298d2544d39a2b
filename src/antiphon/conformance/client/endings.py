"""Scenarios about the end of the agent: the client ends too, and does not wait for ever."""

from __future__ import annotations

import msgspec

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import PlayedAgent, state
from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.conformance.scenario import Collection

scenarios = Collection("endings")


@scenarios.add("RPC-36")
async def agent_dies_at_its_start(case: ClientCase) -> None:
    """The agent dies before it has answered `initialize`."""
    agent = await case.open({"initialize": None})
    await _is_noticed(case, agent, next(agent.link.recording.of(Role.CLIENT)))


@scenarios.add("RPC-36")
async def agent_dies_in_a_turn(case: ClientCase) -> None:
    """The agent dies between two chunks of a turn."""
    agent, prompt = await case.begin_turn()
    await _is_noticed(case, agent, prompt, agent.say("and then"))


@scenarios.add("RPC-36")
async def agent_dies_in_a_line(case: ClientCase) -> None:
    """The agent dies in the middle of a line."""
    agent, prompt = await case.begin_turn()
    chunk = agent.say("and then")
    agent.link.send_bytes(chunk.raw[: len(chunk.raw) // 2])
    await _is_noticed(case, agent, prompt, chunk)


async def _is_noticed(case: ClientCase, agent: PlayedAgent, *frames: RecordedFrame) -> None:
    await agent.link.aclose()
    case.decide.need(case.manner.exits, "the client does not end after its turn")
    case.decide.check(
        "RPC-36", await agent.ended(),
        "expected the client to give up its open requests when the agent died, and to end; it went on "
        "waiting", *frames,
    )  # fmt: skip


@scenarios.add("TRANS-07")
async def last_line_without_its_newline(case: ClientCase) -> None:
    """The last line before the end counts, also without a newline."""
    agent, prompt = await case.begin_turn()
    if case.version == 2:
        params = {"sessionId": prompt.session_id, "update": state("idle", stopReason="end_turn")}
        end = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    else:
        end = {"jsonrpc": "2.0", "id": prompt.id, "result": {"stopReason": "end_turn"}}
    line = msgspec.json.encode(end)
    sent = agent.link.recording.add(Role.AGENT, line)
    agent.link.send_bytes(line)
    await agent.link.aclose()
    case.decide.need(case.manner.exits and await agent.ended(), "the client did not end after its turn")
    code, usual = agent.run.program.exit_code, case.manner.exit_code
    case.decide.check(
        "TRANS-07", code == usual,
        f"expected the client to take the last line without its newline as the end of the turn, and to exit "
        f"with {usual} as usual; it exited with {code}", prompt, sent,
    )  # fmt: skip
