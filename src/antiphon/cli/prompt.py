"""`antiphon prompt`: run one turn with an agent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from antiphon import __version__
from antiphon.cli.agents import known_agent, resolve
from antiphon.cli.commands.options import HubPlace
from antiphon.cli.error_lines import print_error
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub_client import by_use, no_hub, noted_wait, tls_for, trust, user_name
from antiphon.cli.output.screen import Screen, make_screen
from antiphon.cli.output.streams import log_handler
from antiphon.cli.program import print_note
from antiphon.cli.prompt_failures import PromptFailures
from antiphon.cli.questions import Answers, Terminal
from antiphon.client import (
    Client,
    ClientOptions,
    ClientSession,
    ClientTurn,
    File,
    ProcessOptions,
    SessionEvent,
    TurnEnd,
    connect,
)
from antiphon.errors import AntiphonError, LinkLost
from antiphon.hub import CatalogueAgent, HubFolder
from antiphon.text_safety import safe_line

LAST_CHANCE = 2.0
"""Seconds that an agent has to confirm a cancel after the timeout."""
HURRY = 0.2
"""Seconds that an agent has to exit before it is killed."""
EVENTS_IN_A_ROW = 64
"""Events that are shown before other tasks run."""


@dataclass(frozen=True)
class PromptRequest:
    """The arguments of the command."""

    text: str
    files: Sequence[str]
    agent: Sequence[str]
    cwd: str
    version: Literal[1, 2] | None
    allow: str | None
    json: bool
    timeout: float | None
    verbose: bool
    continued: bool = False
    """Whether to continue the session that was used last in the folder."""


def run_prompt(request: PromptRequest) -> Exit:
    """Run the command, and return its exit code."""
    _quiet_logging(verbose=request.verbose)
    terminal = Terminal.find()
    if request.allow == "ask" and terminal is None:
        print_note("--allow ask needs a terminal: use none, read, edit or all")
        return Exit.USAGE
    screen = make_screen(json=request.json)
    try:
        return asyncio.run(PromptRun(request, screen, terminal).run())
    except Failure as failure:
        with contextlib.suppress(BrokenPipeError):
            screen.failed(str(failure), code=failure.code)
        return print_error(failure)
    except BrokenPipeError:
        # The reader of stdout closed it. Python must not write there again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.ERROR


class PromptRun:
    """One connection, one session and one turn, with signals and a timeout."""

    def __init__(self, request: PromptRequest, screen: Screen, terminal: Terminal | None) -> None:
        self._request = request
        self._screen = screen
        self._answers = Answers(request.allow, screen, terminal)
        if request.continued:
            self._answers.own.clear()
        self._known: CatalogueAgent | None = known_agent(request.agent) if request.agent else None
        self._failures = PromptFailures(request.agent, self._known, request.version)
        self._name = self._called()
        self._turn: ClientTurn | None = None
        self._others: OtherEvents | None = None
        self._client: Client | None = None
        self._doing = "starting"
        self._interrupts = 0
        self._timed_out = False
        self._stopped: Exit | None = None
        """Why the main task was cancelled."""
        self._code: Exit | None = None
        self._failure: Failure | None = None
        self._main: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def _called(self) -> str:
        """Return the name of the agent until the agent itself gives one."""
        agent = self._request.agent
        if not agent:
            return "the hub" if self._request.continued else "the built-in agent"
        if self._known is not None:
            return self._known.name
        return agent[0] if "://" in agent[0] else os.path.basename(agent[0])

    async def run(self) -> Exit:
        """Run the turn. Raises `Failure` unless the agent ended the turn itself."""
        loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        handlers: dict[signal.Signals, Callable[[], None]] = {
            signal.SIGINT: self._interrupt,
            signal.SIGTERM: lambda: self._stop(Exit.TERMINATED),
        }
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # set by `nohup`
            handlers[signal.SIGHUP] = handlers[signal.SIGTERM]
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        if self._request.timeout is not None:
            loop.call_later(self._request.timeout, self._time_is_up)
        try:
            async with self._screen:
                return await self._talk()
        except asyncio.CancelledError:
            if self._stopped is None:
                raise
            if self._code is not None:  # the turn had ended, the agent process had not
                return self._outcome()
            raise self._stopping(self._stopped) from None
        except (AntiphonError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            if self._stopped is not None:
                raise self._stopping(self._stopped) from None
            raise self._failures.explain(error, self._name, self._doing) from None

    # --- the turn ----------------------------------------------------------------------------------

    async def _talk(self) -> Exit:
        request = self._request
        self._screen.waiting(f"starting {self._name}")
        target = _target(request)
        with noted_wait(f"waiting for {self._name} to start", self._screen.note) as started:
            await self._converse(target, started)
        self._show_rest()  # updates that the agent sent while it exited
        return self._outcome()

    async def _converse(self, target: Any, started: Callable[[], None]) -> None:
        request = self._request
        async with connect(
            target,
            token=_token(target),
            version=request.version,
            answers=self._answers,
            process=ProcessOptions(on_stderr=self._on_stderr),
            options=ClientOptions(
                tls=tls_for(target) if isinstance(target, str) else None,
                name=user_name() if isinstance(target, str) else "antiphon",
                client_version=__version__,
            ),
        ) as client:
            started()
            self._client = client
            self._doing = "opening a session"
            if request.agent and self._known is None and client.info is not None:
                self._name = safe_line(client.info.name, limit=60)
            begun = _continued if request.continued else Client.new_session
            session = await begun(client, request.cwd)
            self._screen.begin(client, session)
            self._doing = "prompting"
            await self._play(session)

    def _outcome(self) -> Exit:
        if self._failure is not None:
            raise self._failure
        assert self._code is not None
        return self._code

    async def _play(self, session: ClientSession) -> None:
        began = time.monotonic()
        others = self._others = OtherEvents(session)
        self._start(others.listen())
        files = [File(path) for path in self._request.files]
        turn = self._turn = await session.prompt(self._request.text, *files)
        self._doing = "working"
        shown = 0
        async for event in turn.events():
            self._answers.own.set()
            for other in await others.before(event):
                self._screen.show(other, mine=False)
            self._screen.show(event, mine=True)
            shown += 1
            if shown % EVENTS_IN_A_ROW == 0:
                await asyncio.sleep(0)  # Ctrl-C works during a backlog
        end = await turn.drained()
        self._show_rest()
        self._failure = self._judge(end)
        self._code = Exit.of_stop_reason(end.stop_reason) if self._failure is None else self._failure.code
        self._screen.end(end, seconds=time.monotonic() - began, code=self._code)

    def _show_rest(self) -> None:
        for other in () if self._others is None else self._others.rest():
            self._screen.show(other, mine=False)

    def _judge(self, end: TurnEnd) -> Failure | None:
        """Return the failure of a turn, or `None` if its stop reason says everything."""
        if self._timed_out:
            return self._stopping(Exit.TIMEOUT)
        lost = None if self._client is None else self._client.lost
        return self._failures.judge(end, self._name, lost)

    # --- interruptions -----------------------------------------------------------------------------

    def _interrupt(self) -> None:
        """Handle Ctrl-C: the first cancels the turn, the second kills the agent."""
        self._interrupts += 1
        if self._turn is None or self._turn.end is not None:
            self._stop(Exit.CANCELLED)
        elif self._interrupts == 1:
            self._screen.waiting("cancelling")
            self._screen.note("cancelling; Ctrl-C again kills the agent")
            self._cancel_turn()
        else:
            self._stop(Exit.KILLED)

    def _time_is_up(self) -> None:
        if self._turn is None or self._turn.end is not None:
            self._stop(Exit.TIMEOUT)
            return
        self._timed_out = True
        self._cancel_turn()
        asyncio.get_running_loop().call_later(LAST_CHANCE, self._stop, Exit.TIMEOUT)

    def _cancel_turn(self) -> None:
        async def cancel(turn: ClientTurn) -> None:
            with contextlib.suppress(LinkLost):
                await turn.cancel()

        assert self._turn is not None
        self._start(cancel(self._turn))

    def _stop(self, code: Exit) -> None:
        """End the command. The first cancel closes the connection to the agent, the second shortens that."""
        assert self._main is not None
        if self._stopped is None:
            self._stopped = code
        self._main.cancel()
        asyncio.get_running_loop().call_later(HURRY, self._main.cancel)

    def _stopping(self, code: Exit) -> Failure:
        if code is Exit.TIMEOUT:
            seconds = f"{self._request.timeout:g} s"
            return Failure(f"{self._name} was not done after {seconds} ({self._doing})", code)
        if code is Exit.TERMINATED:
            return Failure(f"terminated while {self._doing}", code)
        if code is Exit.KILLED:
            return Failure(f"killed {self._name} before it confirmed that it stopped", code)
        return Failure(f"cancelled while {self._doing}", code)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _on_stderr(self, line: str) -> None:
        self._failures.note_stderr(line)
        if line.strip() and self._request.verbose:
            self._screen.note(f"{self._name}: {safe_line(line, limit=400)}")


async def _continued(client: Client, cwd: str) -> ClientSession:
    """Open the session that was used last in a folder. Raises `Failure`."""
    found = [info for info in by_use([info async for info in client.list_sessions()]) if _same(info.cwd, cwd)]
    if not found:
        raise Failure(f"there is no session in {cwd} to continue: leave out --continue to begin one")
    return await client.load_session(found[0].session_id, found[0].cwd)


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _target(request: PromptRequest) -> Any:
    if request.agent:
        return resolve(request.agent)
    if request.continued:
        running = HubFolder().running()
        if running is None:
            raise no_hub(HubPlace())
        return running.acp
    from antiphon.rehearsal import make_agent

    return make_agent()


def _token(target: Any) -> str | None:
    """Return the token for an address: from the environment, or from the hub that runs there."""
    if not isinstance(target, str):
        return None
    running = HubFolder().running()
    if running is None or running.acp != target:
        return os.environ.get("ANTIPHON_TOKEN")
    trust(running.ca)
    return os.environ.get("ANTIPHON_TOKEN") or running.token


def _quiet_logging(*, verbose: bool) -> None:
    """Show the logs of the library only if the user asks for them."""
    logger = logging.getLogger("antiphon")
    logger.propagate = False
    logger.addHandler(log_handler() if verbose else logging.NullHandler())


class OtherEvents:
    """Follows the whole session, and gives the events that are not part of the turn, in their order."""

    def __init__(self, session: ClientSession) -> None:
        self._events = session.events()  # from now on
        self._received = deque(session.notices)
        self._shown: set[int] = set()

    async def listen(self) -> None:
        """Collect events. Run it as a task."""
        async for event in self._events:
            self._received.append(event)

    async def before(self, event: SessionEvent) -> list[SessionEvent]:
        """Return the other events before this event of the turn."""
        if not self._received or self._received[-1].seq < event.seq:
            await asyncio.sleep(0)  # the session gives the same event right after the turn
        self._shown.add(event.seq)
        return list(self._until(event.seq))

    def rest(self) -> list[SessionEvent]:
        return list(self._until(None))

    def _until(self, seq: int | None) -> Iterator[SessionEvent]:
        while self._received and (seq is None or self._received[0].seq <= seq):
            event = self._received.popleft()
            if event.seq not in self._shown:
                yield event
