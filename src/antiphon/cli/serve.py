"""`antiphon serve`: run a hub, and print how to use it."""

from __future__ import annotations

import json
import logging
import os
import shlex
import ssl
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from antiphon.cli.agents import resolve
from antiphon.cli.commands.options import StorePlace
from antiphon.cli.error_lines import print_error
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.output.streams import set_up_logging, write_styled
from antiphon.cli.program import own_command, short_path
from antiphon.cli.shared_store import make_store
from antiphon.errors import AntiphonError
from antiphon.hub import (
    Access,
    Hub,
    HubFolder,
    HubLimits,
    HubOptions,
    QuestionOptions,
    Running,
    default_agent_name,
    is_loopback,
    read_tokens,
)
from antiphon.private_files import write_private
from antiphon.stores import SQLiteStore
from antiphon.web import page

if TYPE_CHECKING:
    from antiphon.stores import JetStreamStore

PORT = 8642


@dataclass(frozen=True)
class ServeOptions:
    """The arguments of the command."""

    agents: Sequence[tuple[str, Sequence[str]]]
    agent: Sequence[str]
    host: str
    port: int | None
    data: str | None
    ready_file: str | None
    turn_complete: bool
    unattended: Literal["wait", "reject", "allow-read"]
    busy: Literal["queue", "steer", "interrupt", "agent"]
    share: bool
    idle: float
    start: float
    files: Literal["editor", "hub", "none"]
    version: Mapping[str, Literal[1, 2]]
    """Versions of ACP by agent. The version for all other agents has the name ""."""
    tls_cert: str | None
    tls_key: str | None
    insecure_bind: bool
    hosts: Sequence[str]
    origins: Sequence[str]
    public_url: str | None
    trusted_proxies: Sequence[str]
    """Each is a list, separated by commas."""
    questions: Literal["first", "owner", "designated"]
    question_expiry: float | None
    max_frame: int | None
    max_connections: int | None
    max_connections_per_token: int | None
    max_sessions: int | None
    prompts_per_minute: int | None
    verbose: bool
    store: StorePlace | None
    """The shared store; without it, the sessions are in the data folder."""
    label: str
    movable: bool

    @property
    def limits(self) -> HubLimits:
        given = {
            "frame": self.max_frame,
            "connections": self.max_connections,
            "connections_per_token": self.max_connections_per_token,
            "sessions": self.max_sessions,
            "prompts_per_minute": self.prompts_per_minute,
        }
        return HubLimits(**{name: value for name, value in given.items() if value is not None})


def run_serve(**given: Any) -> Exit:
    serving = ServeOptions(**given)
    set_up_logging(logging.INFO if serving.verbose else logging.WARNING)
    logging.getLogger("websockets").setLevel(logging.WARNING)
    try:
        with ExitStack() as stack:
            _serve(serving, stack)
    except (Failure, AntiphonError, OSError) as failure:
        return print_error(failure)
    return Exit.DONE


def _serve(serving: ServeOptions, stack: ExitStack) -> None:
    folder = HubFolder(serving.data)
    agents = named_agents(serving.agents, serving.agent) or {BUILT_IN: built_in(folder)}
    strange = set(serving.version) - {"", *agents}
    if strange:
        names = ", ".join(sorted(strange))
        raise Failure(f"--acp-version names {names}, but the agents are {', '.join(agents)}", Exit.USAGE)
    tls = _tls(serving)
    shared = None if serving.store is None else make_store(serving.store, create=True)
    folder.make()
    read_tokens(folder.tokens)  # report a wrong file before the start
    ready_file = None if serving.ready_file is None else _prepare(Path(serving.ready_file), stack)
    stack.enter_context(folder.held())
    hub = Hub(
        agents,
        store=shared or SQLiteStore(folder.sessions),
        version={name: serving.version.get(name, serving.version.get("")) for name in agents},
        options=HubOptions(
            busy=serving.busy,
            turn_complete=serving.turn_complete,
            files=serving.files,
            share=serving.share,
            idle=serving.idle,
            start=serving.start,
            mark=folder.mark,
            known_agents=folder.known_agents,
            label=serving.label,
            movable=serving.movable,
        ),
        questions=QuestionOptions(
            asked=serving.questions, unattended=serving.unattended, expiry=serving.question_expiry
        ),
        access=Access(
            token=folder.token,
            tokens=folder.tokens,
            audit=folder.audit,
            hosts=[serving.host, *serving.hosts],
            origins=serving.origins,
            public_url=serving.public_url,
            trusted_proxies=[one for many in serving.trusted_proxies for one in many.split(",")],
        ),
        limits=serving.limits,
        page=page(),
    )
    host, name = _bracketed(serving.host), _bracketed(_name(serving))

    def ready() -> None:
        local = f"http{'' if tls is None else 's'}://{name}:{hub.port}"
        running = Running(
            url=f"{hub.public_url or local}/",
            acp=f"ws{'' if tls is None else 's'}://{name}:{hub.port}/acp",
            token=hub.token,
            pid=os.getpid(),
            agents=list(agents),
            ca=os.path.abspath(serving.tls_cert) if serving.tls_cert else "",
            store="" if shared is None else _kept_in(shared),
        )
        stack.enter_context(folder.published(running))
        if ready_file is not None:
            write_private(ready_file, msgspec.json.encode(running))
        # The link makes its reader an owner, so it must not get into a log file.
        link = hub.login_link(running.url) if sys.stderr.isatty() else None
        text = instructions(running, folder, link, default=serving.data is None)
        write_styled(sys.stderr, click.unstyle(text) if os.environ.get("NO_COLOR") else text)

    hub.run(
        f"{host}:{PORT if serving.port is None else serving.port}",
        or_any_port=serving.port is None,
        on_ready=ready,
        tls=tls,
        insecure=serving.insecure_bind,
    )


