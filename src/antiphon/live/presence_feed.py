"""Beside: what a client that asked for it is told about the other clients of its session.

Who is there, and which questions were asked, by whom they were answered and how.
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

OPTIONS = 100
OPTION_LENGTH = 2000
"""How many options of a question are known by their names, and how long those and the ids may be."""


class PresenceFeed:
    """`send` sends the client an update; `presence` makes the one that says who is there."""

    def __init__(
        self,
        connection: Connection,
        *,
        send: Send,
        presence: Callable[[], bytes],
    ) -> None:
        self._connection = connection
        self._send = send
        self._presence = presence
        self._shown = b""
        self._waits = False
        self._open: dict[str, _About] = {}
        """The questions that are open as far as the client knows, and what they are about."""

    def begin(self, questions: Iterable[Question], seq: int) -> None:
        """The client has joined, where these were open."""
        self.show_presence()
        for question in questions:
            self._opened(question.question_id, question.params, seq)

    # --- who is there ------------------------------------------------------------------------------

    def show_presence(self) -> None:
        """Now, or once a client that does not read reads again: then what is true by then."""
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

    def opened(self, body: QuestionOpened, seq: int) -> None:
        self._opened(body.question_id, body.params, seq)

    def _opened(self, question_id: str, params: Raw, seq: int) -> None:
        if question_id in self._open:
            return
        about = self._open[question_id] = _About.of(msgspec.json.decode(params))
        self._tell(question_id, about.tool_call, seq, state="opened")

    def closed(self, body: QuestionClosed, seq: int) -> None:
        about = self._open.pop(body.question_id, None) or _About()
        by = {} if body.by is None else {"by": who_of(body.by)}
        how = _outcome(about, msgspec.json.decode(body.result))
        self._tell(body.question_id, about.tool_call, seq, state=str(body.end), **by, **how)

    def _tell(self, question_id: str, tool_call_id: str | None, seq: int, **said: Any) -> None:
        about = {} if tool_call_id is None else {"toolCallId": tool_call_id}
        update = {"sessionUpdate": "_antiphon_question", "questionId": question_id, **about, **said}
        self._send(encode(update), seq=seq)


class _About(Struct, frozen=True):
    """As much of a question as is told when it is closed. Each client has its own, so that is little."""

    tool_call: str | None = None
    names: Mapping[str, str] = {}
    """The names of its options, by their ids."""

    @classmethod
    def of(cls, asked: dict[str, Any]) -> Self:
        names: dict[str, str] = {}
        options = asked.get("options")
        for option in options[:OPTIONS] if isinstance(options, list) else ():
            id, name = _object(option).get("optionId"), _object(option).get("name")
            if isinstance(id, str) and isinstance(name, str) and len(id) + len(name) <= OPTION_LENGTH:
                names[id] = name
        return cls(_tool_call(asked), names)


def _tool_call(asked: dict[str, Any]) -> str | None:
    """What a question is about, where that is a tool call: a permission's subject, or an elicitation's."""
    about = _object(asked.get("subject")) or asked
    call = about.get("toolCallId") or _object(about.get("toolCall")).get("toolCallId")
    return call if isinstance(call, str) else None


def _outcome(about: _About, result: Any) -> dict[str, Any]:
    """How it was answered; not what was filled in, which is the agent's alone."""
    given = _object(result)
    if "action" in given:
        return {"outcome": given["action"]}
    outcome = _object(given.get("outcome"))
    chosen = outcome.get("optionId")
    name = about.names.get(chosen) if isinstance(chosen, str) else None
    told = {"outcome": outcome.get("outcome"), "optionId": chosen, "optionName": name}
    return {key: value for key, value in told.items() if value is not None}


def _object(value: Any) -> dict[str, Any]:
    """What an agent of another hand wrote may be anything."""
    return value if isinstance(value, dict) else {}
