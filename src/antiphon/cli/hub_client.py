"""Connections to a hub: by its address, by the folder of a running hub, or by its store."""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from antiphon.cli.commands.options import HubPlace, StorePlace
from antiphon.cli.error_lines import print_error
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.program import command_line, print_note
from antiphon.cli.shared_store import make_store
from antiphon.client import Client, ClientOptions, Permission, PermissionDecider, Reconnect, connect
from antiphon.errors import AntiphonError, StoreCorrupt
from antiphon.hub import HubFolder, is_loopback
from antiphon.schema import v2
from antiphon.text_safety import safe_line

if TYPE_CHECKING:
    import ssl

A_MOMENT = 5.0
"""Seconds after which a note says what the user waits for."""
UNTITLED = "Untitled"
"""What a session without a title is called."""
MOST_LISTED = 10
"""Sessions that are listed where a name means several."""
AT_A_HUB = "waiting for the hub to answer; its agent may still be starting"

_trusted: list[str] = []


class Identified(Protocol):
    @property
    def session_id(self) -> str: ...
    @property
    def title(self) -> str | None: ...


P = ParamSpec("P")
S = TypeVar("S", bound=Identified)


def find_hub(place: HubPlace) -> tuple[str, str] | None:
    """Return the address and the token of the hub, or `None` if no hub runs. Raises `Failure`."""
    folder, token = HubFolder(place.data), place.token
    if place.hub is not None:
        address = hub_address(place.hub)
        local = is_loopback(urlsplit(address).hostname or "")  # our token is sent to no other machine
        if token is None and local and (folder.path / "token").exists():
            token = folder.token
        if token is None:
            raise Failure(
                f"the hub at {address} needs a token: set ANTIPHON_TOKEN, or give --token; "
                "`antiphon token create NAME`, on the hub's machine, makes one",
                Exit.USAGE,
            )
        return address, token
    running = folder.running()
    if running is None:
        return None
    trust(running.ca)
    return running.acp, token or running.token


def hub_address(given: str) -> str:
    """Return the WebSocket address for an address, a page's address or `HOST:PORT`. Raises `Failure`."""
    scheme, _, rest = given.rpartition("://")
    rest = rest.rstrip("/")
    if not rest or scheme not in ("", "ws", "wss", "http", "https"):
        raise Failure(f"{given!r} is not the address of a hub; expected e.g. 127.0.0.1:8642", Exit.USAGE)
    secure = "s" if scheme in ("wss", "https") else ""
    return f"ws{secure}://{rest}" if "/" in rest else f"ws{secure}://{rest}/acp"


def user_name() -> str:
    """Return the name that other clients of a session see."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the user id has no name
        return "antiphon"


# --- certificates ------------------------------------------------------------------------------


def trust(file: str | None) -> None:
    """Trust the certificates in a file in addition to the system's."""
    if file and file not in _trusted:
        _trusted.append(file)


def tls_for(address: str) -> ssl.SSLContext | None:
    """Return the TLS context for an address, or `None` for the default one. Raises `Failure`."""
    if not _trusted or not address.startswith(("wss://", "https://")):
        return None
    import ssl

    context = ssl.create_default_context()
    for file in _trusted:
        try:
            context.load_verify_locations(file)
        except (OSError, ssl.SSLError) as error:
            raise Failure(f"cannot read certificates from {file}: {error}", Exit.USAGE) from error
    return context


# --- connections -------------------------------------------------------------------------------


@contextmanager
def noted_wait(what: str, note: Callable[[str], None] = print_note) -> Iterator[Callable[[], None]]:
    """Note `what` if the block takes longer than a moment. Calling the yielded function prevents it."""
    timer = asyncio.get_running_loop().call_later(A_MOMENT, note, what)
    try:
        yield timer.cancel
    finally:
        timer.cancel()


class LeaveOpen:
    """Answers no question: a command that only looks into a session must not reject for its users."""

    async def decide(self, permission: Permission) -> None:
        await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def open_client(
    place: HubPlace,
    *,
    store: bool = False,
    notes: bool = True,
    answers: PermissionDecider | None = None,
    reconnect: Reconnect | bool = False,
    options: ClientOptions = ClientOptions(),
) -> AsyncIterator[Client]:
    """Connect to the hub. Raises `Failure`.

    store: if no hub runs, serve the sessions that it has stored. Those of a shared store are served anyway
    notes: print a note on stderr when the hub is slow or its store is damaged
    answers: decides on permission requests; by default they stay open
    """
    answers = answers or LeaveOpen()
    if place.store is not None:
        async with _open_shared(place.store, answers=answers) as client:
            yield client
        return
    found = find_hub(place)
    if found is None:
        if not store:
            raise no_hub(place)
        async with _open_store(place, notes=notes, answers=answers) as client:
            yield client
        return
    address, secret = found
    options = replace(options, tls=tls_for(address))
    with noted_wait(AT_A_HUB, print_note if notes else lambda _: None) as connected:
        async with connect(
            address, token=secret, version=2, answers=answers, reconnect=reconnect, options=options
        ) as client:
            connected()
            yield client


