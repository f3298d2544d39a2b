"""What to do next, once a hub runs: commands that work as they stand, copied into another terminal."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from antiphon.cli.describing import homely
from antiphon.hub import HubFolder, Running

BUILT_IN = "rehearsal"


def instructions(running: Running, folder: HubFolder, *, default: bool) -> str:
    """`default`: it works in the folder where commands look by themselves."""
    program = shlex.join(own_command())
    data = "" if default else f" --data {shlex.quote(str(folder.path))}"
    agents, try_it = ", ".join(running.agents), ""
    if running.agents == [BUILT_IN]:
        agents += " (the built-in agent: offline, no language model)"
        try_it = ", say  plan  or  run date ,"
    command, *rest = own_command(absolute=True)
    editor = {"command": command, "args": [*rest, "acp", *shlex.split(data)]}
    title = click.style("Antiphon hub", bold=True)
    rows = [
        (f"{program} attach new{data}", "another session"),
        (f"{program} sessions list{data}", "all of them; also show, rename, delete"),
    ]
    if default:  # where its token is found
        rows.append((f'{program} prompt "plan" -- {running.acp}', "one turn, with an exit code"))
    width = max(len(command) for command, _ in rows)
    more = "\n  ".join(f"{command:<{width}}   {about}" for command, about in rows)
    return f"""
  {title}
  agents     {agents}
  address    {running.acp}
  sessions   {homely(str(folder.path))}

  Open two more terminals. In both of them:

      {click.style(f"{program} attach{data}", bold=True)}

  Type in either{try_it} and see the same turn in both.

  {more}

  In an editor that speaks ACP, as a custom agent (Zed: agent_servers in its settings):

      {click.style(json.dumps({"antiphon": editor}), bold=True)}

  Ctrl-C ends the hub. Its sessions stay.
"""


def own_command(*, absolute: bool = False) -> list[str]:
    """How this program is called from here: by the shortest words that lead to this very one."""
    script = Path(sys.argv[0])
    if script.name == "__main__.py":
        return [_short(Path(sys.executable), absolute), "-m", "antiphon"]
    found = shutil.which(script.name)
    if not absolute and found is not None and os.path.realpath(found) == os.path.realpath(script):
        return [script.name]
    return [_short(script, absolute)]


def _short(path: Path, absolute: bool) -> str:
    whole = Path(os.path.abspath(path))  # not resolved: an environment is known by its link
    if absolute or not whole.is_relative_to(Path.cwd()):
        return str(whole)
    return str(whole.relative_to(Path.cwd()))
