"""Asking the user: forms that are filled in, and addresses that are visited (ELIC)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, overload

from msgspec import Meta, Struct

from antiphon.agent.worker import HandlerWorker
from antiphon.engine.events import QuestionEnd
from antiphon.engine.questions import CREATE_ELICITATION, FORM, URL, Elicited, read_response
from antiphon.errors import CannotAsk, LocalError
from antiphon.schema import v2
from antiphon.server.ids import new_id
from antiphon.server.questions import CANCEL, COMPLETE, Channel, Notify

logger = logging.getLogger("antiphon.agent")

Email: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "email"})]
Uri: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "uri"})]


T = TypeVar("T")
S = TypeVar("S", bound=Struct)


class Action(StrEnum):
    """What the user did with a question."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    """Dismissed it, or did not get to it; an answer that does not fit counts as this too."""


class Response(Struct):
    """How the user responded to a question."""

    action: Action

    @property
    def accepted(self) -> bool:
        return self.action is Action.ACCEPT

    @property
    def declined(self) -> bool:
        """Whether the user refused to answer."""
        return self.action is Action.DECLINE

    @property
    def cancelled(self) -> bool:
        """Whether the user did not choose."""
        return self.action is Action.CANCEL


class Answer(Response, Generic[T]):
    """The response to a form. `value` is there exactly if it was accepted."""

    value: T | None = None


class Consent(Response):
    """Whether the user agreed to visit an address. That is all an accept says: the agent finds out from the
    address whether something was done there (ELIC-10)."""

    elicitation_id: str
    _notify: Notify | None
    """Notifies the client that agreed; `None` once that is done, or if that client is gone."""

    async def complete(self) -> None:
        """Notify the client that agreed, and no other, that the user is done there (ELIC-11). Only the first
        call notifies it; nothing is sent if that client is gone."""
        if not self.accepted:
            raise LocalError(f"only an accepted consent can be completed, the user chose {self.action}")
        notify, self._notify = self._notify, None
        if notify is not None:
            done = v2.CompleteElicitationNotification(elicitation_id=v2.ElicitationId(self.elicitation_id))
            await notify(COMPLETE, done)


class Asker(Protocol):
    """A turn, a tool call or a login: it has `can_ask`, `ask` and `ask_url` as methods."""

    def _channel(self) -> Channel: ...


def can_ask(self: Asker, mode: Literal["form", "url"] = "form") -> bool:
    """Return whether a question of this mode can be asked: an attached client accepts it, or no client is
    attached and the question waits for one."""
    return self._channel().takes(mode)


@overload
async def ask(self: Asker, message: str, form: type[S]) -> Answer[S]: ...
@overload
async def ask(
    self: Asker, message: str, form: v2.ElicitationSchema | Mapping[str, Any]
) -> Answer[dict[str, Any]]: ...
async def ask(self: Asker, message: str, form: Any) -> Answer[Any]:
    """Ask the user to fill in a form, and wait for the first answer, also while no client is attached.

    form: a struct class, whose instance is the answer's value; or a `requestedSchema`, which gives a dict.

    Raises `CannotAsk` if clients are attached and none of them accepts forms, and `LocalError` for a form
    that must not be asked, such as one for a secret (ELIC-13).
    """
    # Imported here: agents are started often, and many never ask.
    from antiphon.agent.forms import check_schema, struct_form

    made = struct_form(form) if isinstance(form, type) else None
    schema = check_schema(form if made is None else made.schema)
    channel = _open_channel(self, FORM)
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
        logger.warning("answer does not fit its form %s; it counts as cancelled", form.__name__)
        return Answer(Action.CANCEL)


async def ask_url(self: Asker, message: str, url: str) -> Consent:
    """Ask the user to visit an address, for what must not pass through the agent: a login, a payment, a
    secret. The address itself must not hold credentials (ELIC-16).

    Raises `CannotAsk` if clients are attached and none of them accepts addresses. Do not ask for the same
    with a form then.
    """
    from antiphon.agent.forms import check_url

    check_url(url)
    channel = _open_channel(self, URL)
    elicitation_id = v2.ElicitationId(new_id("elicit"))  # ELIC-06
    response, notify = await channel.put(
        v2.ElicitationUrlMode(message=message, url=url, elicitation_id=elicitation_id, **channel.scope)
    )
    return Consent(_action(response), elicitation_id, notify)


def _open_channel(asker: Asker, mode: str) -> Channel:
    channel = asker._channel()
    if not channel.takes(mode):  # ELIC-02
        raise CannotAsk(f"no attached client accepts questions of mode {mode!r}")
    return channel


class SessionChannel:
    """To every client of a session, now or later; the first answer counts."""

    def __init__(
        self,
        worker: HandlerWorker,
        tool_call_id: str | None = None,
        *,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """`meta` goes with every question: the trace of what it is asked for (OBS-01)."""
        self._worker = worker
        self._call = tool_call_id
        self.scope: Mapping[str, Any] = {
            "session_id": v2.SessionId(worker.id),
            "tool_call_id": tool_call_id,
            "meta": meta or None,
        }

    def takes(self, mode: str) -> bool:
        voices = self._worker.session.attached()
        return not voices or any(mode in voice.modes for voice in voices)

    async def put(self, request: Elicited) -> tuple[v2.CreateElicitationResponse, Notify | None]:
        closed, voice = await self._worker.questions.ask(CREATE_ELICITATION, request, tool_call_id=self._call)
        if closed.end is not QuestionEnd.ANSWERED:
            return CANCEL, None
        return read_response(bytes(closed.result)), None if voice is None else voice.notify


def _action(response: v2.CreateElicitationResponse) -> Action:
    actions: dict[type, Action] = {
        v2.ElicitationAcceptAction: Action.ACCEPT,
        v2.ElicitationDeclineAction: Action.DECLINE,
    }
    return actions.get(type(response), Action.CANCEL)
