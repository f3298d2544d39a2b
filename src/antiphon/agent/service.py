"""HandlerService: the declarations of one agent, and the workers that run its handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

from msgspec import Struct

from antiphon.agent.logins import Login
from antiphon.agent.options import Option
from antiphon.agent.providers import Provider
from antiphon.agent.session import AgentSession, AgentTurn
from antiphon.agent.slash_commands import CommandHandler, SlashCommand, called
from antiphon.agent.worker import HandlerWorker, OpenTurn
from antiphon.engine.annotations import Annotation
from antiphon.engine.configuration import Value, find_option
from antiphon.engine.events import Updated
from antiphon.engine.session import Session
from antiphon.errors import InvalidParams, LocalError, MethodNotFound, StoreError
from antiphon.schema import v2
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.version import META_KEY
from antiphon.server.authentication import Logins
from antiphon.server.connection import ClientConnection
from antiphon.server.offer import Offer
from antiphon.server.registry import SessionRegistry
from antiphon.server.service import FindSession
from antiphon.server.session import ServedSession
from antiphon.server.session_facts import commands_of
from antiphon.stores.base import SessionRecord


class AnnotationNews(Struct, frozen=True):
    """A client has added an annotation, or removed one of its own."""

    annotation: Annotation
    removed: bool = False


Handler: TypeAlias = Callable[[AgentTurn], Awaitable[StopReason | str | None]]
SessionHandler: TypeAlias = Callable[[AgentSession], Coroutine[Any, Any, None]]
AnnotationHandler: TypeAlias = Callable[[AgentSession, AnnotationNews], Coroutine[Any, Any, None]]
Extension: TypeAlias = Callable[[Any, AgentSession | None], Awaitable[Any]]
"""Gets the params, any JSON value, and the session that they name, if they do; returns the result."""


class HandlerService:
    believes_relays = True

    def __init__(self, offer: Offer, *, login_required: bool) -> None:
        self.offer = offer
        self.logins = Logins(required=login_required, attempt=Login)
        self.handler: Handler | None = None
        self.on_session: SessionHandler | None = None
        self.on_annotation: AnnotationHandler | None = None
        self.options: dict[str, Option] = {}
        self.commands: dict[str, SlashCommand] = {}
        self.providers: dict[str, Provider] = {}
        self.extensions: dict[str, Extension] = {}
        self._registry: SessionRegistry

    def bind(self, registry: SessionRegistry) -> None:
        self._registry = registry

    @property
    def may_take_mcp_over_acp(self) -> bool:
        return self.offer.mcp_over_acp

    # --- sessions ----------------------------------------------------------------------------------

    def make_worker(self, session: ServedSession) -> HandlerWorker:
        return HandlerWorker(session, self._registry, lambda worker: SessionHooks(self, worker))

    async def create(self, params: v2.NewSessionRequest, maker: ClientConnection | None) -> ServedSession:
        return await self._registry.create(params, {})

    async def fork(
        self, params: v2.ForkSessionRequest, at: str | None, maker: ClientConnection | None
    ) -> ServedSession:
        return await self._registry.fork(params, at)

    def opening(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def entered(self, session: ServedSession) -> None:
        """Nothing is kept of a session besides its journal."""

    def used(self, session: ServedSession) -> None:
        """Sessions stay open."""

    def released(self, session: ServedSession) -> None:
        """Nothing is kept of it."""

    def changed(self, session_id: str) -> None:
        """Nobody is told."""

    def described(self, record: SessionRecord) -> dict[str, Any]:
        return {"agent": self.offer.name}

    def news(self, fold: Session) -> list[Updated]:
        """Return the declared options and commands, where a session has others. It keeps the values that are
        still offered, and the commands that it was given for itself."""
        updates: list[v2.SessionUpdate] = []
        if self.options:
            before = () if fold.facts.config is None else fold.facts.config.latest.config_options
            now = [option.restored(find_option(before, id)) for id, option in self.options.items()]
            if now != list(before):
                updates.append(v2.ConfigOptionUpdate(config_options=now))
        told = fold.facts.commands
        own = told is not None and META_KEY in (told.latest.meta or {})
        if self.commands and not own:
            commands: list[v2.AvailableCommand] = [command.shown for command in self.commands.values()]
            if told is None or told.latest.available_commands != commands:
                updates.append(v2.AvailableCommandsUpdate(available_commands=commands))
        return [Updated.of(update) for update in updates]

    # --- extensions --------------------------------------------------------------------------------

    async def call(self, find: FindSession, method: str, params: Any) -> Any:
        handler = self.extensions.get(method)
        if handler is None:
            raise MethodNotFound(method)
        return await handler(params, handle_of(find()))

    async def notified(self, find: FindSession, method: str, params: Any) -> None:
        handler = self.extensions.get(method)
        if handler is not None:
            await handler(params, handle_of(find()))

    def find_command(self, name: str) -> v2.Command:
        if name not in self.commands:
            raise LocalError(f"no command {name!r} is declared")
        return self.commands[name].shown


class SessionHooks:
    """The handlers of an agent's author, for one session."""

    def __init__(self, service: HandlerService, worker: HandlerWorker) -> None:
        self._service = service
        self._worker = worker
        self.session = AgentSession(worker, service.find_command)

    @property
    def accepted(self) -> tuple[type, ...]:
        return self._service.offer.accepted

    async def run(self, turn: OpenTurn) -> StopReason | str | None:
        handled = AgentTurn(self.session, turn)
        command = self._called(handled)
        if command is not None:
            handler, rest = command
            return await handler(handled, rest)
        if self._service.handler is None:
            raise LocalError("this agent has no prompt handler: decorate one with `@agent.on_prompt`")
        return await self._service.handler(handled)

    def _called(self, turn: AgentTurn) -> tuple[CommandHandler, str] | None:
        """Return the handler of the command that opened a turn, and its input; `None` where none did."""
        commands = self._service.commands
        named = called(turn.prompt.text) if commands else None
        if named is None or named[0] not in commands:
            return None
        if named[0] not in _names(commands_of(self.session.fold)):
            return None  # this session does not offer it
        return commands[named[0]].handler, named[1]

    async def configure(self, id: str, value: Value) -> None:
        declared = self._service.options.get(id)
        if declared is not None and declared.handler is not None and self.session.config[id] != value:
            try:
                await declared.handler(self.session, value)
            except StoreError:
                raise
            except LocalError:
                raise InvalidParams(f"the agent refuses this value of {id!r}") from None
            # What is offered may be something else by now.
            self._worker.session.control.check_option(id, value)
        await self.session.set_config(id, value)

    def begin(self) -> None:
        if self._service.on_session is not None:
            self.session.soon(self._service.on_session(self.session))

    def annotated(self, annotation: Annotation, *, removed: bool) -> None:
        if self._service.on_annotation is not None:
            news = AnnotationNews(annotation, removed)
            self.session.soon(self._service.on_annotation(self.session, news))


def handle_of(session: ServedSession | None) -> AgentSession | None:
    """Return the handle of a session whose handlers run here."""
    worker = None if session is None else session.worker
    hooks = worker.hooks if isinstance(worker, HandlerWorker) else None
    return hooks.session if isinstance(hooks, SessionHooks) else None


def _names(commands: list[v2.AvailableCommand]) -> list[object]:
    return [command.get("name") if isinstance(command, dict) else command.name for command in commands]
