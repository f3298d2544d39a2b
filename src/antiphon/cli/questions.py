"""Permissions and forms on the command line: `--allow` decides, or the user at the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Collection
from typing import Any, Protocol

from antiphon.cli.output.descriptions import question_lines
from antiphon.cli.output.screen import FormView, Screen
from antiphon.client import Elicitation, Permission, Permissions, Reply
from antiphon.engine import (
    BooleanField,
    ChoiceField,
    ChoicesField,
    Field,
    Option,
    Unchecked,
    Unfit,
    UnknownField,
)
from antiphon.schema import v2
from antiphon.text_safety import safe_line, safe_text
from antiphon.transcripts import field_limits, kind_text, option_for, read_number

ALLOWED: dict[str, Collection[str]] = {
    "none": (),
    "read": ("read", "search"),
    "edit": ("read", "search", "edit", "delete", "move"),
    "all": "all",
}
YES = ("y", "yes")
NO = ("n", "no")
WORDS = {"y": "y", "yes": "y", "a": "a", "always": "a", "n": "n", "no": "n"}
"""The key that each typed word stands for."""
NO_TERMINAL = "there is no terminal to ask at"


class AnswerSource(Protocol):
    """The lines that the user types as answers."""

    one_at_a_time: asyncio.Lock

    def forget(self) -> None:
        """Drop input that was typed before a question."""

    async def line(self) -> str | None:
        """Return the next line, or `None` at the end of input (Ctrl-D)."""


class Terminal:
    """Reads answers from the terminal, even if stdin is a pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.one_at_a_time = asyncio.Lock()

    @classmethod
    def find(cls) -> Terminal | None:
        """Return the terminal to ask at, or `None` without one."""
        if not sys.stderr.isatty():
            return None
        if sys.stdin.isatty():
            return cls(sys.stdin.fileno())
        try:
            return cls(os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            return None

    def forget(self) -> None:
        with contextlib.suppress(ImportError, OSError):
            import termios

            termios.tcflush(self._fd, termios.TCIFLUSH)

    async def line(self) -> str | None:
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            loop.remove_reader(self._fd)
            if not typed.done():
                typed.set_result(os.read(self._fd, 4096))

        loop.add_reader(self._fd, read)
        try:
            data = await typed
        finally:
            loop.remove_reader(self._fd)
        return data.decode(errors="replace").strip() if data else None


# --- who answers -------------------------------------------------------------------------------


class Answers(Permissions):
    """Decides on permissions by an `--allow` option or by asking the user, and lets the user fill in forms.

    allow: the option, or `None`: then the user is asked if there is a terminal, and all is rejected otherwise
    terminal: forms are filled in here, whatever is allowed; without a terminal they are cancelled

    Questions wait while `own` is not set: those of earlier turns are for other clients.
    """

    elicits = ("form", "url")

    def __init__(self, allow: str | None, screen: Screen, terminal: AnswerSource | None) -> None:
        self.own = asyncio.Event()
        self.own.set()
        self._screen = screen
        self._terminal = terminal
        self._why = (
            f", because of --allow {allow}" if allow else f"; {NO_TERMINAL}, so use --allow to permit more"
        )
        if terminal is not None and allow in (None, "ask"):
            super().__init__(ask=self._ask_user)
        else:
            super().__init__(allow=ALLOWED[allow or "none"], ask=self._reject)

    async def decide(self, permission: Permission) -> v2.PermissionOption | None:
        await self._until_own(permission.title)
        return await super().decide(permission)

    async def _until_own(self, question: str) -> None:
        if not self.own.is_set():
            self._screen.note(
                f"an earlier turn waits for the answer of another client: {safe_line(question)}"
            )
            await self.own.wait()

    async def _ask_user(self, permission: Permission) -> v2.PermissionOption | None:
        """Ask the user for a permission, one at a time."""
        assert self._terminal is not None
        async with self._terminal.one_at_a_time:
            while True:
                self._terminal.forget()
                with self._screen.asking(permission):
                    typed = await self._terminal.line()
                if typed is None:
                    return permission.reject()
                chosen = choose(permission, typed)
                if chosen is not None:
                    return chosen

    async def _reject(self, permission: Permission) -> v2.PermissionOption | None:
        """Reject a permission, and say why the first time."""
        why, self._why = self._why, ""
        kind = f" ({known})" if (known := kind_text(permission.kind)) else ""
        self._screen.note(f"rejected {safe_line(permission.title)}{kind}{why}")
        return permission.reject()

    async def elicit(self, elicitation: Elicitation) -> Reply | None:
        await self._until_own(elicitation.message)
        if self._terminal is not None:
            return await FormFiller(self._screen, self._terminal).fill(elicitation)
        asked = f"{safe_line(elicitation.agent)} asks: {safe_line(elicitation.message)}"
        self._screen.note(f"{asked}; cancelled, because {NO_TERMINAL}")
        return elicitation.cancel()


def choose(permission: Permission, typed: str) -> v2.PermissionOption | None:
    """Return the option that was typed: its number, the beginning of its name, or its key: `y` (allow once),
    `a` (allow always), `n` (reject) or `N` (reject always)."""
    word = typed.casefold()
    if word.isdecimal() and len(word) < 5:
        return permission.options[int(word) - 1] if 0 < int(word) <= len(permission.options) else None
    key = typed if typed == "N" else WORDS.get(word)
    if key is not None:
        return option_for(key, permission.options)
    named = [option for option in permission.options if word and option.name.casefold().startswith(word)]
    return named[0] if len(named) == 1 else None


# --- forms -------------------------------------------------------------------------------------


class _InputEnded(Exception):
    """The user pressed Ctrl-D."""


class FormFiller:
    """Lets the user fill in a form, field by field."""

    def __init__(self, screen: Screen, terminal: AnswerSource) -> None:
        self._screen = screen
        self._terminal = terminal

    async def fill(self, elicitation: Elicitation) -> Reply:
        async with self._terminal.one_at_a_time:
            with self._screen.filling() as view:
                self._terminal.forget()
                view.head(_head(elicitation))
                try:
                    if elicitation.url is not None:
                        return await self._visit(elicitation, view)
                    return await self._fill_in(elicitation, view)
                except _InputEnded:
                    return elicitation.cancel()

    async def _visit(self, elicitation: Elicitation, view: FormView) -> Reply:
        view.ask("Open it yourself. Do you agree?", "y or n")
        while True:
            typed = (await self._line()).casefold()
            if typed in YES:
                return elicitation.accept()
            if typed in NO:
                return elicitation.decline()
            view.ask("y or n?")

    async def _fill_in(self, elicitation: Elicitation, view: FormView) -> Reply:
        for field in elicitation.fields:
            if isinstance(field, UnknownField) and field.required:
                name = safe_line(field.title)
                view.remark(f"cancelled: this client does not know the type of {name}")  # ELIC-09
                return elicitation.cancel()
        while True:
            values = {field.name: await self._value(field, view) for field in elicitation.fields}
            view.ask("Send this?", "Enter sends it, n declines, r starts again")
            match (await self._line()).casefold():
                case "" | "y" | "yes":
                    return elicitation.accept(values)
                case "n" | "no":
                    return elicitation.decline()

    async def _value(self, field: Field, view: FormView) -> Any:
        """Return the first typed value that fits. An empty line gives the default, or no value."""
        if isinstance(field, UnknownField):
            view.remark(f"{safe_line(field.title)} is left out: this client does not know its type")
            return None
        options = field.options if isinstance(field, ChoiceField | ChoicesField) else ()
        about = f": {safe_line(field.description)}" if field.description else ""
        view.ask(safe_line(field.title) + about, hint(field), map(_option, options))
        while True:
            typed = await self._line()
            if not typed and (field.default is not None or not field.required):
                return field.default
            value = read(field, typed)
            try:
                return field.read(value)
            except Unchecked:
                view.remark("not checked here, because its pattern is too slow; the agent checks it")
                return value
            except Unfit as problem:
                view.remark(f"it {problem}" if typed else "a value is required")
                view.ask(safe_line(field.title))

    async def _line(self) -> str:
        typed = await self._terminal.line()
        if typed is None:
            raise _InputEnded
        return typed


def _head(elicitation: Elicitation) -> list[str]:
    lines = [f"{safe_line(elicitation.agent)} asks:", *question_lines(elicitation.message)]
    if elicitation.url is not None:
        lines += [safe_text(elicitation.url), f"on the host {safe_line(elicitation.host or '(unknown)')}"]
    return lines


def _option(option: Option) -> str:
    about = f": {option.description}" if option.description else ""
    return safe_line(f"{option.title}{about}")


def read(field: Field, typed: str) -> Any:
    """Return typed text as a value for the field to check."""
    match field:
        case BooleanField():
            word = typed.casefold()
            return True if word in YES else False if word in NO else typed
        case ChoiceField():
            return _choice(field.options, typed)
        case ChoicesField():
            return [_choice(field.options, word.strip()) for word in typed.split(",") if word.strip()]
    return read_number(field, typed)


def _choice(options: tuple[Option, ...], typed: str) -> str:
    if typed.isdecimal() and len(typed) < 5 and 0 < int(typed) <= len(options):
        return options[int(typed) - 1].value
    word = typed.casefold()
    named = [option.value for option in options if word in (option.title.casefold(), option.value.casefold())]
    return named[0] if named else typed


def hint(field: Field) -> str:
    """Describe what the user may type."""
    how = {BooleanField: "y or n", ChoiceField: "a number", ChoicesField: "numbers, separated by commas"}
    parts = [how.get(type(field), ""), field_limits(field)]
    if field.default is not None:
        parts.append(f"Enter for {_default(field)}")
    elif not field.required:
        parts.append("optional")
    return ", ".join(filter(None, parts))


def _default(field: Field) -> str:
    if isinstance(field.default, bool):
        return "y" if field.default else "n"
    if isinstance(field, ChoiceField | ChoicesField):
        chosen = field.default if isinstance(field.default, list) else [field.default]
        return safe_line(", ".join(option.title for option in field.options if option.value in chosen))
    return safe_line(str(field.default), limit=60)
