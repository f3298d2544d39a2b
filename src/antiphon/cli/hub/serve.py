"""`antiphon serve`: run a hub, and print how to use it."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from antiphon.cli.agents import resolve
from antiphon.cli.commands.options import StorePlace
from antiphon.cli.error_lines import print_error
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub.banner import BUILT_IN, Banner, farewell
from antiphon.cli.hub.browser import find_opener, open_link
from antiphon.cli.hub.second_start import show_running
from antiphon.cli.output.streams import plain_without_colours, set_up_logging, write_styled
from antiphon.cli.program import command_line
from antiphon.cli.shared_store import make_store
from antiphon.errors import AntiphonError, LocalError
from antiphon.hub import (
    Access,
    AlertOptions,
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
from antiphon.stores import SQLiteStore, all_records
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
    notify: Sequence[str]
    """The words of the command; empty for none."""
    webhook: str | None
    push_services: Sequence[str]
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
    add_agents: bool
    """Whether owners may add agents while the hub runs."""
    no_browser: bool

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
    for name in ("websockets", "httpx"):  # httpx logs addresses, which may be secrets
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        with ExitStack() as stack:
            return _serve(serving, stack)
    except (Failure, AntiphonError, OSError) as failure:
        return print_error(failure)


def _serve(serving: ServeOptions, stack: ExitStack) -> Exit:
    folder = HubFolder(serving.data)
    asked = named_agents(serving.agents, serving.agent)
    agents = asked or {BUILT_IN: built_in(folder)}
    strange = set(serving.version) - {"", *agents}
    if strange:
        names = ", ".join(sorted(strange))
        raise Failure(f"--acp-version names {names}, but the agents are {', '.join(agents)}", Exit.USAGE)
    tls = _tls(serving)
    shared = None if serving.store is None else make_store(serving.store, create=True)
    folder.make()
    read_tokens(folder.tokens)  # report a wrong file before the start
    ready_file = None if serving.ready_file is None else _prepare(Path(serving.ready_file), stack)
    try:
        stack.enter_context(folder.held())
    except LocalError:
        running = folder.running()
        if running is None or serving.ready_file is not None or not sys.stderr.isatty():
            raise  # for a program: it cannot use the hub that runs
        return show_running(running, serving.data, agents=_words(serving))
    hub = Hub(
        agents,
        store=shared or SQLiteStore(folder.sessions),
        version={name: serving.version.get(name, serving.version.get("")) for name in agents},
        options=HubOptions(
            busy=serving.busy,
            turn_complete=serving.turn_complete,
            files=serving.files,
            share=serving.share,
            offer_installed=not asked,
            add_agents=serving.add_agents,
            idle=serving.idle,
            start=serving.start,
            mark=folder.mark,
            known_agents=folder.known_agents,
            label=serving.label,
            movable=serving.movable,
            alerts=_alerts(serving, folder),
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
            agents=hub.agents,
            ca=os.path.abspath(serving.tls_cert) if serving.tls_cert else "",
            store="" if shared is None else _kept_in(shared),
        )
        stack.enter_context(folder.published(running))
        if ready_file is not None:
            write_private(ready_file, msgspec.json.encode(running))
        banner = Banner(running, folder, default=serving.data is None)
        if sys.stderr.isatty():  # the link makes its reader an owner, so it must not get into a log file
            opener = None if serving.no_browser else find_opener()
            opened = None if opener is None else open_link(hub.login_link(running.url), folder.path, opener)
            if opened is not None:
                stack.callback(opened.unlink, missing_ok=True)
            banner = replace(banner, link=hub.login_link(running.url), opened=opened is not None)
        write_styled(sys.stderr, plain_without_colours(banner.started()))

    hub.run(
        f"{host}:{PORT if serving.port is None else serving.port}",
        or_any_port=serving.port is None,
        on_ready=ready,
        tls=tls,
        insecure=serving.insecure_bind,
    )
    if shared is None and sys.stderr.isatty():
        kept = asyncio.run(_count(folder))
        print(farewell(folder, kept, program=command_line("serve", serving.data)), file=sys.stderr)
    return Exit.DONE


async def _count(folder: HubFolder) -> int:
    """Return how many sessions are stored."""
    async with SQLiteStore(folder.sessions) as store:
        return len([record async for record in all_records(store)])


def _alerts(serving: ServeOptions, folder: HubFolder) -> AlertOptions:
    return AlertOptions(
        notify=serving.notify,
        webhook=serving.webhook,
        webhook_secret=""
        if serving.webhook is None
        else os.environ.get("ANTIPHON_WEBHOOK_SECRET") or folder.webhook_secret,
        push=folder.path,
        push_services=serving.push_services,
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


def _words(serving: ServeOptions) -> dict[str, Sequence[str]]:
    """Return the words of the agents that were asked for, by their names."""
    first = {default_agent_name(serving.agent): serving.agent} if serving.agent else {}
    return {**first, **dict(serving.agents)}


def built_in(folder: HubFolder) -> list[str]:
    """Return the command of the built-in agent. It stores its sessions, so that they survive a crash."""
    return [sys.executable, "-m", "antiphon", "rehearse", "--data", str(folder.path / BUILT_IN)]
