"""`antiphon serve`: a hub, from the command line."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from antiphon.cli.agents import resolve
from antiphon.cli.exits import Exit, Failure
from antiphon.errors import AntiphonError
from antiphon.hub import Hub, HubFolder, Running
from antiphon.hub.folder import write_private
from antiphon.stores.sqlite import SQLiteStore

BUILT_IN = "rehearsal"


@dataclass(frozen=True)
class Serving:
    """What was asked for on the command line."""

    agents: Sequence[tuple[str, str]]
    agent: Sequence[str]
    host: str
    port: int
    data: str | None
    ready_file: str | None
    turn_complete: bool
    unattended: str
    version: int | None
    verbose: bool


def run_serve(serving: Serving) -> Exit:
    logging.basicConfig(
        level=logging.INFO if serving.verbose else logging.WARNING, format="%(name)s: %(message)s"
    )
    logging.getLogger("websockets").setLevel(logging.WARNING)
    try:
        with ExitStack() as stack:
            _serve(serving, stack)
    except (Failure, AntiphonError) as failure:
        print(f"antiphon: {failure}", file=sys.stderr)
        return failure.code if isinstance(failure, Failure) else Exit.ERROR
    return Exit.DONE


def _serve(serving: Serving, stack: ExitStack) -> None:
    agents = named_agents(serving.agents, serving.agent)
    folder = HubFolder(serving.data)
    folder.make()
    stack.enter_context(folder.held())
    hub = Hub(
        agents,
        store=SQLiteStore(folder.sessions),
        token=folder.token,
        hosts=[serving.host],
        turn_complete=serving.turn_complete,
        unattended=serving.unattended,
        version=serving.version,
        mark=folder.mark,
    )

    def ready() -> None:
        host = f"[{serving.host}]" if ":" in serving.host else serving.host
        address = f"{host}:{hub.port}"
        running = Running(
            url=f"http://{address}/",
            acp=f"ws://{address}/acp",
            token=hub.token,
            pid=os.getpid(),
            agents=list(agents),
        )
        stack.enter_context(folder.told(running))
        if serving.ready_file is not None:
            write_private(Path(serving.ready_file), msgspec.json.encode(running))
        _explain(running, folder, serving)

    hub.run(f"{serving.host}:{serving.port}", on_ready=ready)


def _explain(running: Running, folder: HubFolder, serving: Serving) -> None:
    data = f" --data {shlex.quote(str(folder.path))}" if serving.data is not None else ""
    sys.stderr.write(
        f"The hub serves {', '.join(running.agents)} at {running.acp}; its sessions are in {folder.path}.\n"
        f"  antiphon attach new{data}     a session here; type to prompt\n"
        f"  antiphon sessions list{data}  what there is; attach to any of it, from many places at once\n"
        f"  antiphon acp{data}            for an editor: looks like an agent, and is this hub\n"
    )
    sys.stderr.flush()


def named_agents(named: Sequence[tuple[str, str]], agent: Sequence[str]) -> dict[str, Any]:
    """The agents of a hub by name; without any, the built-in one. Raises `Failure`."""
    agents: dict[str, Any] = {}
    if agent:
        target = resolve(agent)
        agents[agent[0].rpartition("/")[2] if "://" not in agent[0] else "agent"] = target
    for name, command in named:
        if name in agents:
            raise Failure(f"there are two agents of the name {name!r}", Exit.USAGE)
        agents[name] = resolve(shlex.split(command))
    return agents or {BUILT_IN: [sys.executable, "-m", "antiphon", "rehearse"]}
