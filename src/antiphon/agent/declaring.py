"""What an agent declares: config options and slash commands of every session, and its model providers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from antiphon.agent import providers
from antiphon.agent.options import Choices, Option, declare
from antiphon.agent.slash_commands import CommandHandler, SlashCommand, called, make_command
from antiphon.agent.turn import AgentTurn
from antiphon.engine.configuration import find_option
from antiphon.engine.events import Updated
from antiphon.engine.session import Session
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

C = TypeVar("C", bound=CommandHandler)

OWN_LIST = {META_KEY: {"ownList": True}}
"""Marks commands that a session was given for itself: they outlive the process that gave them."""


class Declaring:
    def __init__(self) -> None:
        self._options: dict[str, Option] = {}
        self._commands: dict[str, SlashCommand] = {}
        self.providers: dict[str, providers.Provider] = {}
        """The model providers that clients may set, by their ids."""

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
        value: raising `InvalidParams` refuses it, with a reason that the client is told.
        """
        if id in self._options:
            raise LocalError(f"the config option {id!r} is declared already")
        made = self._options[id] = declare(
            id, name=name, options=options, default=default, category=category, description=description
        )
        return made

    def command(self, name: str, *, description: str, hint: str | None = None) -> Callable[[C], C]:
        """Offer a slash command in every session: a prompt `/name …` runs the decorated handler, with the
        turn and the text behind the name, in place of the prompt handler. `hint` says what to type there."""
        if name in self._commands:
            raise LocalError(f"the command {name!r} is declared already")
        shown = make_command(name, description, hint)

        def keep(handler: C) -> C:
            self._commands[name] = SlashCommand(shown, handler)
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
    ) -> providers.Provider:
        """Let clients set how models are reached: by one of the protocols that it `supports`, where, and with
        which headers. Without a `base_url` it is disabled at first. Unstable."""
        if id in self.providers:
            raise LocalError(f"the provider {id!r} is declared already")
        made = self.providers[id] = providers.declare(
            id, supports=supports, required=required, api_type=api_type, base_url=base_url, headers=headers
        )
        return made

    # --- what sessions take from it ----------------------------------------------------------------

    def option(self, id: str) -> Option | None:
        return self._options.get(id)

    def declared_command(self, name: str) -> v2.Command:
        if name not in self._commands:
            raise LocalError(f"no command {name!r} is declared")
        return self._commands[name].shown

    def news(self, fold: Session) -> list[Updated]:
        """What a session has to be told when it is made or opened again. It keeps the values that are still
        offered, and the commands that it was given for itself."""
        updates: list[v2.SessionUpdate] = []
        if self._options:
            before = () if fold.facts.config is None else fold.facts.config.latest.config_options
            now = [option.restored(find_option(before, id)) for id, option in self._options.items()]
            if now != list(before):
                updates.append(v2.ConfigOptionUpdate(config_options=now))
        told = fold.facts.commands
        own = told is not None and META_KEY in (told.latest.meta or {})
        if self._commands and not own:
            commands: list[v2.AvailableCommand] = [command.shown for command in self._commands.values()]
            if told is None or told.latest.available_commands != commands:
                updates.append(v2.AvailableCommandsUpdate(available_commands=commands))
        return [Updated.of(update) for update in updates]

    def called(self, turn: AgentTurn) -> tuple[CommandHandler, str] | None:
        """The handler of the command that opened a turn, and its input; `None` for any other prompt."""
        named = called(turn.prompt.text) if self._commands else None
        if named is None or named[0] not in self._commands:
            return None
        if all(command != named[0] for command in names(commands_of(turn.session.fold))):
            return None  # this session does not offer it
        return self._commands[named[0]].handler, named[1]


def options_of(fold: Session) -> list[v2.SessionConfigOption]:
    """A session's config options, as they are now."""
    return [] if fold.facts.config is None else list(fold.facts.config.latest.config_options)


def commands_of(fold: Session) -> list[v2.AvailableCommand]:
    """The commands that a session offers now."""
    return [] if fold.facts.commands is None else list(fold.facts.commands.latest.available_commands)


def names(commands: Sequence[v2.AvailableCommand]) -> list[object]:
    return [command.get("name") if isinstance(command, dict) else command.name for command in commands]
