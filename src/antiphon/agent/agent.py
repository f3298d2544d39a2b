"""Agent: a name, a prompt handler and a store. It serves any number of clients and sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, to_builtins

from antiphon.agent.declarations import (
    AnnotationHandler,
    CommandHandler,
    Declarations,
    Extension,
    Handler,
    SessionHandler,
    SlashCommand,
    handle_of,
)
from antiphon.agent.logins import (
    Login,
    LoginHandler,
    LogoutHandler,
    StatusHandler,
    TerminalFlow,
    offer_login,
    run_flow,
)
from antiphon.agent.options import Choices, Option
from antiphon.agent.session import AgentSession
from antiphon.agent.system_prompts import modes
from antiphon.errors import LocalError, StdioClosed
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.wire import Unknown
from antiphon.server.authentication import Logins
from antiphon.server.checks import check_commands
from antiphon.server.offer import CONTENT, Offer
from antiphon.server.providers import Provider
from antiphon.server.registry import SessionRegistry
from antiphon.server.request import ServerContext
from antiphon.server.server import Server
from antiphon.stores.base import Store
from antiphon.stores.memory import MemoryStore
from antiphon.transports.base import Transport
from antiphon.transports.loop import run_until_stopped
from antiphon.transports.stdio import StdioTransport

BUSY = (Delivery.QUEUE, Delivery.STEER, Delivery.INTERRUPT)
"""The deliveries that an agent carries out itself."""

C = TypeVar("C", bound=CommandHandler)
E = TypeVar("E", bound=Extension)


class AgentOptions(Struct, frozen=True, kw_only=True):
    """Further options of an agent."""

    login_required: bool = True
    """Whether an agent that offers logins refuses everything to clients that have not logged in."""
    system_prompt: bool | Literal["append", "override"] = False
    """Whether clients may give a system prompt: one that is added to the agent's own (`True`, "append"), or
    also one that replaces it ("override")."""
    mcp_over_acp: bool = False
    """Whether clients may offer MCP servers of their own over their connection."""
    stop_grace: float = 5.0
    """Seconds that handlers get to end when their session or the agent ends."""


class Agent:
    """An agent: a prompt handler (`@agent.on_prompt`), and sessions in a store or in memory. `agent.run()`
    serves an editor over stdio."""

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        store: Store | None = None,
        busy: Literal["queue", "steer", "interrupt"] = "queue",
        turn_complete: bool = False,
        accepts: Collection[Literal["image", "audio", "embedded_context"]] = (),
        options: AgentOptions = AgentOptions(),
    ) -> None:
        """Create an agent. It serves nobody before `run`, `serving` or `serve`.

        name, version: how clients see it.
        store: keeps the sessions; by default they stay in memory.
        busy: what a plain prompt does while the session works: wait in the queue, steer the turn, or
            interrupt it.
        turn_complete: whether every v1 client gets that update, also one that does not ask for it.
        accepts: what prompts may hold in addition to text and links.
        options: further options.
        """
        if busy not in BUSY:
            raise LocalError(f"busy must be one of {', '.join(BUSY)}, got {busy!r}")
        unknown = set(accepts) - set(CONTENT)
        if unknown:
            raise LocalError(f"accepts must be among {', '.join(CONTENT)}, got {', '.join(sorted(unknown))}")
        kept: Store = MemoryStore() if store is None else store
        keeps = not isinstance(kept, MemoryStore)
        offer = Offer(name, version, busy=Delivery(busy), turn_complete=turn_complete, keeps=keeps)
        offer.accepts = frozenset(accepts)
        offer.system_prompts = modes(options.system_prompt)
        offer.mcp_over_acp = options.mcp_over_acp
        self._declared = declared = Declarations(offer)
        self._logins = Logins(required=options.login_required, attempt=Login)
        self._flows: dict[tuple[str, ...], TerminalFlow] = {}
        self._grace = options.stop_grace
        registry = SessionRegistry(
            kept, declared.make_worker, agent_of=lambda _: name, grace=options.stop_grace
        )
        context = ServerContext(
            registry=registry,
            offer=offer,
            logins=self._logins,
            create=lambda params, _: registry.create(params, {}),
            fork=lambda params, at, _: registry.fork(params, at),
            call_extension=declared.call_extension,
            extension_notified=declared.extension_notified,
            providers=declared.providers,
            trusts_named_authors=True,
        )
        self._server = Server(context, owns_store=store is None)

    @property
    def name(self) -> str:
        return self._declared.offer.name

    @property
    def version(self) -> str:
        return self._declared.offer.version

    @property
    def store(self) -> Store:
        return self._server.registry.store

    @property
    def announces(self) -> dict[str, Any]:
        """Goes into the `_meta` of the capabilities: the extensions of the agent, under names of yours."""
        return self._declared.offer.announces

    @announces.setter
    def announces(self, announces: dict[str, Any]) -> None:
        self._declared.offer.announces = announces

    # --- handlers ----------------------------------------------------------------------------------

    def on_prompt(self, handler: Handler) -> Handler:
        """Run this for every prompt. Its return ends the turn; a stop reason it returns is reported."""
        _check_unset(self._declared.handler, "on_prompt", "prompt handler")
        self._declared.handler = handler
        return handler

    def on_session(self, handler: SessionHandler) -> SessionHandler:
        """Run this for every new session, once its client knows of it."""
        _check_unset(self._declared.on_session, "on_session", "session handler")
        self._declared.on_session = handler
        return handler

    def on_annotation(self, handler: AnnotationHandler) -> AnnotationHandler:
        """Run this whenever a client annotates a message or removes an annotation."""
        _check_unset(self._declared.on_annotation, "on_annotation", "annotation handler")
        self._declared.on_annotation = handler
        return handler

    def extension(self, method: str) -> Callable[[E], E]:
        """Decorate what answers requests of a method of your own, such as `_example.com/status`, and gets
        its notifications. Raise `InvalidParams`, or any `RequestError`, to refuse."""
        if not method.startswith("_") or method.startswith("_antiphon/"):
            raise LocalError(f"{method!r} is no extension method: its name begins with `_` and what is yours")
        if method in self._declared.extensions:
            raise LocalError(f"the extension {method!r} has its handler already")

        def keep(handler: E) -> E:
            self._declared.extensions[method] = handler
            return handler

        return keep

    # --- options, commands and providers -----------------------------------------------------------

    def config(
        self,
        id: str,
        *,
        name: str | None = None,
        options: Choices | None = None,
        default: str | bool | None = None,
        category: str | None = None,
        description: str | None = None,
    ) -> Option:
        """Offer a config option in every session: a choice among `options`, or a switch, whose default is a
        bool. One of category `mode` is the session's modes for a v1 client.

        Decorate a handler with it to be asked, with the session and the value, when a client wants another
        value: raising `InvalidParams` refuses it, with a reason that the client gets.
        """
        if id in self._declared.options:
            raise LocalError(f"the config option {id!r} is declared already")
        made = self._declared.options[id] = Option(
            id, name=name, options=options, default=default, category=category, description=description
        )
        return made

    def command(self, name: str, *, description: str, hint: str | None = None) -> Callable[[C], C]:
        """Offer a slash command in every session: a prompt `/name …` runs the decorated handler, with the
        turn and the text behind the name, in place of the prompt handler. `hint` says what to type there."""
        if name in self._declared.commands:
            raise LocalError(f"the command {name!r} is declared already")
        input = None if hint is None else v2.TextCommandInput(hint=hint)
        shown = v2.Command(name=name, description=description, input=input)
        check_commands([shown])

        def keep(handler: C) -> C:
            self._declared.commands[name] = SlashCommand(shown, handler)
            return handler

        return keep

    def provider(
        self,
        id: str,
        *,
        supports: Collection[str],
        required: bool = False,
        api_type: str | None = None,
        base_url: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Provider:
        """Let clients set how models are reached: by one of the protocols that it `supports`, where, and with
        which headers. Without a `base_url` it is disabled at first. Unstable."""
        if id in self._declared.providers:
            raise LocalError(f"the provider {id!r} is declared already")
        made = self._declared.providers[id] = Provider(
            id, supports=supports, required=required, api_type=api_type, base_url=base_url, headers=headers
        )
        self._declared.offer.has_providers = True
        return made

    # --- logins ------------------------------------------------------------------------------------

    def on_login(
        self, method_id: str, *, name: str, description: str | None = None, type: str = "agent"
    ) -> Callable[[LoginHandler], LoginHandler]:
        """Offer a way to log in. The handler's return lets the connection in; raise `AuthRequired` to refuse.
        A type of your own begins with `_`; only v2 clients get to see it."""
        id = v2.AuthMethodId(method_id)
        method: v2.AuthMethod = v2.AuthMethodAgent(method_id=id, name=name, description=description)
        if type != "agent":
            if not type.startswith("_"):  # AUTH-04
                raise LocalError(f"{type!r} is no type of login; one of your own begins with `_`")
            method = Unknown({**to_builtins(method), "type": type})
        offer_login(self._logins, method, method_id)

        def decorate(handler: LoginHandler) -> LoginHandler:
            self._logins.handlers[method_id] = handler
            return handler

        return decorate

    def terminal_login(
        self,
        method_id: str,
        *,
        name: str,
        description: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> Callable[[TerminalFlow], TerminalFlow]:
        """Offer to log in in a terminal, to clients that can open one (AUTH-13): they start this very agent
        with these arguments behind its own and these variables over its own, and connect again once it has
        exited with 0. What this decorates is what `agent.run()` then does instead of serving (AUTH-17)."""
        if isinstance(args, str):
            raise LocalError("`args` is a list of strings")
        offer_login(
            self._logins,
            v2.AuthMethodTerminal(
                method_id=v2.AuthMethodId(method_id),
                name=name,
                description=description,
                args=list(args),
                env=[v2.EnvVariable(name=key, value=value) for key, value in (env or {}).items()],
            ),
            method_id,
        )

        def decorate(flow: TerminalFlow) -> TerminalFlow:
            if not args:
                raise LocalError("a login flow is recognised by its `args`, and has none")
            self._flows[tuple(args)] = flow
            return flow

        return decorate

    def on_logout(self, handler: LogoutHandler) -> LogoutHandler:
        """Run this when a connection logs out; it gets the login that ends, if there was one here."""
        _check_unset(self._logins.on_logout, "on_logout", "logout handler")
        self._logins.on_logout = handler
        return handler

    def on_auth_status(self, handler: StatusHandler) -> StatusHandler:
        """Ask this who a connection is: it gets the connection's login, if there was one, and returns a state
        (`authenticated`, `unauthenticated`, `not_required`, `unknown`) or a whole status. A connection that
        is `authenticated` without a login, by what an earlier process kept, is let in."""
        _check_unset(self._logins.on_status, "on_auth_status", "status handler")
        self._logins.on_status = handler
        return handler

    async def auth_changed(self) -> None:
        """Ask the status handler again for every connection: call it when a login has changed by itself, such
        as with an expired token."""
        await self._server.auth_changed()

    # --- serving -----------------------------------------------------------------------------------

    def run(self, address: str | None = None) -> None:
        """Serve stdin and stdout until the client closes them; or, at a `ws://` address, any client.
        Started for a login in a terminal, it does that instead."""
        run_flow(self._flows, sys.argv[1:])
        serving = self._run_stdio() if address is None else self._run_websocket(address)
        try:
            run_until_stopped(serving, grace=self._grace)
        except StdioClosed as error:
            sys.exit(f"{self.name}: {error}")

    async def _run_stdio(self) -> None:
        async with self.serving():
            await self.serve(await StdioTransport.open())

    async def _run_websocket(self, address: str) -> None:
        host, port, path = _read_address(address)
        from antiphon.remote.websocket_server import websocket_server

        async with self.serving():
            try:
                async with websocket_server(self.serve, host, port, path=path) as server:
                    sys.stderr.write(f"serving at ws://{host}:{server.port}{path}\n")
                    await asyncio.Event().wait()
            except OSError as error:
                raise LocalError(f"cannot serve at {address}: {error.strerror or error}") from error

    async def serve(self, transport: Transport) -> None:
        """Serve one client until it is gone; call it for each, inside `serving`."""
        await self._server.serve(transport)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Agent]:
        """Serve inside the block. At its end every session is put away in the store. Blocks may overlap.

        A store that the caller gave is closed then, and the agent cannot be served again. The store that an
        agent makes itself keeps the sessions for the next block.
        """
        async with self._server.serving():
            yield self

    def find(self, session_id: str) -> AgentSession | None:
        """Return a session that is open here."""
        return handle_of(self._server.registry.find(session_id))


def _check_unset(before: object, decorator: str, what: str) -> None:
    if before is not None:
        raise LocalError(f"{decorator} was already set; an Agent has exactly one {what}")


def _read_address(address: str) -> tuple[str, int, str]:
    parts = urlsplit(address)
    try:
        if parts.scheme == "ws" and parts.hostname is not None:
            return parts.hostname, parts.port or 0, parts.path or "/"
    except ValueError:
        pass  # the port is not a number
    raise LocalError(f"{address!r} is no address to serve at: it looks like ws://127.0.0.1:9000")
