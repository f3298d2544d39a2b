"""Asking the user: forms that are filled in, and addresses that are visited (ELIC)."""

from __future__ import annotations

import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from msgspec import Struct

from antiphon.bridge.elicitations import answered, elicit_v1
from antiphon.bridge.losses import Ledger
from antiphon.engine.elicitations import (
    CREATE_ELICITATION,
    FORM,
    URL,
    Elicited,
    counted,
    elicitation_of,
    mode_of,
    read_response,
)
from antiphon.engine.events import QuestionClosed, QuestionEnd
from antiphon.engine.questions import Question
from antiphon.engine.reading import encode
from antiphon.errors import CallFailed, CannotAsk, InvalidResult, LinkLost, LocalError
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.voice import Voice
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.agent.link import Link
    from antiphon.agent.questioning import Questioning

logger = logging.getLogger("antiphon.agent")

COMPLETE = "elicitation/complete"
CANCEL = v2.ElicitationCancelAction()

T = TypeVar("T")
S = TypeVar("S", bound=Struct)
Tell = Callable[[str, Any], Awaitable[None]]
"""Sends a notification to one client."""


class Action(StrEnum):
    """What the user did with a question."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    """Dismissed it, or did not get to it; an answer that does not fit counts as this too."""


class Answer(Struct, Generic[T], frozen=True):
    """What the user made of a form. `value` is there exactly where it was accepted."""

    action: Action
    value: T | None = None

    @property
    def accepted(self) -> bool:
        return self.action is Action.ACCEPT

    @property
    def declined(self) -> bool:
        """The user does not want to tell."""
        return self.action is Action.DECLINE

    @property
    def cancelled(self) -> bool:
        """The user did not choose."""
        return self.action is Action.CANCEL


class Consent:
    """Whether the user agreed to visit an address. That is all an accept says: whether something was done
    there is for the agent to find out, from there (ELIC-10)."""

    def __init__(self, action: Action, elicitation_id: str, tell: Tell | None) -> None:
        self.action = action
        self.elicitation_id = elicitation_id
        self._tell = tell

    @property
    def accepted(self) -> bool:
        return self.action is Action.ACCEPT

    @property
    def declined(self) -> bool:
        return self.action is Action.DECLINE

    @property
    def cancelled(self) -> bool:
        return self.action is Action.CANCEL

    async def complete(self) -> None:
        """Tell the client that agreed, and no other, that what was to be done there is done (ELIC-11). Once;
        nothing where that client is gone."""
        if not self.accepted:
            raise LocalError("nothing was agreed to that could be complete")
        tell, self._tell = self._tell, None
        if tell is not None:
            done = v2.CompleteElicitationNotification(elicitation_id=v2.ElicitationId(self.elicitation_id))
            await tell(COMPLETE, done)


class Reply(NamedTuple):
    """How a question ended, and whose answer it was."""

    closed: QuestionClosed
    voice: Voice | None = None


class Channel(ABC):
    """Where a question goes, and what it belongs to."""

    scope: Mapping[str, Any]

    @abstractmethod
    def takes(self, mode: str) -> bool:
        """Whether a question of this mode can be put."""

    @abstractmethod
    async def put(self, request: Elicited) -> tuple[v2.CreateElicitationResponse, Tell | None]:
        """The answer as it counts, and the way to whom it came from."""


class Asks:
    """What can ask the user something."""

    def _channel(self) -> Channel:
        raise NotImplementedError  # no abstract base: `Login` is a struct, which has a metaclass of its own

    def can_ask(self, mode: str = FORM) -> bool:
        """Whether the clients that are there take questions of this mode, `form` or `url`. With nobody there
        a question waits, so it can be asked."""
        return self._channel().takes(mode)

    @overload
    async def ask(self, message: str, form: type[S]) -> Answer[S]: ...
    @overload
    async def ask(
        self, message: str, form: v2.ElicitationSchema | Mapping[str, Any]
    ) -> Answer[dict[str, Any]]: ...
    async def ask(self, message: str, form: Any) -> Answer[Any]:
        """Ask the user to fill in a form: a struct class, whose instance is the answer's value, or a
        `requestedSchema`, for which it is a dict. Waits for the first answer, also with nobody there.

        Raises `CannotAsk` where clients are there and none of them takes forms, and `LocalError` for a form
        that cannot be asked, one for a secret among them (ELIC-13).
        """
        # Loaded by who asks: an agent is started often, and many never do.
        from antiphon.agent.ask_checks import check_schema
        from antiphon.agent.forms import struct_form

        made = struct_form(form) if isinstance(form, type) else None
        schema = check_schema(form if made is None else made.schema)
        channel = self._open(FORM)
        response, _ = await channel.put(
            v2.ElicitationFormMode(message=message, requested_schema=schema, **channel.scope)
        )
        action = _action(response)
        if not isinstance(response, v2.ElicitationAcceptAction):
            return Answer(action)
        values = response.content or {}
        if made is None:
            return Answer(action, values)
        try:
            return Answer(action, made.read(values))
        except ValueError:
            logger.warning("an answer does not fit %s and counts as cancelled", form.__name__)
            return Answer(Action.CANCEL)

    async def ask_url(self, message: str, url: str) -> Consent:
        """Ask the user to visit an address, for what must not pass through here: a login, a payment, a
        secret. It must not hold credentials itself (ELIC-16).

        Raises `CannotAsk` where clients are there and none of them takes addresses: do not ask for the same
        with a form then.
        """
        from antiphon.agent.ask_checks import check_url

        check_url(url)
        channel = self._open(URL)
        elicitation_id = v2.ElicitationId(f"elicit_{secrets.token_hex(12)}")  # ELIC-06
        response, tell = await channel.put(
            v2.ElicitationUrlMode(message=message, url=url, elicitation_id=elicitation_id, **channel.scope)
        )
        return Consent(_action(response), elicitation_id, tell)

    def _open(self, mode: str) -> Channel:
        channel = self._channel()
        if not channel.takes(mode):  # ELIC-02
            raise CannotAsk(f"no client that is there takes questions of mode {mode!r}")
        return channel


class SessionChannel(Channel):
    """To everybody who follows a session, now or later; the first answer counts."""

    def __init__(
        self,
        session: Questioning,
        tool_call_id: str | None = None,
        *,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """`meta` goes with every question: the trace of what it is asked for (OBS-01)."""
        self._session = session
        self._call = tool_call_id
        self.scope = {
            "session_id": v2.SessionId(session.id),
            "tool_call_id": tool_call_id,
            "meta": meta or None,
        }

    def takes(self, mode: str) -> bool:
        voices = self._session.attached()
        return not voices or any(mode in voice.modes for voice in voices)

    async def put(self, request: Elicited) -> tuple[v2.CreateElicitationResponse, Tell | None]:
        closed, voice = await self._session.pose(CREATE_ELICITATION, request, tool_call_id=self._call)
        if closed.end is not QuestionEnd.ANSWERED:
            return CANCEL, None
        return read_response(bytes(closed.result)), None if voice is None else voice.notify


class RequestChannel(Channel):
    """To the client whose request is being answered, and to nobody else (ELIC-04). It ends with the request,
    and is no fact of any session."""

    def __init__(self, link: Link, inbound: Inbound) -> None:
        self._link = link
        self.scope = {"request_id": inbound.id}

    def takes(self, mode: str) -> bool:
        return mode in self._link.modes

    async def put(self, request: Elicited) -> tuple[v2.CreateElicitationResponse, Tell | None]:
        params = elicit_v1(request, Ledger()) if self._link.v1 else request
        try:
            response = answered(await self._link.ask(CREATE_ELICITATION, params))
        except (CallFailed, InvalidResult, LinkLost):
            response = None
        given = None if response is None else counted(request, response)
        return given or CANCEL, self._tell

    async def _tell(self, method: str, params: Any) -> None:
        try:
            await self._link.connection.notify(method, params)
        except LinkLost:
            logger.debug("%s was not sent: the client is gone", method)


def heard_elicitation(
    session: Questioning,
    question: Question,
    response: v2.CreateElicitationResponse | None,
    voice: Voice | None,
) -> bytes | None:
    """The result that an answer of one client leads to. One that is an error or does not fit decides nothing
    while others are still to answer, and counts as cancelled if there are none (ELIC-15, ELIC-17)."""
    request = elicitation_of(question)
    if request is None:
        return None
    given = None if response is None else counted(request, response)
    if given is None:
        logger.warning("an answer to an elicitation of mode %s is none", mode_of(request))
        others = (other for other in session.attached() if other is not voice)
        if any(other.asks(question.question_id) for other in others):
            return None
        given = CANCEL
    return encode(given)


def _action(response: v2.CreateElicitationResponse) -> Action:
    match response:
        case v2.ElicitationAcceptAction():
            return Action.ACCEPT
        case v2.ElicitationDeclineAction():
            return Action.DECLINE
    return Action.CANCEL
