"""UpstreamCanceller: cancels what the agent of a session works on: its turn, a prompt, or one thing of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from antiphon.errors import AntiphonError
from antiphon.hub.worker.binding import Binding
from antiphon.hub.worker.prompt_dispatcher import PromptDispatcher
from antiphon.schema import v2
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.hub")

CANCEL_AGAIN = 2.0
"""Seconds after which a cancel is sent again for a turn that had not begun when it was sent."""
CANCEL_GRACE = 30.0
"""Seconds that an agent has to end a cancelled turn before the hub ends the agent."""


class UpstreamCanceller:
    def __init__(self, session: ServedSession, binding: Binding, dispatcher: PromptDispatcher) -> None:
        self._session = session
        self._binding = binding
        self._dispatcher = dispatcher
        self.active = False
        """Whether what is open was cancelled and has not ended."""
        self._serial = 0
        """How many cancels the agent was sent."""

    def cancel(self, message_id: str | None, meta: dict[str, Any] | None) -> None:
        """Cancel the open turn or, with a message id, only the turn that took that prompt. `meta` is the
        `_meta` of the client's cancel (OBS-02)."""
        fold = self._session.fold
        sent = [entry.message_id for entry in fold.prompts.sent]
        others = fold.turn is not None and bool(fold.turn.prompts)
        if others and message_id in sent and self._dispatcher.take_back(str(message_id)) is not None:
            return  # the open turn is another prompt's, and continues
        cancelled = fold.cancel(message_id=message_id)
        self._session.emit(cancelled.events)
        # Only the agent can give back a prompt that it has not answered (PROMPT-V2-33).
        meant = bool(sent) if message_id is None else message_id in sent
        about_to_begin = fold.turns.due and not cancelled.ignored
        if cancelled.turn is not None or about_to_begin or meant:
            self.cancel_turn(meta)
        elif message_id is None:
            # It may work without reporting its state: a v1 agent has none for a turn of its own, and an agent
            # ignores a cancel while it is idle (PROMPT-V2-43).
            self._notify_agent(meta)

    def cancel_turn(self, meta: dict[str, Any] | None = None) -> None:
        if self.active:
            return  # a second cancel would cut short what the agent does to end
        self._dispatcher.note_cancel()
        self.active = True
        self._serial += 1
        self._notify_agent(meta)
        if self._binding.at_agent is not None and self._session.parent is None:
            self._later(CANCEL_GRACE, self._end)

    def turn_opened(self) -> None:
        """A turn has begun whose prompt was cancelled before the agent accepted it. The agent may have been
        idle when it read the cancel, and have ignored it (PROMPT-V2-43); or it is about to end the turn."""
        self._later(CANCEL_AGAIN, self._notify_agent)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        """Call `act` after some seconds, if what is cancelled now has not ended then, at the same agent."""
        serial, at_agent = self._serial, self._binding.at_agent

        def due() -> None:
            still = self.active and self._serial == serial
            if still and at_agent is not None and self._binding.at_agent is at_agent:
                act()

        self._session.tasks.call_later(seconds, due)

    def _notify_agent(self, meta: dict[str, Any] | None = None) -> None:
        """Send the cancel to the agent, if one is there."""
        if self._binding.at_agent is not None:
            self._start(self._binding.at_agent.cancel(meta))

    def _end(self) -> None:
        upstream = self._binding.upstream
        if upstream is not None:
            logger.warning(
                "agent of session %s ended: it did not stop a cancelled turn in time", self._session.id
            )
            upstream.end(f"it did not stop within {CANCEL_GRACE:g} s")

    def cancel_tool_call(self, id: str) -> bool:
        """Cancel one tool call; return whether the agent offers that."""
        call, at_agent = self._session.fold.tools.get(id), self._binding.at_agent
        able = None if call is None or call.final else getattr(call.capabilities, "cancel", None)
        if at_agent is None or able is None:
            return False
        params = v2.CancelToolCallRequest(
            session_id=v2.SessionId(at_agent.id), tool_call_id=v2.ToolCallId(id)
        )
        self._start(at_agent.agent.connection.call("tool_call/cancel", params))
        return True

    def cancel_terminal(self, id: str) -> bool:
        """Cancel one terminal; return whether the agent offers that."""
        terminal, at_agent = self._session.fold.terminals.get(id), self._binding.at_agent
        able = None if terminal is None else getattr(terminal.capabilities, "cancel", None)
        if at_agent is None or able is None:
            return False
        if terminal is not None and not terminal.exited:
            params = v2.CancelTerminalRequest(
                session_id=v2.SessionId(at_agent.id), terminal_id=v2.TerminalId(id)
            )
            self._start(at_agent.agent.connection.call("terminal/cancel", params))
        return True

    def _start(self, call: Awaitable[Any]) -> None:
        """Await a call in a task. A refusal is ignored: the updates of the agent report what happened."""

        async def run() -> None:
            with suppress(AntiphonError):
                await call

        self._session.tasks.start_soon(run())
