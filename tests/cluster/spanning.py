"""Two real hubs on one real NATS server, and clients by hand that ask for everything that spans hubs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from antiphon.transports.websocket import connect_websocket
from tests.agent.talk import INFO, Talk
from tests.hub.running import AGENT, Served, served

T = TypeVar("T")
DEADLINE = 60.0
LEASE = "2"
_names = itertools.count()
ASKED = {"_meta": {"antiphon": {"presence": True, "sessionUpdates": True, "queueUpdates": True}}}


@contextmanager
def two_hubs(
    folder: Path, nats: str, *options: str, agent: Sequence[str] = AGENT
) -> Iterator[tuple[Served, Served]]:
    """Run hubs `a` and `b` on streams of their own. Either may own each session."""
    shared = ["--store", nats, "--store-name", f"span{next(_names)}", "--lease", LEASE, "--label", "here"]
    kept = folder / "agent.db"
    agent = [*agent, "--store", str(kept)]
    for name in "ab":
        (folder / name).mkdir(mode=0o700)
    with (
        served(folder / "a", *shared, *options, agent=agent) as a,
        served(folder / "b", *shared, *options, agent=agent) as b,
    ):
        yield a, b


async def until(look: Callable[[], Awaitable[T | None]]) -> T:
    """Look until something is there, and return it."""
    while True:
        found = await look()
        if found:
            return found
        await asyncio.sleep(0.02)


def store_name(hub: Served) -> str:
    """Return the name of the streams of a hub."""
    return hub.arguments[hub.arguments.index("--store-name") + 1]


@asynccontextmanager
async def talk_to(hub: Served, name: str, *, token: str | None = None) -> AsyncIterator[Talk]:
    """Connect a client that is named, and that asked for everything."""
    transport = await connect_websocket(hub.acp, headers={"Authorization": f"Bearer {token or hub.token}"})
    talk = Talk(transport)
    about = {"info": {**INFO, "name": name}, "_meta": {"antiphon": {"clientId": name}}}
    await talk.call("init", "initialize", protocolVersion=2, capabilities=ASKED, **about)
    try:
        yield talk
    finally:
        await transport.aclose()


async def begin(talk: Talk, id: str = "new") -> str:
    """Begin a session and return its id."""
    made = await talk.call(id, "session/new", cwd="/tmp", mcpServers=[])
    return str(made["sessionId"])


async def attach(talk: Talk, session_id: str, id: str = "attach") -> dict[str, Any]:
    attached: dict[str, Any] = await talk.call(id, "_antiphon/attach", sessionId=session_id)
    return attached


@asynccontextmanager
async def begun_by_alice(hub: Served, bob: Talk) -> AsyncIterator[tuple[Talk, str]]:
    """Connect alice, who begins a session that bob attaches to. Gives her, and the id of the session."""
    async with talk_to(hub, "alice") as alice:
        id = await begin(alice)
        await attach(bob, id)
        await until_present(bob, "alice", "bob")
        yield alice, id


async def until_present(talk: Talk, *names: str) -> list[dict[str, Any]]:
    """Wait until exactly these clients are shown as attached, and return them."""
    while True:
        shown: list[dict[str, Any]] = (await talk.update("_antiphon_presence"))["clients"]
        if sorted(one["clientId"] for one in shown) == sorted(names):
            return shown


async def until_listed(talk: Talk, session_id: str, **wanted: Any) -> dict[str, Any]:
    """Wait until the client is told of a session with all of this."""
    while True:
        told = (await talk.until(lambda frame: frame.get("method") == "_antiphon/sessions"))["params"]
        for entry in told["sessions"]:
            known = {**entry, **entry["_meta"]["antiphon"]}
            if entry["sessionId"] == session_id and all(known.get(key) == wanted[key] for key in wanted):
                return known


async def until_states(talk: Talk, states: dict[str, str | None]) -> None:
    """Wait until the client was last told that sessions are in these states; `None`: not open."""
    told: dict[str, str | None] = {}
    while any(told.get(id, "") != state for id, state in states.items()):
        news = (await talk.until(lambda frame: frame.get("method") == "_antiphon/sessions"))["params"]
        told |= {each["sessionId"]: each["_meta"]["antiphon"].get("state") for each in news["sessions"]}


async def until_gone(talk: Talk, session_id: str) -> None:
    """Wait until the client is told that a session was deleted."""
    await talk.until(
        lambda frame: (
            frame.get("method") == "_antiphon/sessions" and session_id in frame["params"].get("gone", ())
        )
    )


async def listed(talk: Talk, session_id: str, id: str) -> dict[str, Any]:
    """Return what the list has of a session."""
    found = await talk.call(id, "session/list")
    entry = next(each for each in found["sessions"] if each["sessionId"] == session_id)
    return {**entry, **entry["_meta"]["antiphon"]}
