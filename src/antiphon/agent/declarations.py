"""Declarations: what the author of an agent declares, and how each session uses it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from antiphon.agent.open_turn import OpenTurn
from antiphon.agent.options import Option
from antiphon.agent.session import AgentSession, AgentTurn
from antiphon.agent.worker import HandlerWorker
from antiphon.engine.annotations import Annotation
from antiphon.engine.configuration import Value, find_option
from antiphon.engine.events import Updated
from antiphon.errors import InvalidParams, LocalError, MethodNotFound, StoreError
from antiphon.schema import v2
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.version import META_KEY
from antiphon.server.checks import command_names
from antiphon.server.offer import Offer
from antiphon.server.providers import Provider
from antiphon.server.registry import SessionRegistry
from antiphon.server.request import FindSession
from antiphon.server.session import ServedSession
from antiphon.server.session_facts import options_of

CommandHandler: TypeAlias = Callable[[AgentTurn, str], Awaitable[StopReason | str | None]]

# CMD-03: the input is all text behind the name and the whitespace that follows it.
_CALLED = re.compile(r"/(\S+)(?:\s+(.*))?", re.DOTALL)


class SlashCommand(Struct, frozen=True):
    shown: v2.Command
    handler: CommandHandler


def called(text: str) -> tuple[str, str] | None:
    """The command that a prompt's text names, and its input; `None` if it names none."""
    found = _CALLED.fullmatch(text)
    return None if found is None else (found[1], found[2] or "")


class AnnotationNews(Struct, frozen=True):
    """A client has added an annotation, or removed one that it had added."""

    annotation: Annotation
    removed: bool = False


Handler: TypeAlias = Callable[[AgentTurn], Awaitable[StopReason | str | None]]
SessionHandler: TypeAlias = Callable[[AgentSession], Coroutine[Any, Any, None]]
AnnotationHandler: TypeAlias = Callable[[AgentSession, AnnotationNews], Coroutine[Any, Any, None]]
Extension: TypeAlias = Callable[[Any, AgentSession | None], Awaitable[Any]]
"""Gets the params, any JSON value, and the session that they name, if they do; returns the result."""


class Declarations:
    """The handlers, options, commands, providers and extensions that an agent's author declares."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.handler: Handler | None = None
        self.on_session: SessionHandler | None = None
        self.on_annotation: AnnotationHandler | None = None
        self.options: dict[str, Option] = {}
        self.commands: dict[str, SlashCommand] = {}
        self.providers: dict[str, Provider] = {}
        self.extensions: dict[str, Extension] = {}

    def make_worker(self, session: ServedSession, registry: SessionRegistry) -> HandlerWorker:
        return HandlerWorker(session, registry, self.offer, partial(SessionHooks, self))

    async def call_extension(self, find: FindSession, method: str, params: Any) -> Any:
        handler = self.extensions.get(method)
        if handler is None:
            raise MethodNotFound(method)
        return await handler(params, handle_of(find()))

    async def extension_notified(self, find: FindSession, method: str, params: Any) -> None:
        if method in self.extensions:
            await self.call_extension(find, method, params)

    def find_command(self, name: str) -> v2.Command:
        if name not in self.commands:
            raise LocalError(f"no command {name!r} is declared")
        return self.commands[name].shown


class SessionHooks:
    """The handlers of an agent's author, for one session."""

    def __init__(self, declared: Declarations, worker: HandlerWorker) -> None:
        self._declared = declared
        self._worker = worker
        self.session = AgentSession(worker, declared.find_command)

    def news(self) -> list[Updated]:
        """Return the declared options and commands, where the session has others. It keeps the values that
        are still offered, and the commands that it was given for itself."""
        updates: list[v2.SessionUpdate] = []
        options, before = self._declared.options, options_of(self._worker.fold)
        now = [option.restored(find_option(before, id)) for id, option in options.items()]
        if options and now != before:
            updates.append(v2.ConfigOptionUpdate(config_options=now))
        known = self._worker.fold.facts.commands
        own = known is not None and META_KEY in (known.latest.meta or {})
        if self._declared.commands and not own:
            commands: list[v2.AvailableCommand] = [each.shown for each in self._declared.commands.values()]
            if known is None or known.latest.available_commands != commands:
                updates.append(v2.AvailableCommandsUpdate(available_commands=commands))
        return [Updated.of(update) for update in updates]

    async def run(self, turn: OpenTurn) -> StopReason | str | None:
        handled, commands = AgentTurn(self.session, turn), self._declared.commands
        name, rest = (called(handled.prompt.text) if commands else None) or ("", "")
        # A session may offer only some of the declared commands.
        if name in commands and name in command_names(self.session.fold.facts.available_commands):
            return await commands[name].handler(handled, rest)
        if self._declared.handler is None:
            raise LocalError("this agent has no prompt handler: decorate one with `@agent.on_prompt`")
        return await self._declared.handler(handled)

    async def configure(self, id: str, value: Value) -> None:
        option = self._declared.options.get(id)
        if option is not None and option.handler is not None and self.session.config[id] != value:
            try:
                await option.handler(self.session, value)
            except StoreError:
                raise
            except LocalError:
                raise InvalidParams(f"the agent refuses this value of {id!r}") from None
            # What is offered may be something else by now.
            self._worker.session.control.check_option(id, value)
        await self.session.set_config(id, value)

    def begin(self) -> None:
        if self._declared.on_session is not None:
            self.session.soon(self._declared.on_session(self.session))

    def annotated(self, annotation: Annotation, *, removed: bool) -> None:
        if self._declared.on_annotation is not None:
            news = AnnotationNews(annotation, removed)
            self.session.soon(self._declared.on_annotation(self.session, news))


def handle_of(session: ServedSession | None) -> AgentSession | None:
    """Return the handle of a session whose handlers run here."""
    worker = None if session is None else session.worker
    hooks = worker.hooks if isinstance(worker, HandlerWorker) else None
    return hooks.session if isinstance(hooks, SessionHooks) else None
