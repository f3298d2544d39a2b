"""Reaching a hub from the command line: by its address, by the folder of one that runs, or by its store."""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from antiphon.cli.advice import tell
from antiphon.cli.exits import Exit, Failure
from antiphon.cli.own_command import here
from antiphon.cli.patience import AT_A_HUB, noted_wait, print_note
from antiphon.cli.trust import tls_for, trust
from antiphon.client import Client, Permission, connect
from antiphon.errors import AntiphonError, StoreCorrupt
from antiphon.hub import HubFolder
from antiphon.hub.access.origins import is_loopback


class Identified(Protocol):
    @property
    def session_id(self) -> str: ...


S = TypeVar("S", bound=Identified)


def find_hub(hub: str | None, token: str | None, data: str | None) -> tuple[str, str] | None:
    """Address and token of the hub that is meant, if one runs. Raises `Failure`."""
    if hub is not None:
        folder, address = HubFolder(data), read_hub(hub)
        own = is_loopback(urlsplit(address).hostname or "")  # ours is shown to nobody elsewhere
        if token is None and own and (folder.path / "token").exists():
            token = folder.token
        if token is None:
            raise Failure(
                "a token is needed for this hub: --token, or better ANTIPHON_TOKEN; "
                "`antiphon token create NAME`, where it runs, makes one",
                Exit.USAGE,
            )
        return address, token
    running = HubFolder(data).running()
    trust(None if running is None else running.ca)
    return None if running is None else (running.acp, token or running.token)


def read_hub(given: str) -> str:
    """A hub's WebSocket address: as it is, of its page, or of `HOST:PORT`. Raises `Failure`."""
    scheme, _, rest = given.rpartition("://")
    rest = rest.rstrip("/")
    if not rest or scheme not in ("", "ws", "wss", "http", "https"):
        raise Failure(f"{given!r} is no address of a hub: it looks like 127.0.0.1:8642", Exit.USAGE)
    secure = "s" if scheme in ("wss", "https") else ""
    return f"ws{secure}://{rest}" if "/" in rest else f"ws{secure}://{rest}/acp"


def own_name() -> str:
    """What the other clients of a session see of who sits here."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # nobody in particular
        return "antiphon"


class NobodyDecides:
    """Leaves questions to those who sit there: who looks in on a session must not reject what is asked."""

    async def decide(self, permission: Permission) -> None:
        await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def reached(
    hub: str | None,
    token: str | None,
    data: str | None,
    *,
    store: bool = False,
    notes: bool = True,
    **connecting: Any,
) -> AsyncIterator[Client]:
    """A client of the hub; with `store`, where none runs, of what it has kept. `notes`: say on stderr that
    the hub takes its time."""
    connecting = {"answers": NobodyDecides(), **connecting}
    found = find_hub(hub, token, data)
    if found is not None:
        address, secret = found
        connecting = {"reconnect": False, **connecting}
        with noted_wait(AT_A_HUB, print_note if notes else lambda _: None) as reached_it:
            async with connect(
                address, token=secret, tls=tls_for(address), version=2, **connecting
            ) as client:
                reached_it()
                yield client
        return
    folder = HubFolder(data)
    if not store:
        raise Failure(f"no hub runs in {folder.path}: start one with `{here('serve', data)}`")
    if not folder.sessions.exists():
        raise Failure(f"there are no sessions in {folder.path}: `{here('serve', data)}` begins to keep some")
    from antiphon.hub import Hub
    from antiphon.stores.sqlite import SQLiteStore

    with folder.held():
        sessions = SQLiteStore(folder.sessions)
        try:
            await sessions.open()
        except StoreCorrupt as error:
            await sessions.aclose()
            sessions = SQLiteStore(folder.sessions, read_only=True)
            try:
                await sessions.open()
            except StoreCorrupt:
                await sessions.aclose()
                raise Failure(
                    f"{error}, and nothing in it can be read: move the file away, "
                    "or name another folder with --data DIR"
                ) from None
            if notes:
                print_note(f"{error}; it is only read")
        kept = Hub({}, store=sessions)
        async with connect(kept, version=2, **connecting) as client:
            yield client


async def find_session(client: Client, named: str) -> Any:
    """The session of this id, or whose id begins so. Raises `Failure`."""
    return pick([info async for info in client.list_sessions(archived="include")], named)


def pick(found: Sequence[S], named: str) -> S:
    """The one of this id, or whose id begins so. Raises `Failure`."""
    exact = [info for info in found if info.session_id == named]
    near = exact or [
        info for info in found if info.session_id.startswith((named, f"sess_{named}")) and len(named) >= 4
    ]
    if len(near) == 1:
        return near[0]
    if near:
        raise Failure(f"{len(near)} sessions begin with {named!r}: write more of it", Exit.USAGE)
    short = any(info.session_id.startswith((named, f"sess_{named}")) for info in found)
    listed = f"`{here('sessions list')}` shows what there is"
    raise Failure(f"there is no session {named!r}: {'write four letters or more' if short else listed}")


def run_told(work: Callable[[], Awaitable[None]]) -> Exit:
    """Run it; what goes wrong is one line on stderr."""
    logging.getLogger("antiphon").addHandler(logging.NullHandler())
    logging.getLogger("antiphon").propagate = False

    async def main() -> None:
        await work()

    try:
        asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return Exit.CANCELLED
    except BrokenPipeError:
        return Exit.ERROR
    except (Failure, AntiphonError, OSError) as error:
        return tell(error)
    return Exit.DONE
