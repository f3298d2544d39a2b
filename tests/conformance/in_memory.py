"""Judged agents in the same process: the judge speaks to them over a memory pair."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from antiphon.conformance.targets import FunctionTarget
from antiphon.jsonrpc.lines import Received
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair


def agent_target(make_agent: Callable[[Callable[[dict[str, Any]], None]], Any]) -> FunctionTarget:
    """Return a target whose every connection is a new agent, made by `make_agent(write)`."""

    def open_link() -> Transport:
        ours, theirs = memory_pair()

        def write(frame: Any) -> None:
            theirs.send(frame if isinstance(frame, bytes) else json.dumps(frame).encode())

        agent = make_agent(write)

        def receive(frames: list[Received]) -> None:
            for line in frames:
                if isinstance(line, bytes):
                    agent.receive_line(line)

        theirs.start(receive, agent.end_of_input)
        return ours

    return FunctionTarget(open_link)
