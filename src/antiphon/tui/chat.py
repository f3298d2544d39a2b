"""Running it: a connection, and the app over it."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from antiphon import __version__
from antiphon.client import Client, ClientOptions, Link, ProtocolVersion, Reconnect, connect
from antiphon.tui.app import ChatApp
from antiphon.tui.questions import PendingQuestions


@dataclass(frozen=True, kw_only=True)
class Chat:
    """What to talk with, and how."""

    target: Any
    """What `connect` takes: a command, an address, or an agent in this process."""
    place: str
    """Where that is, in words."""
    cwd: str
    name: str
    token: str | None = None
    tls: ssl.SSLContext | None = None
    reconnect: Reconnect | bool = True
    session: Callable[[Client], Any] | None = None
    """Finds the session to begin with: gives its id and its folder."""
    new: bool = False
    history: Path | None = None
    version: ProtocolVersion | None = None
    on_connected: Callable[[], object] = lambda: None
    """Called once it can be talked with, before the screen is taken."""


async def run_chat(chat: Chat) -> int:
    """Until somebody leaves. Raises what `connect` raises; gives the exit code."""
    asking = PendingQuestions()
    apps: list[ChatApp] = []

    def linked(link: Link) -> None:
        for app in apps:
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
        apps.append(app)
        await app.run_async()
    return app.return_code or 0