def _kept_in(store: JetStreamStore) -> str:
    return f"NATS at {store.servers} ({store.replicas} replica{'' if store.replicas == 1 else 's'})"


def _name(serving: ServeOptions) -> str:
    """Return the host name for clients on this machine. Over TLS it must match the certificate."""
    if serving.host not in ("0.0.0.0", "::"):
        return serving.host
    if serving.tls_cert is not None and serving.hosts:
        return serving.hosts[0]
    return "::1" if serving.host == "::" else "127.0.0.1"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _tls(serving: ServeOptions) -> ssl.SSLContext | None:
    """Return the TLS context. Raises `Failure` if other machines could connect without TLS by accident."""
    if serving.tls_cert is None:
        if serving.tls_key is not None:
            raise Failure("--tls-key needs --tls-cert", Exit.USAGE)
        if not serving.insecure_bind and not is_loopback(serving.host):
            raise Failure(
                f"other machines can reach {serving.host}: give --tls-cert and --tls-key, or "
                "--insecure-bind, which lets others on the network read the traffic and the token",
                Exit.USAGE,
            )
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(serving.tls_cert, serving.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise Failure(f"cannot use the certificate {serving.tls_cert}: {error}", Exit.USAGE) from error
    return context


def _prepare(ready_file: Path, stack: ExitStack) -> Path:
    """Remove the ready file of an earlier hub, and ours at the end: it exists while clients can connect."""
    if not ready_file.parent.is_dir():
        raise Failure(f"the folder {ready_file.parent} of the ready file does not exist", Exit.USAGE)

    ready_file.unlink(missing_ok=True)  # left by a hub that was killed
    stack.callback(ready_file.unlink, missing_ok=True)
    return ready_file


def named_agents(named: Sequence[tuple[str, Sequence[str]]], agent: Sequence[str]) -> dict[str, Any]:
    """Return the agents of a hub by name. Raises `Failure`."""
    agents: dict[str, Any] = {default_agent_name(agent): resolve(agent)} if agent else {}
    for name, command in named:
        if name in agents:
            raise Failure(f"two agents have the name {name!r}", Exit.USAGE)
        agents[name] = resolve(command)
    return agents


def built_in(folder: HubFolder) -> list[str]:
    """Return the command of the built-in agent. It stores its sessions, so that they survive a crash."""
    return [sys.executable, "-m", "antiphon", "rehearse", "--data", str(folder.path / BUILT_IN)]


BUILT_IN = "rehearsal"


def instructions(running: Running, folder: HubFolder, link: str | None, *, default: bool) -> str:
    """Return the instructions that are printed when the hub runs.

    link: lets a browser in, as an owner; `None` if the text may be stored, as in a log file
    default: the hub uses the data folder that other commands use by default
    """
    program = shlex.join(own_command())
    data = "" if default else f" --data {shlex.quote(str(folder.path))}"
    agents, try_it = ", ".join(running.agents), ""
    if running.agents == [BUILT_IN]:
        agents += " (the built-in agent: offline, no language model)"
        try_it = " (try  /tour ,  plan  or  run date )"
    sessions = short_path(str(folder.path))
    if running.store:
        sessions = f"{running.store}\n  data       {sessions}"
    command, *rest = own_command(absolute=True)
    editor = {"command": command, "args": [*rest, "acp", *shlex.split(data)]}
    title = click.style("Antiphon hub", bold=True)
    rows = [
        (f"{program} link{data}", "a link for another browser"),
        (f"{program} attach new{data}", "a new session"),
        (f"{program} sessions list{data}", "all sessions; also show, rename, delete"),
    ]
    if default:  # where its token is found
        rows.append((f'{program} prompt "plan" -- {running.acp}', "one turn, with an exit code"))
    width = max(len(command) for command, _ in rows)
    more = "\n  ".join(f"{command:<{width}}   {about}" for command, about in rows)
    if link is None:
        opening = f"""To open the page, get a link that lets one browser in:

      {click.style(f"{program} link{data}", bold=True)}"""
    else:
        opening = f"""Open this link in a browser. It works once, within five minutes:

      {click.style(link, bold=True)}"""
    return f"""
  {title}
  agents     {agents}
  address    {running.acp}
  sessions   {sessions}

  {opening}

  Or open two more terminals, and run in both:

      {click.style(f"{program} attach{data}", bold=True)}

  Type in one of them{try_it}. All of them show the same turn.

  {more}

  For an editor that speaks ACP, add a custom agent (in Zed: agent_servers in the settings):

      {click.style(json.dumps({"antiphon": editor}), bold=True)}

  Ctrl-C stops the hub. Its sessions stay.
"""
