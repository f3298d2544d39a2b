"""Permissions and forms on the command line: `--allow` decides, or the user at the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio import Lock
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from antiphon.cli.output.descriptions import kind_text, question_lines
from antiphon.cli.output.screen import FormView, Screen
from antiphon.client import Ask, Elicitation, Permission, Permissions, Reply
from antiphon.engine import (
    BooleanField,
    ChoiceField,
    ChoicesField,
    Field,
    IntegerField,
    NumberField,
    Option,
    TextField,
    Unchecked,
    Unfit,
    UnknownField,
)
from antiphon.schema import v2
from antiphon.text_safety import safe_line, safe_text

ALLOWED: dict[str, Collection[str]] = {
    "none": (),
    "read": ("read", "search"),
    "edit": ("read", "search", "edit", "delete", "move"),
    "all": "all",
}


class Terminal:
    """Whoever sits in front of it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.one_at_a_time = asyncio.Lock()

    @classmethod
    def find(cls) -> Terminal | None:
        """The terminal to ask at, which is there although stdin may be a pipe."""
        if not sys.stderr.isatty():
            return None
        if sys.stdin.isatty():
            return cls(sys.stdin.fileno())
        try:
            return cls(os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            return None

    def forget(self) -> None:
        """What was typed before a question does not answer it."""
        with contextlib.suppress(ImportError, OSError):
            import termios

            termios.tcflush(self._fd, termios.TCIFLUSH)

    async def line(self) -> str | None:
        """One line, or `None` at its end (Ctrl-D)."""
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


def make_answers(allow: str | None, screen: Screen, terminal: AnswerSource | None) -> Permissions:
    """`allow` as given, or `None`: then the terminal is asked, if there is one. Forms are for the terminal,
    whatever is allowed."""
    elicits = FormRefuser(screen).elicit if terminal is None else FormFiller(screen, terminal).elicit
    if allow == "ask" or (allow is None and terminal is not None):
        assert terminal is not None
        return Answers(elicits, ask=PermissionPrompt(screen, terminal))
    return Answers(elicits, allow=ALLOWED[allow or "none"], ask=Rejecter(screen, allow))


class Answers(Permissions):
    """Decides on permissions, and lets somebody else fill in forms."""

    elicits = ("form", "url")

    def __init__(
        self,
        elicit: Callable[[Elicitation], Awaitable[Reply | None]],
        *,
        ask: Ask,
        allow: Collection[str] = (),
    ) -> None:
        super().__init__(allow=allow, ask=ask)
        self.elicit = elicit


class FormRefuser:
    """Where nobody can be asked: it is said, and the agent is told that nobody chose."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def elicit(self, elicitation: Elicitation) -> Reply | None:
        asked = safe_line(elicitation.message)
        self._screen.note(f"{safe_line(elicitation.agent)} asks: {asked}; nobody can be asked here")
        return elicitation.cancel()


class Rejecter:
    """Rejects, and says so: why only once."""

    def __init__(self, screen: Screen, allow: str | None) -> None:
        self._screen = screen
        self._why = f", by --allow {allow}" if allow else "; nobody can be asked here, --allow lets more pass"

    async def __call__(self, permission: Permission) -> v2.PermissionOption | None:
        why, self._why = self._why, ""
        kind = f" ({known})" if (known := kind_text(permission.kind)) else ""
        self._screen.note(f"rejected {safe_line(permission.title)}{kind}{why}")
        return permission.reject()


class PermissionPrompt:
    """Asks at the terminal, one question at a time: by number, or y and n."""

    def __init__(self, screen: Screen, terminal: AnswerSource) -> None:
        self._screen = screen
        self._terminal = terminal

    async def __call__(self, permission: Permission) -> v2.PermissionOption | None:
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


def choose(permission: Permission, typed: str) -> v2.PermissionOption | None:
    """The option that was typed: its number, `y` for once, `n`, or how its name begins."""
    word = typed.casefold()
    if word.isdigit():
        return permission.options[int(word) - 1] if 0 < int(word) <= len(permission.options) else None
    if word in ("y", "yes"):
        return permission.allow()
    if word in ("n", "no"):
        return permission.reject()
    named = [option for option in permission.options if word and option.name.casefold().startswith(word)]
    return named[0] if len(named) == 1 else None


YES = ("y", "yes")
NO = ("n", "no")


class AnswerSource(Protocol):
    """Whoever sits at the terminal."""

    one_at_a_time: Lock

    def forget(self) -> None: ...

    async def line(self) -> str | None: ...


class _Left(Exception):
    """The end of input (Ctrl-D): nobody chose."""


class FormFiller:
    def __init__(self, screen: Screen, terminal: AnswerSource) -> None:
        self._screen = screen
        self._terminal = terminal

    async def elicit(self, elicitation: Elicitation) -> Reply | None:
        async with self._terminal.one_at_a_time:
            with self._screen.filling() as sheet:
                self._terminal.forget()
                sheet.head(_about(elicitation))
                try:
                    if elicitation.url is not None:
                        return await self._visit(elicitation, sheet)
                    return await self._fill_in(elicitation, sheet)
                except _Left:
                    return elicitation.cancel()

    async def _visit(self, elicitation: Elicitation, sheet: FormView) -> Reply:
        sheet.ask("Open it yourself; do you agree to?", "y or n")
        while True:
            typed = (await self._line()).casefold()
            if typed in YES:
                return elicitation.accept()
            if typed in NO:
                return elicitation.decline()
            sheet.ask("y or n?")

    async def _fill_in(self, elicitation: Elicitation, sheet: FormView) -> Reply:
        for field in elicitation.fields:
            if isinstance(field, UnknownField) and field.required:
                sheet.tell(f"it wants {safe_line(field.title)}, of a kind that is not known here")  # ELIC-09
                return elicitation.cancel()
        while True:
            values = {field.name: await self._value(field, sheet) for field in elicitation.fields}
            sheet.ask("Send this?", "Enter sends it, n declines, r begins again")
            match (await self._line()).casefold():
                case "" | "y" | "yes":
                    return elicitation.accept(values)
                case "n" | "no":
                    return elicitation.decline()

    async def _value(self, field: Field, sheet: FormView) -> Any:
        """What is typed, once it fits; nothing typed is the default, or leaves the field out."""
        if isinstance(field, UnknownField):
            sheet.tell(f"{safe_line(field.title)} is of a kind that is not known here, and left out")
            return None
        options = field.options if isinstance(field, ChoiceField | ChoicesField) else ()
        about = f": {safe_line(field.description)}" if field.description else ""
        sheet.ask(safe_line(field.title) + about, hint(field), map(_name, options))
        while True:
            typed = await self._line()
            if not typed and (field.default is not None or not field.required):
                return field.default
            value = read(field, typed)
            try:
                return field.read(value)
            except Unchecked:
                sheet.tell("its pattern is too slow to check here; the agent checks it")
                return value
            except Unfit as problem:
                sheet.tell(f"it {problem}" if typed else "it is needed")
                sheet.ask(safe_line(field.title))

    async def _line(self) -> str:
        typed = await self._terminal.line()
        if typed is None:
            raise _Left
        return typed


def _about(elicitation: Elicitation) -> list[str]:
    lines = [f"{safe_line(elicitation.agent)} asks:", *question_lines(elicitation.message)]
    if elicitation.url is not None:
        lines += [
            safe_text(elicitation.url),
            f"which leads to {safe_line(elicitation.host or 'nowhere known')}",
        ]
    return lines


def _name(option: Option) -> str:
    about = f": {option.description}" if option.description else ""
    return safe_line(f"{option.title}{about}")


def read(field: Field, typed: str) -> Any:
    """What was typed, as a value of the field, if it can be one; it is for the field to say."""
    match field:
        case IntegerField():
            return int(typed) if typed.removeprefix("-").isdecimal() else typed
        case NumberField():
            try:
                return float(typed)
            except ValueError:
                return typed
        case BooleanField():
            word = typed.casefold()
            return True if word in YES else False if word in NO else typed
        case ChoiceField():
            return _choice(field.options, typed)
        case ChoicesField():
            return [_choice(field.options, word.strip()) for word in typed.split(",") if word.strip()]
    return typed


def _choice(options: tuple[Option, ...], typed: str) -> str:
    if typed.isdecimal() and 0 < int(typed) <= len(options):
        return options[int(typed) - 1].value
    word = typed.casefold()
    named = [option.value for option in options if word in (option.title.casefold(), option.value.casefold())]
    return named[0] if named else typed


def hint(field: Field) -> str:
    """What may be typed."""
    parts: list[str] = []
    match field:
        case TextField():
            parts.append(safe_line(str(field.format or ""), limit=40))
            parts.append(_range(field.min_length, field.max_length, "characters"))
        case IntegerField() | NumberField():
            parts.append(_range(field.minimum, field.maximum) or "a number")
        case BooleanField():
            parts.append("y or n")
        case ChoiceField():
            parts.append("a number")
        case ChoicesField():
            parts.append("numbers, with commas")
            parts.append(_range(field.min_items, field.max_items, "of them"))
    if field.default is not None:
        parts.append(f"Enter for {_shown(field)}")
    elif not field.required:
        parts.append("may be left out")
    return ", ".join(part for part in parts if part)


def _shown(field: Field) -> str:
    if isinstance(field.default, bool):
        return "y" if field.default else "n"
    if isinstance(field, ChoiceField | ChoicesField):
        chosen = field.default if isinstance(field.default, list) else [field.default]
        return safe_line(", ".join(option.title for option in field.options if option.value in chosen))
    return safe_line(str(field.default), limit=60)


def _range(least: float | None, most: float | None, of: str = "") -> str:
    if least is not None and most is not None:
        return f"{least:g} to {most:g} {of}".strip()
    if least is not None:
        return f"{least:g} or more {of}".strip()
    return "" if most is None else f"up to {most:g} {of}".strip()
