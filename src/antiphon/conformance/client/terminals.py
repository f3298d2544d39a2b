"""Scenarios about the terminals of v1 clients that advertise them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import SESSION, PlayedAgent
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("terminals")

FOREVER = "echo judge; exec sleep 600"
LIMIT = 51
"""Bytes of output to keep: an odd number, in the middle of a character of two bytes."""
WIDE = "é" * 30 + "ü" * 30


class Terminal:
    """One terminal of the client, from the agent's side."""

    def __init__(self, agent: PlayedAgent, id: str, created: RecordedFrame) -> None:
        self._agent = agent
        self._id = id
        self.created = created

    @classmethod
    async def create(cls, agent: PlayedAgent, script: str, **params: Any) -> Terminal:
        """Run a script of the shell. Raises `NotSeen` if the client refuses."""
        command = {"command": "sh", "args": ["-c", script], **params}
        _, answer = await agent.link.exchange("terminal/create", {"sessionId": SESSION, **command})
        id = answer.get("result", "terminalId")
        if answer.error is not UNSET or not isinstance(id, str):
            raise NotSeen(f"the client made no terminal: {answer.error_code}")
        return cls(agent, id, answer)

    async def call(self, verb: str) -> RecordedFrame:
        """Send a request about the terminal and return its response."""
        params = {"sessionId": SESSION, "terminalId": self._id}
        return await self._agent.link.response(self._agent.link.request(f"terminal/{verb}", params))


@scenarios.add("TERMV1-02", "TERMV1-04", "TERMV1-05", "TERMV1-06", versions=(1,))
async def life_of_a_terminal(case: ClientCase) -> None:
    """A terminal is made at once, shows output while it runs, can be killed, and is gone once released."""
    agent = await case.open()
    _require_offer(case, agent)
    prompt = await agent.prompt()
    await _runs(case, agent)
    await _exits(case, agent)
    await agent.complete(prompt)


async def _runs(case: ClientCase, agent: PlayedAgent) -> None:
    expected = "expected `terminalId` while the command runs"
    request = agent.link.request(
        "terminal/create", {"sessionId": SESSION, "command": "sh", "args": ["-c", FOREVER]}
    )
    try:
        answer = await agent.link.response(request)
    except NotSeen as unseen:
        case.decide.check("TERMV1-02", False, f"{expected}; {unseen}", request)
        raise
    case.decide.need(answer.error is UNSET, f"the client refused to make a terminal: {answer.error_code}")
    id = answer.get("result", "terminalId")
    if not case.decide.check("TERMV1-02", isinstance(id, str), f"{expected}, got {id!r}", request, answer):
        raise NotSeen("the client made no terminal")
    terminal = Terminal(agent, id, answer)
    try:
        output = await terminal.call("output")
    except NotSeen as unseen:
        case.decide.check("TERMV1-04", False, f"expected `terminal/output` while it runs; {unseen}", answer)
        raise
    text, status = output.get("result", "output"), output.get("result", "exitStatus")
    case.decide.check(
        "TERMV1-04",
        isinstance(text, str)
        and isinstance(output.get("result", "truncated"), bool)
        and (status is UNSET or status is None),
        "expected `output` and `truncated`, and no `exitStatus` while the command runs", answer, output,
    )  # fmt: skip
    killed = await terminal.call("kill")
    case.decide.need(killed.error is UNSET, f"the client refused to kill a terminal: {killed.error_code}")
    after = await terminal.call("output")
    case.decide.check(
        "TERMV1-06",
        after.error is UNSET,
        "expected a killed terminal to be valid until its release",
        killed,
        after,
    )
    await terminal.call("wait_for_exit")
    released = await terminal.call("release")
    gone = await terminal.call("output")
    case.decide.check(
        "TERMV1-06",
        gone.error is not UNSET,
        "expected the id of a released terminal to be invalid",
        released,
        gone,
    )


async def _exits(case: ClientCase, agent: PlayedAgent) -> None:
    terminal = await Terminal.create(agent, "exit 7")
    exited = await terminal.call("wait_for_exit")
    code = exited.get("result", "exitCode")
    case.decide.check(
        "TERMV1-05",
        code == 7,
        f"expected the exit code 7 of the command, got {code!r}",
        terminal.created,
        exited,
    )
    await terminal.call("release")


@scenarios.add("TERMV1-03", versions=(1,))
async def limit_of_output(case: ClientCase) -> None:
    """Over its limit, the output loses whole characters at its start."""
    agent = await case.open()
    _require_offer(case, agent)
    prompt = await agent.prompt()
    terminal = await Terminal.create(agent, f"printf '%s' '{WIDE}'", outputByteLimit=LIMIT)
    await terminal.call("wait_for_exit")
    output = await terminal.call("output")
    text = output.get("result", "output")
    case.decide.check(
        "TERMV1-03",
        isinstance(text, str) and len(text.encode()) <= LIMIT and WIDE.endswith(text) and text != "",
        f"expected at most {LIMIT} bytes of whole characters from the end of the output, got {text!r}",
        terminal.created, output,
    )  # fmt: skip
    await terminal.call("release")
    await agent.complete(prompt)


def _require_offer(case: ClientCase, agent: PlayedAgent) -> None:
    offered = agent.client_capabilities.get("terminal") is True
    case.decide.applies(offered, "the client does not advertise `terminal`")
