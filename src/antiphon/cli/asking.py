"""What an agent asks, on the command line: `--allow` decides, or whoever sits at the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Collection

from antiphon.cli.describing import kind_text
from antiphon.cli.filling import Filling, Typist
from antiphon.cli.screens import Screen
from antiphon.client import Ask, Elicitation, Permission, Permissions, Reply
from antiphon.schema import v2
from antiphon.text_safety import safe_line

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


def make_answers(allow: str | None, screen: Screen, terminal: Typist | None) -> Permissions:
    """`allow` as given, or `None`: then the terminal is asked, if there is one. Forms are for the terminal,
    whatever is allowed."""
    elicits = NotFilling(screen).elicit if terminal is None else Filling(screen, terminal).elicit
    if allow == "ask" or (allow is None and terminal is not None):
        assert terminal is not None
        return Answers(elicits, ask=Asking(screen, terminal))
    return Answers(elicits, allow=ALLOWED[allow or "none"], ask=Rejecting(screen, allow))


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


class NotFilling:
    """Where nobody can be asked: it is said, and the agent is told that nobody chose."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def elicit(self, elicitation: Elicitation) -> Reply | None:
        asked = safe_line(elicitation.message)
        self._screen.note(f"{safe_line(elicitation.agent)} asks: {asked}; nobody can be asked here")
        return elicitation.cancel()


class Rejecting:
    """Rejects, and says so: why only once."""

    def __init__(self, screen: Screen, allow: str | None) -> None:
        self._screen = screen
        self._why = f", by --allow {allow}" if allow else "; nobody can be asked here, --allow lets more pass"

    async def __call__(self, permission: Permission) -> v2.PermissionOption | None:
        why, self._why = self._why, ""
        kind = f" ({known})" if (known := kind_text(permission.kind)) else ""
        self._screen.note(f"rejected {safe_line(permission.title)}{kind}{why}")
        return permission.reject()


class Asking:
    """Asks at the terminal, one question at a time: by number, or y and n."""

    def __init__(self, screen: Screen, terminal: Typist) -> None:
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
