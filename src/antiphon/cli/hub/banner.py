"""What `antiphon serve` prints: how to use the hub, where one runs already, and what was kept."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from antiphon.cli.agents import adding
from antiphon.cli.program import command_line, own_command
from antiphon.hub import HubFolder, Running, catalogue, is_loopback
from antiphon.paths import short_path

BUILT_IN = "rehearsal"
"""The name of the built-in agent."""


@dataclass(frozen=True)
class Banner:
    """How to use a hub that runs."""

    running: Running
    folder: HubFolder
    default: bool
    """Whether the hub uses the data folder that other commands use by default."""
    link: str | None = None
    """Lets a browser in, as an owner; `None` if the text may be stored, as in a log file."""
    opened: bool = False
    """Whether the browser is opened."""

    def started(self) -> str:
        """Return the text for a hub that has just started."""
        return f"""
  {_bold("Antiphon hub")}

  {self._page()}

  {self._terminal()}

  {self._editor()}

  {self._facts()}

  {self._more()}

  Ctrl-C stops the hub. Its sessions are kept.
"""

    def runs_already(self, missing: Mapping[str, Sequence[str]]) -> str:
        """Return the text for a second start. `missing` are agents that were asked for and that the hub does
        not have, with their words."""
        data = None if self.default else str(self.folder.path)
        commands = [adding(name, words, data) for name, words in missing.items()]
        wanted = f"It does not serve {', '.join(missing)}. " if missing else ""
        add = "\n  ".join(f"    {command}" for command in commands or [command_line("agents add NAME", data)])
        return f"""
  {_bold("A hub already runs here")} (process {self.running.pid})

  {self._page()}

  {self._terminal()}

  {wanted}To add an agent to it:

  {add}

  {self._facts()}

  To stop it:                                kill {self.running.pid}
  To start a second one in its own folder:   {self._program} serve --data DIR
"""

    @property
    def _program(self) -> str:
        return shlex.join(own_command())

    @property
    def _data(self) -> str:
        return "" if self.default else f" --data {shlex.quote(str(self.folder.path))}"

    def _page(self) -> str:
        if self.link is None:
            return f"""To open the page, get a link that lets one browser in:

      {_bold(f"{self._program} link{self._data}")}"""
        how = "The page opens in your browser. If it does not, open this link." if self.opened else (
            "Open this link in a browser."
        )  # fmt: skip
        return f"""{how} It works once, within five minutes:

      {_bold(self.link)}"""

    def _terminal(self) -> str:
        chat, attach = f"{self._program} chat{self._data}", f"{self._program} attach{self._data}"
        width = max(len(chat), len(attach))
        return f"""In another terminal:

      {_bold(chat)}{" " * (width - len(chat))}   the same session on a full screen
      {_bold(attach)}{" " * (width - len(attach))}   … or line by line"""

    def _editor(self) -> str:
        command, *rest = own_command(absolute=True)
        args = [*rest, "acp", *shlex.split(self._data)]
        server = {"Antiphon": {"type": "custom", "command": command, "args": args}}
        return f"""In an editor: add a custom agent. In Zed, add this to settings.json:

      {_bold(json.dumps({"agent_servers": server}))}"""

    def _facts(self) -> str:
        running, sessions = self.running, short_path(str(self.folder.path))
        rows = [("agents", _agents(running.agents))]
        if BUILT_IN in running.agents:
            rows += [("", f"{BUILT_IN} is built in and works offline: try  /tour ,  plan  or  run date")]
        rows += [("", f"`{self._program} agents{self._data}` lists them, and how to get more")]
        rows += [("address", running.acp)]
        rows += [("sessions", running.store or sessions)]
        if running.store:
            rows.append(("data", sessions))
        return "\n  ".join(f"{name:<10} {value}" for name, value in rows)

    def _more(self) -> str:
        program, data = self._program, self._data
        rows = [
            (f"{program} link{data}", "a link for another browser"),
            (f"{program} sessions list{data}", "all sessions; also show, rename, delete"),
        ]
        if not is_loopback(_host(self.running.url)):
            rows.insert(1, (f"{program} link --qr{data}", "… as a code for a phone"))
        if self.default:  # where its token is found
            rows.append((f'{program} prompt "plan" -- {self.running.acp}', "one turn, with an exit code"))
        width = max(len(command) for command, _ in rows)
        return "\n  ".join(f"{command:<{width}}   {about}" for command, about in rows)


def farewell(folder: HubFolder, sessions: int, *, program: str) -> str:
    """Return the text for a hub that was stopped."""
    if not sessions:
        return "The hub has stopped. There were no sessions."
    count = "1 session is" if sessions == 1 else f"{sessions} sessions are"
    place = short_path(str(folder.path))
    return f"The hub has stopped. {count} kept in {place}; `{program}` continues with them."


def _agents(names: Sequence[str]) -> str:
    installed = [name for name in names if name != BUILT_IN]
    if installed or BUILT_IN not in names:
        return ", ".join(names)
    known = ", ".join(list(catalogue())[:3])
    return f"{BUILT_IN}; no other known agent ({known}, …) is installed"


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition(":")[0].strip("[]")


def _bold(text: str) -> str:
    return click.style(text, bold=True)
