"""`antiphon acp`: an ACP agent over stdio for an editor, which relays a hub.

Frames pass unchanged. Only `session/new` is changed: to name an agent, or to open an existing session.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from antiphon.cli.agents import adding, resolve
from antiphon.cli.commands.options import HubPlace
from antiphon.cli.editor_link import ReconnectingHub, encode, own_meta, read
from antiphon.cli.exit_codes import Failure
from antiphon.cli.hub_client import (
    A_MOMENT,
    AT_A_HUB,
    find_hub,
    noted_wait,
    open_client,
    reporting,
    tls_for,
)
from antiphon.cli.program import note_protocol_on_stdin, print_note
from antiphon.client import Reconnect
from antiphon.errors import LinkLost
from antiphon.hub import HubFolder, Running, default_agent_name
from antiphon.private_files import open_private
from antiphon.wire import Transport, child_environment, failure_of, on_one_line

STARTING = 120.0
"""Seconds that a hub has to start."""


@reporting
async def run_acp(*, agent: Sequence[str], session: str | None, busy: str, place: HubPlace) -> None:
    note_protocol_on_stdin("attach")
    folder = HubFolder(place.data)
    starts = find_hub(place) is None

    async def find() -> tuple[str, str]:
        """Find the hub, or start it if this command started it before."""
        found = find_hub(place)
        if found is None and starts:
            running = await start_hub(folder, agent, busy=busy)
            found = running.acp, running.token
        if found is None:
            raise LinkLost("no hub runs")
        return found

    with noted_wait("waiting for the hub to start"):
        found = await find()
    name = default_agent_name(agent) if agent else None
    known = folder.running() if place.hub is None else None
    if name is not None and known is not None and name not in known.agents:
        async with open_client(place, notes=False) as client:
            served = client.agents  # one may have been added since the hub was started
        if name not in served:
            add = adding(name, agent, place.data)
            raise Failure(
                f"the running hub (process {known.pid}) has no agent {name!r}, but {', '.join(served)}: "
                f"`{add}` adds it"
            )
    from antiphon.wire import StdioTransport

    async def again() -> Transport:
        return await open_link(*await find())

    ours = await StdioTransport.open()
    theirs = ReconnectingHub(await open_link(*found), again, Reconnect())
    async with theirs.serving():
        await EditorRelay(ours, theirs, agent=name, session=session).run()


async def open_link(address: str, token: str) -> Transport:
    from antiphon.wire import connect_websocket

    return await connect_websocket(
        address, headers={"Authorization": f"Bearer {token}"}, tls=tls_for(address)
    )


async def start_hub(folder: HubFolder, agent: Sequence[str], *, busy: str = "queue") -> Running:
    """Start a hub that outlives this process. Raises `Failure`.

    busy: what plain prompts do there while a session works
    """
    if agent:
        resolve(agent)  # report a wrong agent here, not in the log of the hub
    folder.make()
    log = folder.path / "hub.log"
    started = _spawn(folder, agent, log, busy=busy)
    deadline = asyncio.get_running_loop().time() + STARTING
    while asyncio.get_running_loop().time() < deadline:
        running = folder.running()
        if running is not None:
            return running  # ours, or one that started faster
        if started.poll() not in (None, 0) and folder.running() is None:
            raise Failure(f"the hub did not start: {log} says why")
        await asyncio.sleep(0.05)
    raise Failure(f"the hub did not start within {STARTING:g} s: {log} says why")


def _spawn(folder: HubFolder, agent: Sequence[str], log: Path, *, busy: str) -> subprocess.Popen[bytes]:
    asked = ["--port", "0", "--data", str(folder.path), "--busy", busy]
    behind = ["--", *agent] if agent else []
    with os.fdopen(open_private(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "antiphon", "serve", *asked, *behind],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd=folder.path,
            env=child_environment(),
        )


class EditorRelay:
    """Passes frames between an editor and a hub."""

    def __init__(
        self, editor: Transport, hub: Transport, *, agent: str | None = None, session: str | None = None
    ) -> None:
        self._editor = editor
        self._hub = hub
        self._agent = agent
        self._session = session
        self._v1 = False
        self._asked: dict[Any, str] = {}
        """The existing session for each `session/new` of the editor that was changed, by request id."""
        self._held: list[bytes] = []
        """Frames of that session that came before the editor has its id."""
        self._waiting: asyncio.TimerHandle | None = None
        """Prints a note if the hub takes long to answer `initialize`."""
        self._over = asyncio.Event()
        self._waits: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        self._editor.start(lambda frames: self._pass(frames, self._editor, self._hub), self._over.set)
        self._hub.start(lambda frames: self._pass(frames, self._hub, self._editor), self._over.set)
        await self._over.wait()
        if self._waiting is not None:
            self._waiting.cancel()
        reason = self._hub.end_reason
        await self._hub.aclose()
        await self._editor.aclose()
        if reason and "this side" not in reason:
            raise Failure(f"the connection to the hub was lost: {reason}")

    def _pass(self, frames: list[Any], source: Transport, to: Transport) -> None:
        read = self._from_editor if source is self._editor else self._from_hub
        for frame in frames:
            if isinstance(frame, bytes):
                for out in read(on_one_line(frame)):
                    to.send(out)
            else:  # too large: the request fails on the side that waits for an answer
                (to if frame.answers else source).send(failure_of(frame))
        if to.congested:
            source.pause()
            task = asyncio.get_running_loop().create_task(self._wait(source, to))
            self._waits.add(task)
            task.add_done_callback(self._waits.discard)

    async def _wait(self, source: Transport, to: Transport) -> None:
        await to.drain()
        source.resume()

    def _from_editor(self, frame: bytes) -> list[bytes]:
        if b'"initialize"' in frame and self._waiting is None:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(A_MOMENT, print_note, AT_A_HUB)
        changes = b'"session/new"' in frame and (self._agent or self._session)
        asked = (read(frame) if changes else None) or {}
        params = asked.get("params")
        if asked.get("method") != "session/new" or not isinstance(params, dict):
            return [frame]
        if self._session is not None:
            asked["method"] = "session/load" if self._v1 else "session/resume"
            params["sessionId"] = self._session
            if not self._v1:
                params["replayFrom"] = {"type": "start"}
            self._asked[asked.get("id")] = self._session
        else:
            own_meta(params)["agent"] = self._agent
        return [encode(asked)]

    def _from_hub(self, frame: bytes) -> list[bytes]:
        if not self._asked:
            result = (read(frame) or {}).get("result") if b'"protocolVersion"' in frame else None
            if isinstance(result, dict):
                if self._waiting is not None:
                    self._waiting.cancel()
                self._v1 = result.get("protocolVersion") == 1
            return [frame]
        fields = read(frame) or {}
        if "method" in fields:
            params = fields.get("params")
            session = params.get("sessionId") if isinstance(params, dict) else None
            if session in self._asked.values():
                self._held.append(frame)
                return []
            return [frame]
        session = self._asked.pop(fields.get("id"), None)
        if session is None:
            return [frame]
        if isinstance(fields.get("result"), dict):
            fields["result"]["sessionId"] = session
        held, self._held = self._held, []
        return [encode(fields), *held]
