"""PresenceFeed: what a client that asked for it gets to know of the other clients of its session.

It gets the list of attached clients, each question when it is asked, and by whom and how it was answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import msgspec
from msgspec import Raw, Struct

from antiphon.connection import Connection
from antiphon.engine.events import QuestionClosed, QuestionOpened
from antiphon.engine.json_values import encode
from antiphon.engine.questions import Question
from antiphon.engine.who import who_of
from antiphon.live.queue_feed import digest
from antiphon.live.update_sender import Send
from antiphon.schema.antiphon.messages import QuestionUpdate

OPTIONS = 100
OPTION_LENGTH = 2000
"""How many options of a question are remembered by name, and how long a name and its id may be."""


class PresenceFeed:
    """`send` sends an update to the client; `presence` makes the one that lists the clients."""

    def __init__(self, connection: Connection, *, send: Send, presence: Callable[[], bytes]) -> None:
        self._connection = connection
        self._send = send
        self._presence = presence
        self._shown = b""
        self._waits = False
        self._open: dict[str, _Asked] = {}
        """The questions that the client knows as open."""

    def begin(self, questions: Iterable[Question], seq: int) -> None:
        """Start after the replay, in which these questions are open."""
        self.show_presence()
        for question in questions:
            self._opened(question.question_id, question.params, seq)

    # --- attached clients --------------------------------------------------------------------------

    def show_presence(self) -> None:
        """Send the list of clients, if it has changed. A client that does not read gets it when it reads
        again, as it is then."""
        if self._waits:
            return
        if self._connection.congested:
            self._waits = True
            self._connection.start_soon(self._show_later())
            return
        update = self._presence()
        shown = digest(update)
        if shown != self._shown:
            self._shown = shown
            self._send(update)

    async def _show_later(self) -> None:
        await self._connection.drain()
        self._waits = False
        self.show_presence()

    # --- questions ---------------------------------------------------------------------------------

    def question_opened(self, body: QuestionOpened, seq: int) -> None:
        self._opened(body.question_id, body.params, seq)

    def _opened(self, question_id: str, params: Raw, seq: int) -> None:
        if question_id in self._open:
            return
        asked = self._open[question_id] = _Asked.read(msgspec.json.decode(params))
        self._send_question(question_id, asked.tool_call, seq, state="opened")

    def question_closed(self, body: QuestionClosed, seq: int) -> None:
        asked = self._open.pop(body.question_id, None) or _Asked()
        by = None if body.by is None else who_of(body.by)
        how = _outcome(asked, msgspec.json.decode(body.result))
        self._send_question(
            body.question_id, asked.tool_call, seq, state=str(body.end), by=by, cause=body.cause, **how
        )

    def _send_question(self, question_id: str, tool_call_id: str | None, seq: int, **said: Any) -> None:
        update = QuestionUpdate(question_id=question_id, tool_call_id=tool_call_id, **said)
        self._send(encode(update), seq=seq)


class _Asked(Struct, frozen=True):
    """What is needed of a question when it closes. Each client has its own copy, so it is small."""

    tool_call: str | None = None
    names: Mapping[str, str] = {}
    """The names of its options, by their ids."""

    @classmethod
    def read(cls, asked: dict[str, Any]) -> Self:
        names: dict[str, str] = {}
        options = asked.get("options")
        for option in options[:OPTIONS] if isinstance(options, list) else ():
            id, name = _object(option).get("optionId"), _object(option).get("name")
            if isinstance(id, str) and isinstance(name, str) and len(id) + len(name) <= OPTION_LENGTH:
                names[id] = name
        return cls(_tool_call(asked), names)


def _tool_call(asked: dict[str, Any]) -> str | None:
    """Return the tool call that a permission or an elicitation is about, if any."""
    about = _object(asked.get("subject")) or asked
    call = about.get("toolCallId") or _object(about.get("toolCall")).get("toolCallId")
    return call if isinstance(call, str) else None


def _outcome(asked: _Asked, result: Any) -> dict[str, Any]:
    """Return how a question was answered, without the values of a form: those are for the agent alone."""
    given = _object(result)
    if "action" in given:
        return {"outcome": given["action"]}
    outcome = _object(given.get("outcome"))
    chosen = outcome.get("optionId")
    name = asked.names.get(chosen) if isinstance(chosen, str) else None
    return {"outcome": outcome.get("outcome"), "option_id": chosen, "option_name": name}


def _object(value: Any) -> dict[str, Any]:
    """Return `value` if it is an object: a foreign agent may have written anything."""
    return value if isinstance(value, dict) else {}
