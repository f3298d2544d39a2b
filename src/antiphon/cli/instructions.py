"""What to do next, once a hub runs: commands that work as they stand, copied into another terminal."""

from __future__ import annotations

import json
import shlex

import click

from antiphon.cli.home_paths import homely
from antiphon.cli.own_command import own_command
from antiphon.hub import HubFolder, Running

BUILT_IN = "rehearsal"


def instructions(running: Running, folder: HubFolder, link: str | None, *, default: bool) -> str:
    """Tell what to do next, once the hub runs.

    link: lets a browser in, as an owner; `None` where these lines may be kept, as in a log file
    default: the hub works in the folder where commands look by themselves
    """
    program = shlex.join(own_command())
    data = "" if default else f" --data {shlex.quote(str(folder.path))}"
    agents, try_it = ", ".join(running.agents), ""
    if running.agents == [BUILT_IN]:
        agents += " (the built-in agent: offline, no language model)"
        try_it = ", say  /tour  or  plan  or  run date ,"
    command, *rest = own_command(absolute=True)
    editor = {"command": command, "args": [*rest, "acp", *shlex.split(data)]}
    title = click.style("Antiphon hub", bold=True)
    rows = [
        (f"{program} link{data}", "another link, for another browser"),
        (f"{program} attach new{data}", "another session"),
        (f"{program} sessions list{data}", "all of them; also show, rename, delete"),
    ]
    if default:  # where its token is found
        rows.append((f'{program} prompt "plan" -- {running.acp}', "one turn, with an exit code"))
    width = max(len(command) for command, _ in rows)
    more = "\n  ".join(f"{command:<{width}}   {about}" for command, about in rows)
    if link is None:
        opening = f"""For the page, get a link that lets one browser in:

      {click.style(f"{program} link{data}", bold=True)}"""
    else:
        opening = f"""Open this in a browser. It is good once, for five minutes:

      {click.style(link, bold=True)}"""
    return f"""
  {title}
  agents     {agents}
  address    {running.acp}
  sessions   {homely(str(folder.path))}

  {opening}

  Or open two more terminals. In both of them:

      {click.style(f"{program} attach{data}", bold=True)}

  Type in any{try_it} and see the same turn in all of them.

  {more}

  In an editor that speaks ACP, as a custom agent (Zed: agent_servers in its settings):

      {click.style(json.dumps({"antiphon": editor}), bold=True)}

  Ctrl-C ends the hub. Its sessions stay.
"""
