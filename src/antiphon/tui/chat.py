"""Connect to an agent or a hub, and run the terminal UI."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from antiphon import __version__
from antiphon.client import Client, ClientOptions, Link, ProtocolVersion, Reconnect, connect
from antiphon.tui.app import ChatApp
from antiphon.tui.closable_output import closable_output
from antiphon.tui.questions import PendingQuestions


@dataclass(frozen=True, kw_only=True)
class Chat:
    """The target and the options of a chat."""

    target: Any
    """The target for `connect`: a command, an address, or an agent in this process."""
    place: str
    """The target as text."""
    cwd: str
    name: str
    token: str | None = None
    tls: ssl.SSLContext | None = None
    reconnect: Reconnect | bool = True
    session: Callable[[Client], Any] | None = None
    """Finds the session to open first: returns its id and its folder."""
    new: bool = False
    history: Path | None = None
    version: ProtocolVersion | None = None
    on_connected: Callable[[], object] = lambda: None
    """Called once the client is connected, before the UI takes the screen."""


async def run_chat(chat: Chat) -> int:
    """Run the UI until the user quits, and return the exit code. Raises what `connect` raises."""
    asking = PendingQuestions()
    app: ChatApp | None = None

    def linked(link: Link) -> None:
        if app is not None:
            app.linked()

    async with connect(
        chat.target,
        token=chat.token,
        version=chat.version,
        answers=asking,
        reconnect=chat.reconnect,
        options=ClientOptions(tls=chat.tls, name=chat.name, client_version=__version__, on_link=linked),
    ) as client:
        chat.on_connected()
        session = None if chat.session is None else await chat.session(client)
        app = ChatApp(
            client,
            asking,
            cwd=chat.cwd,
            place=chat.place,
            session=session,
            new=chat.new,
            history=chat.history,
        )
        quit_soon = partial(asyncio.get_running_loop().call_soon_threadsafe, app.exit)
        with _quits_on_hangup(app), closable_output(quit_soon):
            await app.run_async()
    return app.return_code or 0


@contextmanager
def _quits_on_hangup(app: ChatApp) -> Iterator[None]:
    """Quit as by key when the terminal is closed, so that nothing that was typed is lost."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGHUP, app.exit)
    except (AttributeError, NotImplementedError, RuntimeError):  # not on this platform, or in a thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
