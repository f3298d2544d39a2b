"""The terminal UI on a stage: without a terminal, driven from a program, in a given size and theme. For the
pictures of it (`tools/shots`), and for its tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from antiphon.client import ClientOptions, Link, connect
from antiphon.tui import ChatApp, PendingQuestions
from antiphon.tui.screens.chat import ChatScreen

DEADLINE = 60.0


class Stage:
    def __init__(self, app: ChatApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def chat(self) -> ChatScreen:
        chat = self.app.chat
        assert chat is not None
        return chat

    async def until(self, holds: Callable[[], Any], *, deadline: float = DEADLINE) -> None:
        """Wait for something that shows on the screen, or will."""
        try:
            async with asyncio.timeout(deadline):
                while not holds():
                    await self.pilot.pause(0.02)
        except TimeoutError:
            raise AssertionError(f"not in {deadline:g} s; the screen shows:\n{self.text}") from None
        await self.pilot.pause()

    async def opened(self, *, deadline: float = DEADLINE) -> ChatScreen:
        """Wait for a session on the screen."""
        await self.until(
            lambda: isinstance(self.app.screen, ChatScreen) and self.app.screen.is_mounted, deadline=deadline
        )
        return self.chat

    async def write(self, text: str) -> None:
        """Into the composer, and Enter."""
        self.chat.composer.focus()
        self.chat.composer.put(text)
        await self.pilot.press("enter")

    async def shows(self, text: str) -> str:
        """The screen as text, once it has this."""
        screen = ""

        def holds() -> bool:
            nonlocal screen
            screen = self.text
            return text in screen

        try:
            await self.until(holds)
        except AssertionError:
            raise AssertionError(f"no {text!r} in:\n{screen}") from None
        return screen

    async def rests(self) -> None:
        """Wait until the turn is over."""
        await self.shows("○ ready")

    @property
    def text(self) -> str:
        """What is on the screen, line by line."""
        width, height = self.app.size
        lines = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip()[: 4 * width] for strip in lines[:height])

    def svg(self, title: str = "antiphon chat") -> str:
        """A picture of it. The font is asked of the machine, and not of a stranger's server."""
        made = self.app.export_screenshot(title=title)
        made = re.sub(r"@font-face \{.*?\}", "", made, flags=re.DOTALL)
        return made.replace("Fira Code", "DejaVu Sans Mono")


@asynccontextmanager
async def staged(
    target: Any,
    *,
    token: str | None = None,
    size: tuple[int, int] = (120, 36),
    light: bool = False,
    cwd: str = "/",
    name: str = "you",
    session: tuple[str, str] | None = None,
    new: bool = True,
    place: str = "here",
    history: Path | None = None,
    **connecting: Any,
) -> AsyncIterator[Stage]:
    """The UI over an agent (a command, an address, an agent in this process), with a session on the screen, a
    new one or `session` (its id and folder); with neither, the list of them."""
    asking = PendingQuestions()
    apps: list[ChatApp] = []

    def linked(link: Link) -> None:
        for app in apps:
            app.linked()

    async with connect(
        target, token=token, answers=asking, options=ClientOptions(name=name, on_link=linked), **connecting
    ) as client:
        app = ChatApp(
            client,
            asking,
            cwd=cwd,
            place=place,
            session=session,
            new=new and session is None,
            history=history,
            theme="antiphon-light" if light else "antiphon-dark",
        )
        apps.append(app)
        async with app.run_test(size=size, notifications=True) as pilot:
            stage = Stage(app, pilot)
            if session is not None or new:
                await stage.opened()
            yield stage
