"""One client of the hub, which comes and goes, prompts, cancels and answers, and never minds a killed hub."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

from antiphon.client import Client, ClientOptions, ClientSession, Permission, Permissions, Reconnect, connect
from antiphon.errors import CallFailed, LinkLost
from tests.faults.hub_process import HubProcess
from tests.faults.hub_record import Ear, Record

SOON = Reconnect(first=0.02, longest=0.2, patience=120.0)
WAYS: dict[str, dict[str, Any]] = {
    "v1": {"version": 1},
    "v2": {"version": 2},
    "proposed": {"version": "v2-proposed"},
}


class Participant:
    """`outcomes` has what became of each prompt, as this client was told."""

    def __init__(self, number: int, dialect: str, seed: object, hub: HubProcess, *, stays: bool) -> None:
        self.name = f"client {number} ({dialect})"
        self._dialect = dialect
        self._seed = seed
        """How it answers a question depends on this and on the question alone."""
        self.hub = hub
        self._stays = stays
        """Whether it never leaves, and answers whatever it is asked."""
        self.outcomes: dict[str, str] = {}
        self.records: list[Record] = []
        self.heard: Callable[[], None] = lambda: None
        self.sessions: dict[str, ClientSession] = {}
        self.present = asyncio.Event()
        self._stack = AsyncExitStack()
        self._ear = Ear()
        self._prompts: set[asyncio.Task[None]] = set()
        self.client: Client

    # --- coming and going --------------------------------------------------------------------------

    async def join(self, *session_ids: str) -> None:
        """Come, however often the hub is killed meanwhile."""
        while True:
            try:
                await self.connect()
                break
            except LinkLost:
                await self._stack.aclose()
                await asyncio.sleep(0.02)
        for session_id in session_ids:
            while session_id not in self.sessions:
                await self.client.link.connected()
                with suppress(LinkLost):
                    self._follow(await self.client.load_session(session_id, "/"))
        self.present.set()

    async def connected(self) -> None:
        """Wait until it is here and its link is up. It may leave and come again meanwhile."""
        while True:
            await self.present.wait()
            client = self.client
            try:
                return await client.link.connected()
            except LinkLost:
                if client is self.client and self.present.is_set():
                    raise

    async def create(self, agent: str | None = None) -> str:
        session = await self.client.new_session("/", agent=agent)
        self._follow(session)
        self.present.set()
        return session.id

    async def connect(self) -> None:
        self._stack, self._ear, self.sessions = AsyncExitStack(), Ear(), {}
        connecting = connect(
            self.hub.address,
            token=self.hub.token,
            answers=Permissions(ask=self._ask),
            reconnect=SOON,
            options=ClientOptions(tap=self._tap),
            **WAYS[self._dialect],
        )
        self.client = await self._stack.enter_async_context(connecting)

    def _tap(self, way: str, frame: Any) -> None:
        self._ear(way, frame)
        if way == "in":
            self.heard()

    def _follow(self, session: ClientSession) -> None:
        assert session.cursor is not None
        self.sessions[session.id] = session
        told = self._ear.told.setdefault(session.id, [])
        self.records.append(Record(self.name, self._dialect, session.cursor, session, told=told))

    async def leave(self) -> None:
        """What it has prompted goes on without it; its records end here, and are whole as far as they go."""
        self.present.clear()
        await self._stack.aclose()
        await asyncio.gather(*self._prompts, return_exceptions=True)

    # --- what it does ------------------------------------------------------------------------------

    def prompt(self, session_id: str, text: str, *, cancel_after: float | None) -> None:
        self.outcomes[text] = "on its way"
        task = asyncio.get_running_loop().create_task(self._prompt(session_id, text, cancel_after))
        self._prompts.add(task)
        task.add_done_callback(self._prompts.discard)

    async def _prompt(self, session_id: str, text: str, cancel_after: float | None) -> None:
        try:
            turn = await self.sessions[session_id].prompt(text)
            if cancel_after is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(cancel_after):
                        await turn.drained()
                await turn.cancel()
            end = await turn.drained()
        except CallFailed as error:
            self.outcomes[text] = _why(error.error.code, error.error.data)
            return
        except LinkLost as error:
            self.outcomes[text] = f"lost: {error.reason}"
            return
        if end.cut is not None:
            self.outcomes[text] = f"lost: {end.cut}"
        elif end.error is not None:
            self.outcomes[text] = _why(int(end.error.code), end.error.data)
        else:
            self.outcomes[text] = str(end.stop_reason)

    async def finish(self) -> None:
        """Wait until everything that it prompted has an outcome."""
        await asyncio.gather(*self._prompts)

    async def wait_for_room(self, most: int) -> None:
        """Wait until fewer than so many of its prompts have no outcome yet."""
        while len(self._prompts) >= most:
            await asyncio.wait(self._prompts, return_when=asyncio.FIRST_COMPLETED)

    @property
    def waits(self) -> list[str]:
        """The prompts that it has no outcome of."""
        return [text for text, outcome in self.outcomes.items() if outcome == "on its way"]

    async def _ask(self, permission: Permission) -> Any:
        chance = random.Random(f"{self._seed} {permission.title}")
        mood = chance.random()
        if mood < 0.3 and not self._stays:
            await asyncio.Event().wait()  # it never answers
        await asyncio.sleep(chance.random() * 0.05)
        return permission.reject() if mood > 0.8 else permission.allow()


def _why(code: int, data: Any) -> str:
    reason = data.get("reason") if isinstance(data, dict) else None
    return "cancelled" if code == -32800 else f"failed: {reason or code}"
