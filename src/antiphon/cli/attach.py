"""`antiphon attach`: follow a session of the hub in the terminal; typed lines are prompts or answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import suppress
from typing import Any

from antiphon.cli.commands.options import HubPlace
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub_client import (
    UNTITLED,
    by_use,
    find_hub,
    find_session,
    open_client,
    run_reporting,
    user_name,
)
from antiphon.cli.output.descriptions import LONGEST_NOTE
from antiphon.cli.output.plain import PlainScreen
from antiphon.cli.questions import Answers
from antiphon.client import (
    Client,
    ClientOptions,
    ClientSession,
    ClientTurn,
    FailureText,
    Link,
    LinkState,
    Reconnect,
    SessionEvent,
    read_failure,
)
from antiphon.engine import Message, MessageType, is_deletion, sender_in
from antiphon.errors import CallFailed, ResourceNotFound
from antiphon.paths import short_path
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Present, Who
from antiphon.schema.antiphon.messages import QuestionUpdate
from antiphon.text_safety import printed_text, safe_line
from antiphon.transcripts import DELETED, block_text, ending_text

SHOWN = 20
"""Earlier messages that are shown when the user attaches."""
HOW = "type to prompt · Ctrl-C cancels your turn, or detaches if you have none · the session continues"
USER = (v2.UserMessage, v2.UserMessageChunk)


def run_attach(
    *,
    session: str | None,
    agent: str | None,
    name: str | None,
    place: HubPlace,
) -> Exit:
    attached = AttachRun()

    async def work() -> None:
        async with open_client(
            place,
            answers=Answers("ask", attached.screen, attached.typed),
            reconnect=Reconnect(find=lambda: find_hub(place)),
            options=ClientOptions(name=name or user_name(), on_link=attached.linked),
        ) as client:
            await attached.follow(client, await _chosen(client, session, agent))

    code = run_reporting(work())
    return attached.code if code in (Exit.DONE, Exit.CANCELLED) else code


async def _chosen(client: Client, named: str | None, agent: str | None) -> ClientSession:
    """Open the session that was named: by id, "new", or the latest one. Raises `Failure`."""
    if named is None and agent is None:
        return await open_latest(client)
    if named in (None, "new"):
        return await client.new_session(os.getcwd(), agent=agent)
    if agent is not None:
        raise Failure(f"--agent starts a new session: leave out {named!r}, or say 'new'", Exit.USAGE)
    info = await find_session(client, str(named))
    return await client.load_session(info.session_id, info.cwd)


async def open_latest(client: Client) -> ClientSession:
    """Open the session that was used last, or a new one if the hub has none."""
    missing = None
    while sessions := by_use([info async for info in client.list_sessions()]):
        last = sessions[0]
        try:
            return await client.load_session(last.session_id, last.cwd)
        except CallFailed as error:
            if error.error.code != ResourceNotFound.code or last.session_id == missing:
                raise
            missing = last.session_id  # it was deleted since it was listed
    made = await client.new_session(os.getcwd())
    # Another terminal that attached at the same moment created one too: all use the first of them. The list
    # is sorted by creation, which does not change: the terminals do not list at the same moment.
    *_, first = [info async for info in client.list_sessions()]
    if first.session_id == made.id:
        return made
    with suppress(CallFailed):  # only owners may delete
        await client.delete_session(made.id)
    return await client.load_session(first.session_id, first.cwd)


class AttachRun:
    """One attachment: shows events, sends typed prompts, and cancels on Ctrl-C."""

    def __init__(self) -> None:
        self.screen = AttachedScreen()
        self.typed = TypedLines()
        self.code = Exit.DONE
        """The code of the last turn that was piped in. At a terminal it stays 0."""
        self._turns: set[ClientTurn] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._shown = 0
        self._showed = asyncio.Condition()

    async def follow(self, client: Client, session: ClientSession) -> None:
        self.screen.open(client, session)
        events = session.events()  # from now on
        self._shown = session.fold.last_seq
        left = asyncio.Event()
        ends = [
            asyncio.ensure_future(part) for part in (self._watch(events), self._type(session), left.wait())
        ]
        with suppress(NotImplementedError):  # without signal handlers, Ctrl-C detaches
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt, left)
        async with self.screen:
            try:
                done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in (*ends, *self._tasks):
                    task.cancel()
                await asyncio.gather(*ends, *self._tasks, return_exceptions=True)

    async def _watch(self, events: AsyncIterator[SessionEvent]) -> None:
        async for event in events:
            self.screen.show(event, mine=True)
            async with self._showed:
                self._shown = event.seq
                self._showed.notify_all()
        raise Failure("the connection to the hub was lost; the hub keeps the session")

    def linked(self, link: Link) -> None:
        if link.state is LinkState.RECONNECTING and not link.attempts:
            self.screen.note("cannot reach the hub; reconnecting")
        elif link.up:
            self.screen.note("connected to the hub again")

    async def _type(self, session: ClientSession) -> None:
        self.typed.start()
        prompted = False
        while (text := await self.typed.next()) is not None:
            if text:
                prompted = True
                self._start(self._prompt(session, text))
                await asyncio.sleep(0)  # prompts are sent in their order
        if sys.stdin.isatty():
            return  # Ctrl-D detaches
        if not prompted:
            await asyncio.get_running_loop().create_future()  # no input: only follow
        while self._tasks:
            await asyncio.wait(self._tasks)
        async with self._showed:
            await self._showed.wait_for(lambda: self._shown >= session.fold.last_seq)

    async def _prompt(self, session: ClientSession, text: str) -> None:
        if session.turn is not None:
            self.screen.note("queued: it is sent when the current turn ends")
        try:
            turn = await session.prompt(text)
        except CallFailed as error:
            self._tell(read_failure(error.error.message, error.error.data))
            self.code = Exit.DONE if sys.stdin.isatty() else Exit.ERROR
            return
        self._turns.add(turn)
        try:
            end = await turn.drained()
        finally:
            self._turns.discard(turn)
        if end.error is not None:
            self._tell(read_failure(end.error.message, end.error.data))
        if not sys.stdin.isatty():
            self.code = Exit.of_stop_reason(end.stop_reason)

    def _tell(self, failure: FailureText) -> None:
        """Show why a prompt was not taken, or failed."""
        for line in ("the prompt failed: " + failure.message, *failure.lines[1:]):
            self.screen.note(line)

    def _interrupt(self, left: asyncio.Event) -> None:
        """Cancel the turns of this client, or detach if it has none."""
        if not self._turns:
            left.set()
        for turn in self._turns:
            self._start(turn.cancel())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class TypedLines:
    """The lines of stdin, which may be a pipe or a file. A daemon thread reads them."""

    def __init__(self) -> None:
        self.one_at_a_time = asyncio.Lock()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._answer: asyncio.Future[str | None] | None = None

    def start(self) -> None:
        threading.Thread(
            target=self._read, args=(asyncio.get_running_loop(),), name="typing", daemon=True
        ).start()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for line in sys.stdin:
                loop.call_soon_threadsafe(self._take, line.strip())
            loop.call_soon_threadsafe(self._lines.put_nowait, None)

    def _take(self, line: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(line)
        else:
            self._lines.put_nowait(line)

    async def next(self) -> str | None:
        """Return the next line that is not an answer, or `None` at the end of input."""
        return await self._lines.get()

    # --- AnswerSource ------------------------------------------------------------------------------

    def forget(self) -> None:
        """Do nothing: a line that was typed before a question is a prompt."""

    async def line(self) -> str | None:
        """Return the next line as an answer. At the end of input it waits, and leaves the question open."""
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None


class AttachedScreen(PlainScreen):
    """A session as plain lines, with what its other clients do."""

    def __init__(self) -> None:
        super().__init__(sys.stdout, sys.stderr)
        self._others: dict[str, str] = {}

    def open(self, client: Client, session: ClientSession) -> None:
        self.begin(client, session)
        title = safe_line(session.title or UNTITLED, limit=60)
        self.note(f"{title} · {session.id} · {short_path(session.cwd)} · {session.state}")
        said = [message for message in session.messages if message.type is not MessageType.THOUGHT]
        if len(said) > SHOWN:
            show = f"antiphon sessions show {shlex.quote(session.id)}"
            self.note(f"{len(said) - SHOWN} earlier messages: {show}")
        for message in said[-SHOWN:]:
            self._repeat(message)
        self.note(HOW)
        self._note_clients(session.clients)

    def _repeat(self, message: Message) -> None:
        text = f"[{DELETED}]" if message.deleted else message.text
        if message.type is MessageType.USER:
            self.line(_from(message.sender) + printed_text(text))
        else:
            self._write(message.id, text)
            self._break()

    def note(self, text: str) -> None:
        if self._err.isatty():
            self.line(f"· {safe_line(text, limit=LONGEST_NOTE)}", style="\x1b[2m")
        else:
            super().note(text)

    def show(self, event: SessionEvent, *, mine: bool) -> None:
        update: Any = event.update
        if isinstance(update, USER) and (
            event.turn is None or event.turn.prompt is None
        ):  # of another client
            blocks = [update.content] if isinstance(update, v2.UserMessageChunk) else update.content or ()
            text = safe_line("".join(map(block_text, blocks)), limit=2000)
            if isinstance(update, v2.UserMessage) and is_deletion(update):
                text = f"[{DELETED}]"
            if text:
                self.line(_from(sender_in(update.meta)) + text)
        super().show(event, mine=mine)
        if event.clients is not None:
            self._note_clients(event.clients)
        if event.news is not None:
            self._note_answer(event.news)
        if isinstance(update, v2.StateUpdate) and update.state is v2.State.IDLE and update.stop_reason:
            self.note(ending_text(update.stop_reason, error=update.error))

    def _note_clients(self, clients: Iterable[Present]) -> None:
        others = {each.client_id: each.name for each in clients if not each.you}
        came, left = others.keys() - self._others.keys(), self._others.keys() - others.keys()
        for id in sorted(came):
            self.note(f"{others[id]} is here")
        for id in sorted(left):
            self.note(f"{self._others[id]} has left")
        self._others = others

    def _note_answer(self, news: QuestionUpdate) -> None:
        if news.by is not None and news.by.client_id in self._others:
            answer = news.option_name or news.outcome or news.state
            self.note(f"{news.by.name} answered: {safe_line(answer)}")


def _from(who: Who | None) -> str:
    return "> " if who is None else f"{safe_line(who.name, limit=40)}> "
