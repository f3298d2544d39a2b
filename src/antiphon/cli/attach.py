"""`antiphon attach`: a session of the hub, followed in the terminal; what is typed is a prompt."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

from antiphon.cli.describing import clean, one_line
from antiphon.cli.exits import Exit, Failure
from antiphon.cli.plain import Plain, put_question
from antiphon.cli.reaching import find_session, reached, run_told
from antiphon.client import ClientSession, ClientTurn, Permission, Permissions, SessionEvent
from antiphon.engine.transcript import MessageType
from antiphon.schema import v2

QUIET = "type to prompt; Ctrl-C leaves, the session goes on"


def run_attach(*, session: str, hub: str | None, token: str | None, data: str | None) -> Exit:
    async def work() -> None:
        terminal = Attached()
        answers = Permissions(ask=terminal.ask)
        async with reached(hub, token, data, answers=answers, name="antiphon-attach") as client:
            if session == "new":
                await terminal.follow(await client.new_session(os.getcwd()))
                return
            info = await find_session(client, session)
            async with client.attach(info.session_id, cwd=info.cwd) as opened:
                await terminal.follow(opened)

    code = run_told(work)
    return Exit.DONE if code is Exit.CANCELLED else code


class Attached:
    def __init__(self) -> None:
        self._screen = Plain(sys.stdout, sys.stderr)
        self._question: tuple[Permission, asyncio.Future[str | None]] | None = None
        self._mine: set[str] = set()
        self._turns: list[ClientTurn] = []
        self._shown = 0
        self._showed = asyncio.Condition()

    async def follow(self, session: ClientSession) -> None:
        self._screen.begin(session.client, session)
        for message in session.messages:
            if message.type is not MessageType.THOUGHT:
                mark = "> " if message.type is MessageType.USER else ""
                print(f"{mark}{clean(message.text)}")
        self._screen.note(f"{session.id} ({session.state}): {QUIET}")
        events = session.events()  # from here on
        tasks = [asyncio.ensure_future(self._watch(events)), asyncio.ensure_future(self._type(session))]
        async with self._screen:
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, events: AsyncIterator[SessionEvent]) -> None:
        async for event in events:
            self._show(event)
            async with self._showed:
                self._shown = event.seq
                self._showed.notify_all()
        raise Failure("the hub is gone; the session goes on where it is kept")

    def _show(self, event: SessionEvent) -> None:
        update: Any = event.update
        if isinstance(update, v2.UserMessage) and update.message_id not in self._mine:
            text = "".join(block.text for block in update.content or () if isinstance(block, v2.TextContent))
            self._screen.note(f"> {one_line(text)}")
        self._screen.show(event, mine=True)
        if isinstance(update, v2.StateUpdate) and update.state is v2.State.IDLE and update.stop_reason:
            self._screen.note(str(update.stop_reason))

    async def ask(self, permission: Permission) -> str | None:
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._question = permission, answer
        put_question(permission, sys.stderr)
        try:
            return await answer
        finally:
            self._question = None
            if not answer.done() or answer.cancelled():
                self._screen.note("somebody else has answered, or it is over")

    async def _type(self, session: ClientSession) -> None:
        lines = read_lines()
        while (line := await lines.get()) is not None:
            text = line.strip()
            if self._question is not None:
                self._answer(text)
            elif text:
                turn = await session.prompt(text)
                if turn.message_id is not None:
                    self._mine.add(turn.message_id)
                self._turns.append(turn)
        if not self._turns:  # nobody types: it is only followed
            await asyncio.get_running_loop().create_future()
        for turn in self._turns:
            await turn.drained()
        async with self._showed:
            await self._showed.wait_for(lambda: self._shown >= session.fold.last_seq)

    def _answer(self, text: str) -> None:
        assert self._question is not None
        permission, answer = self._question
        if text.isdigit() and 1 <= int(text) <= len(permission.options) and not answer.done():
            answer.set_result(permission.options[int(text) - 1].option_id)
        else:
            self._screen.note(f"a number from 1 to {len(permission.options)}, please")


def read_lines() -> asyncio.Queue[str | None]:
    """The lines of stdin as they come, and None behind the last one. A thread that nobody waits for reads
    them: stdin may be anything."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone, and so is whoever waited
            for line in sys.stdin:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, name="typing", daemon=True).start()
    return lines
