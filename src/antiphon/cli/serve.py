"""`antiphon serve`: a hub, from the command line."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from antiphon.cli.advice import tell
from antiphon.cli.agents import resolve
from antiphon.cli.exits import Exit, Failure
from antiphon.cli.instructions import BUILT_IN, instructions
from antiphon.cli.output import set_up_logging, write_styled
from antiphon.errors import AntiphonError
from antiphon.hub import Hub, HubFolder, Running
from antiphon.hub.access.limits import HubLimits
from antiphon.hub.access.origins import is_loopback
from antiphon.hub.access.tokens import read_tokens
from antiphon.hub.targets import called
from antiphon.private_files import write_private
from antiphon.stores.sqlite import SQLiteStore
from antiphon.web import page

PORT = 8642


@dataclass(frozen=True)
class Serving:
    """What was asked for on the command line."""

    agents: Sequence[tuple[str, Sequence[str]]]
    agent: Sequence[str]
    host: str
    port: int | None
    data: str | None
    ready_file: str | None
    turn_complete: bool
    unattended: str
    busy: str
    share: bool
    idle: float
    start: float
    files: str
    version: Mapping[str, int]
    """Of ACP, by agents; that for all others has the name ""."""
    tls_cert: str | None
    tls_key: str | None
    insecure_bind: bool
    hosts: Sequence[str]
    origins: Sequence[str]
    public_url: str | None
    trusted_proxies: Sequence[str]
    """Each a list with commas."""
    questions: str
    question_expiry: float | None
    max_frame: int | None
    max_connections: int | None
    max_connections_per_token: int | None
    max_sessions: int | None
    prompts_per_minute: int | None
    verbose: bool

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


def run_serve(serving: Serving) -> Exit:
    set_up_logging(logging.INFO if serving.verbose else logging.WARNING)
    logging.getLogger("websockets").setLevel(logging.WARNING)
    try:
        with ExitStack() as stack:
            _serve(serving, stack)
    except (Failure, AntiphonError, OSError) as failure:
        return tell(failure)
    return Exit.DONE


def _serve(serving: Serving, stack: ExitStack) -> None:
    folder = HubFolder(serving.data)
    agents = named_agents(serving.agents, serving.agent) or {BUILT_IN: built_in(folder)}
    strange = set(serving.version) - {"", *agents}
    if strange:
        raise Failure(f"--acp-version names {', '.join(sorted(strange))}, which is no agent here", Exit.USAGE)
    tls = _tls(serving)
    folder.make()
    read_tokens(folder.tokens)  # what is wrong with it is told here
    ready_file = None if serving.ready_file is None else _prepare(Path(serving.ready_file), stack)
    stack.enter_context(folder.held())
    hub = Hub(
        agents,
        store=SQLiteStore(folder.sessions),
        token=folder.token,
        hosts=[serving.host, *serving.hosts],
        origins=serving.origins,
        public_url=serving.public_url,
        trusted_proxies=[one for many in serving.trusted_proxies for one in many.split(",")],
        questions=serving.questions,
        question_expiry=serving.question_expiry,
        limits=serving.limits,
        tokens=folder.tokens,
        audit=folder.audit,
        known_agents=folder.known_agents,
        start=serving.start,
        turn_complete=serving.turn_complete,
        unattended=serving.unattended,
        busy=serving.busy,
        share=serving.share,
        idle=serving.idle,
        files=serving.files,
        version={name: serving.version.get(name, serving.version.get("")) for name in agents},
        mark=folder.mark,
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
        )
        stack.enter_context(folder.published(running))
        if ready_file is not None:
            write_private(ready_file, msgspec.json.encode(running))
        # Whoever reads a log file, or the output of a service, must not become the hub's owner by it.
        link = hub.browsers.link(running.url) if sys.stderr.isatty() else None
        told = instructions(running, folder, link, default=serving.data is None)
        write_styled(sys.stderr, click.unstyle(told) if os.environ.get("NO_COLOR") else told)

    port = _free(serving.host) if serving.port is None else serving.port
    hub.run(f"{host}:{port}", on_ready=ready, tls=tls, insecure=serving.insecure_bind)


def _name(serving: Serving) -> str:
    """By which this machine reaches it: where it listens everywhere, over TLS the one of its certificate."""
    if serving.host not in ("0.0.0.0", "::"):
        return serving.host
    if serving.tls_cert is not None and serving.hosts:
        return serving.hosts[0]
    return "::1" if serving.host == "::" else "127.0.0.1"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _tls(serving: Serving) -> ssl.SSLContext | None:
    """Raises `Failure` where it would be reached in the clear, and nobody said so."""
    if serving.tls_cert is None:
        if serving.tls_key is not None:
            raise Failure("--tls-key needs its --tls-cert", Exit.USAGE)
        if not serving.insecure_bind and not is_loopback(serving.host):
            raise Failure(
                f"{serving.host} can be reached from elsewhere: give --tls-cert and --tls-key, or say "
                "--insecure-bind, and everybody on the way can read along and take the token",
                Exit.USAGE,
            )
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(serving.tls_cert, serving.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise Failure(f"the certificate cannot be used: {error}", Exit.USAGE) from error
    return context


def _prepare(ready_file: Path, stack: ExitStack) -> Path:
    """It is there exactly while the hub can be reached."""
    if not ready_file.parent.is_dir():
        raise Failure(f"there is no folder {ready_file.parent} for the ready file", Exit.USAGE)

    def gone() -> None:
        with suppress(FileNotFoundError):
            ready_file.unlink()

    gone()  # what an earlier hub left when it was killed
    stack.callback(gone)
    return ready_file


def _free(host: str) -> int:
    """The usual port; 0, which is any, where somebody has it."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe, suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, PORT))
        return PORT
    return 0


def named_agents(named: Sequence[tuple[str, Sequence[str]]], agent: Sequence[str]) -> dict[str, Any]:
    """The agents of a hub by name. Raises `Failure`."""
    agents: dict[str, Any] = {called(agent): resolve(agent)} if agent else {}
    for name, command in named:
        if name in agents:
            raise Failure(f"there are two agents of the name {name!r}", Exit.USAGE)
        agents[name] = resolve(command)
    return agents


def built_in(folder: HubFolder) -> list[str]:
    """The command of the built-in agent. It keeps its sessions beside the hub's, and so outlives a crash."""
    return [sys.executable, "-m", "antiphon", "rehearse", "--data", str(folder.path / BUILT_IN)]