@asynccontextmanager
async def _open_store(place: HubPlace, *, notes: bool, answers: PermissionDecider) -> AsyncIterator[Client]:
    from antiphon.hub import Hub
    from antiphon.stores import SQLiteStore

    folder = stored_sessions(place)
    with folder.held():
        store = SQLiteStore(folder.sessions)
        try:
            await store.open()
        except StoreCorrupt as error:
            await store.aclose()
            store = SQLiteStore(folder.sessions, read_only=True)
            try:
                await store.open()
            except StoreCorrupt:
                await store.aclose()
                raise Failure(
                    f"{error}, and no session in it can be read: move the file away, "
                    "or name another folder with --data DIR"
                ) from None
            if notes:
                print_note(f"{error}; it is opened read-only")
        async with connect(Hub({}, store=store), version=2, answers=answers) as client:
            yield client


@asynccontextmanager
async def _open_shared(place: StorePlace, *, answers: PermissionDecider) -> AsyncIterator[Client]:
    from antiphon.hub import Hub

    async with connect(Hub({}, store=make_store(place)), version=2, answers=answers) as client:
        yield client


def no_hub(place: HubPlace) -> Failure:
    folder = HubFolder(place.data).path
    return Failure(f"no hub runs in {folder}: start one with `{command_line('serve', place.data)}`")


def stored_sessions(place: HubPlace) -> HubFolder:
    """Return the folder of a hub that has stored sessions. Raises `Failure`."""
    folder = HubFolder(place.data)
    if not folder.sessions.exists():
        serve = command_line("serve", place.data)
        raise Failure(
            f"there are no sessions in {folder.path}: `{serve}` starts a hub that stores them there"
        )
    return folder


async def find_session(client: Client, named: str) -> Any:
    """Return the session with this id or title, or the only one whose id or title begins with it. Raises
    `Failure`."""
    return find_named([info async for info in client.list_sessions(archived="include")], named)


def by_use(sessions: Iterable[v2.SessionInfo]) -> list[v2.SessionInfo]:
    """Sort sessions, the one used last first."""
    return sorted(sessions, key=lambda info: info.updated_at or "", reverse=True)


def find_named(found: Sequence[S], named: str) -> S:
    """Return the item with this session id or title, or the only one whose id or title begins with it. Raises
    `Failure`."""
    folded = " ".join(named.split()).casefold()
    titles = [" ".join((info.title or "").split()).casefold() for info in found]
    begins = [info for info in found if info.session_id.startswith((named, f"sess_{named}"))]
    ways = (
        [info for info in found if info.session_id == named],
        begins if len(named) >= 4 else [],
        [info for info, title in zip(found, titles, strict=True) if folded and title == folded],
        [info for info, title in zip(found, titles, strict=True) if folded and title.startswith(folded)],
    )
    near = next(filter(None, ways), [])
    if len(near) == 1:
        return near[0]
    if near:
        raise Failure(
            f"{named!r} is the beginning of {len(near)} sessions: give more of it",
            Exit.USAGE,
            more=_listed([(info.session_id, info.title) for info in near]),
        )
    advice = "give at least four characters" if begins else f"`{command_line('sessions list')}` lists them"
    raise Failure(f"there is no session {named!r}: {advice}")


def _listed(sessions: Sequence[tuple[str, str | None]]) -> list[str]:
    lines = [
        f"{safe_line(id)}  {safe_line(title or UNTITLED, limit=60)}" for id, title in sessions[:MOST_LISTED]
    ]
    rest = len(sessions) - len(lines)
    return [*lines, f"… and {rest} more"] if rest else lines


def reporting(work: Callable[P, Coroutine[Any, Any, Exit | None]]) -> Callable[P, Exit]:
    """Make a function that runs `work`, reports an error as one line on stderr, and returns the exit code."""

    @wraps(work)
    def run(*args: P.args, **given: P.kwargs) -> Exit:
        return run_reporting(work(*args, **given))

    return run


def run_reporting(work: Coroutine[Any, Any, Exit | None]) -> Exit:
    """Run `work`, report an error as one line on stderr, and return the exit code."""
    logging.getLogger("antiphon").addHandler(logging.NullHandler())
    logging.getLogger("antiphon").propagate = False

    try:
        code = asyncio.run(work)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return Exit.CANCELLED
    except BrokenPipeError:
        return Exit.ERROR
    except (Failure, AntiphonError, OSError) as error:
        return print_error(error)
    return Exit.DONE if code is None else code
