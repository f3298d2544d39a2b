"""`antiphon agents`: the agents of the hub and the known ones, each with its status and advice."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

import msgspec

from antiphon.cli.agents import known_agent
from antiphon.cli.commands.options import HubPlace
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub_client import find_hub, open_client, reporting
from antiphon.cli.output.table import write_table
from antiphon.cli.program import command_line
from antiphon.client import Client, advice_sentence
from antiphon.hub import catalogue
from antiphon.schema.antiphon.hub import (
    AddAgentRequest,
    AddAgentResponse,
    AgentInfo,
    AgentStatus,
    ListAgentsRequest,
    ListAgentsResponse,
)
from antiphon.text_safety import safe_json, safe_line

HEADERS = ("NAME", "STATUS", "AGENT")


@reporting
async def run_list(*, json: bool, place: HubPlace) -> None:
    served: list[AgentInfo] | None = None
    if find_hub(place) is not None:
        async with open_client(place) as client:
            served = await ask_agents(client)
    here = place.hub is None  # what is installed on another machine is not known
    found = [*(served or ()), *(_others(served, place.data) if here else ())]
    if json:
        for info in found:
            sys.stdout.write(safe_json(msgspec.json.encode(info).decode()) + "\n")
        return
    write_table(HEADERS, [_row(info) for info in found], map(_about, found))
    if served is None and here:
        serve = command_line("serve", place.data)
        print(f"No hub runs: `{serve}` starts one with those that are installed.", file=sys.stderr)


async def ask_agents(client: Client) -> list[AgentInfo]:
    """Return the agents of a hub: only their names, if it is an older one."""
    if client.abilities.ours.list_agents is None:
        return [AgentInfo(name=name, status=AgentStatus.INSTALLED) for name in client.agents]
    answer: ListAgentsResponse = await client.connection.call("_antiphon/list_agents", ListAgentsRequest())
    return answer.agents


def _others(served: Iterable[AgentInfo] | None, data: str | None) -> Iterable[AgentInfo]:
    """Yield the known agents that the hub of this machine does not list."""
    listed = {info.name for info in served or ()}
    for known in catalogue().values():
        if known.name in listed:
            continue
        if not known.installed:
            status, advice = AgentStatus.MISSING, known.install_advice()
        else:
            status, advice = AgentStatus.INSTALLED, None
            if served is not None:
                add = command_line(f"agents add {known.name}", data)
                advice = f"the running hub does not serve it; `{add}` adds it"
        yield AgentInfo(name=known.name, title=known.title, status=status, advice=advice)


def _row(info: AgentInfo) -> tuple[str, str, str]:
    status = safe_line(info.status.replace("_", " "), limit=20)
    return safe_line(info.name, limit=64), status, safe_line(info.title or "", limit=60)


def _about(info: AgentInfo) -> list[str]:
    return [safe_line(each, limit=300) for each in (info.detail, advice_sentence(info.advice or "")) if each]


@reporting
async def run_add(*, name: str, agent: Sequence[str], place: HubPlace) -> Exit:
    async with open_client(place) as client:
        if client.abilities.ours.add_agent is None:
            raise Failure("this hub takes no agents while it runs: restart it with --agent")
        command = _absolute(agent) if agent else None
        asked = AddAgentRequest(name=name, command=command)
        answer: AddAgentResponse = await client.connection.call("_antiphon/add_agent", asked)
    info = answer.agent
    start = command_line(f"attach new --agent {name}", place.data)
    print(f"{safe_line(info.name)} is added; `{start}` starts a session with it")
    return Exit.DONE


def _absolute(command: Sequence[str]) -> list[str]:
    """Return a command that means the same in the hub's folder: `./agent` gets its whole path. The name of a
    known agent stands for its command."""
    known = known_agent(command)
    program, *rest = command if known is None else known.command
    near = os.sep in program and "://" not in program
    return [os.path.abspath(program) if near else program, *rest]
