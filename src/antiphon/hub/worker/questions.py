"""UpstreamQuestions: what an agent behind a hub asks, and which client answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from msgspec import UNSET, structs, to_builtins

from antiphon.bridge.upgrade.turns import WAITING_FOR
from antiphon.client.elicitation import Elicitation
from antiphon.client.protocol.questions import first_option, tool_kind
from antiphon.engine.events import NOTHING, QuestionClosed, QuestionEnd, QuestionOpened, Updated
from antiphon.engine.questions import (
    CREATE_ELICITATION,
    REQUEST_PERMISSION,
    Question,
    QuestionState,
    elicitation_of,
    mode_of,
    read_response,
)
from antiphon.engine.session import Session
from antiphon.engine.turn import TurnState
from antiphon.errors import AntiphonError
from antiphon.hub.context import HubContext
from antiphon.hub.upstream.upstream import CANCEL, notify_completed
from antiphon.hub.upstream.worker_feed import AskingSession
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import UpdateMeta
from antiphon.schema.codec import codec
from antiphon.schema.version import META_KEY, ours_in, without_ours
from antiphon.server.checks import check_question
from antiphon.server.ids import new_id
from antiphon.server.questions import Reply
from antiphon.server.session import ServedSession

FIELDS = ("name", "title", "kind", "status", "content", "locations", "raw_input", "raw_output")
NO_OPTION = v2.PermissionOption(
    option_id=v2.PermissionOptionId(""), name="", kind=v2.PermissionOptionKind.REJECT_ONCE
)
"""The decision to reject where no offered option rejects."""
REJECTS = (v2.PermissionOptionKind.REJECT_ONCE, v2.PermissionOptionKind.REJECT_ALWAYS)
READS = frozenset({"read", "search", "think"})
"""The kinds of tool calls that only read. Not `fetch`: what is sent out with an address is gone."""


WAITED_FOR = 100
"""Questions that a `requires_action` names at most."""


class UpstreamQuestions:
    """A question is opened at its place in the agent's lane. The first answer counts; the agent may cancel
    it."""

    def __init__(self, session: ServedSession, hub: HubContext) -> None:
        self._session = session
        self._hub = hub
        self._ids: dict[str, str] = {}
        """The ids of questions here, by those at the agent."""

    @property
    def _fold(self) -> Session:
        return self._session.fold

    def forget(self) -> None:
        """Note that another session at an agent asks from here on."""
        self._ids.clear()

    # --- in the agent's lane -----------------------------------------------------------------------

    def asked(self, asked: Question) -> None:
        """Open a question of the agent, or note that the agent has closed it."""
        session = self._session
        if session.parent is not None:
            return  # it is asked through the session that this one works for
        known = self._ids.get(asked.question_id)
        if asked.state is not QuestionState.OPEN:
            if known is not None:
                session.emit(self._fold.questions.cancel(known).events)  # an answered one stays so
            return
        params = _here(asked, session.id, self._fold)
        if params is None or known is not None:
            return
        id = self._ids[asked.question_id] = new_id("question")
        works = [getattr(work, "tool_call_id", None) for work in self._fold.background or ()]
        behind = asked.tool_call_id is not None and asked.tool_call_id in works
        session.questions.open(
            id,
            asked.method,
            params,
            tool_call_id=asked.tool_call_id if behind else None,
            origin=asked.origin,
        )
        if self._hub.question_expiry is not None:
            session.tasks.call_later(self._hub.question_expiry, lambda: self._expire(id))

    def _expire(self, question_id: str) -> None:
        events = self._fold.questions.expire(question_id).events
        if events:
            with suppress(AntiphonError):  # the session is being put away
                self._session.emit(events)
                self._note("expired", question=question_id)

    def changed(self, bodies: Sequence[QuestionOpened | QuestionClosed]) -> None:
        """Note answers in the audit log, and what a `requires_action` waits for."""
        for body in bodies:
            if isinstance(body, QuestionClosed) and body.end is QuestionEnd.ANSWERED:
                by = body.by
                self._note(
                    "allowed",
                    token=self._session.questions.credential,
                    client=by.client_id if isinstance(by, Who) else by,
                    question=body.question_id,
                )
        self._name_waited_for()

    def _note(self, outcome: str, **details: Any) -> None:
        self._hub.audit.note("answer", outcome, session=self._session.id, **details)

    def _waited_for(self) -> list[str]:
        """Return the open questions that the turn waits for: none of background work. One that was asked
        before the state that opens the turn is among them. At most `WAITED_FOR`, the oldest first: the state
        is repeated when they change."""
        turn = self._fold.turn
        of_turn = None if turn is None else turn.turn_id
        waited_for = (
            question.question_id
            for question in self._fold.questions.open
            if question.turn_id == of_turn and question.tool_call_id is None and question.terminal_id is None
        )
        return list(islice(waited_for, WAITED_FOR))

    def name_in(self, meta: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the `_meta` of a `requires_action` with the ids of the questions that it waits for: none
        while the agent has not asked. Ids that the agent gives are its own, and are left out."""
        ours = {key: value for key, value in ours_in(meta).items() if key != WAITING_FOR}
        ours |= to_builtins(UpdateMeta(waiting_for=self._waited_for() or None))
        return {**(without_ours(meta) or {}), **({META_KEY: ours} if ours else {})} or None

    def _name_waited_for(self) -> None:
        """Repeat `requires_action` where it waits for other questions than it named (PROMPT-V2-21): an agent
        may say it before it asks, ask twice, or have one of two answered."""
        state = self._fold.turns.latest
        if self._fold.state is not TurnState.REQUIRES_ACTION or not isinstance(state, v2.SessionStateUpdate):
            return
        waited_for = self._waited_for()
        if waited_for and read_meta(UpdateMeta, state.meta).waiting_for != waited_for:
            self._session.emit([Updated.of(structs.replace(state, meta=self.name_in(state.meta)))])

    # --- what is answered --------------------------------------------------------------------------

    async def permission(
        self, question_id: str, request: v2.RequestPermissionRequest, asking: AskingSession
    ) -> v2.RequestPermissionResponse | None:
        """Decide on a permission request. `asking` is the session at the agent. None cancels."""
        if (decided := self._decide_alone(request, asking)) is not None:
            return _selected(decided.option_id) if decided.option_id else None
        if (reply := await self._answer(REQUEST_PERMISSION, question_id, request, asking)) is None:
            return None
        outcome = codec(2).result(REQUEST_PERMISSION, reply.closed.result).outcome
        if not isinstance(outcome, v2.SelectedPermissionOutcome):
            return None
        offered = [option.option_id for option in request.options]
        return _selected(outcome.option_id, outcome.meta) if outcome.option_id in offered else None  # OBS-02

    async def elicitation(self, elicitation: Elicitation, asking: AskingSession) -> Any:
        voices = self._asked_now()
        able = any(elicitation.mode in voice.modes for voice in voices)
        alone = not voices and self._session.start is None
        if (voices and not able) or (alone and self._hub.unattended == "reject"):
            return CANCEL  # ELIC-02: no attached client could answer
        asked = CREATE_ELICITATION, elicitation.question_id, elicitation.request
        if (reply := await self._answer(*asked, asking)) is None:
            return CANCEL
        response = read_response(bytes(reply.closed.result))
        if isinstance(response, v2.ElicitationAcceptAction) and reply.voice is not None:
            self._session.tasks.start_soon(notify_completed(elicitation, reply.voice.notify))
        return response

    async def _answer(
        self, method: str, question_id: str, request: Any, asking: AskingSession
    ) -> Reply | None:
        """Wait for a client's answer; `None` if the question ends without one."""
        if asking.parent is None:
            reply = await self._reply(question_id)
        else:
            reply = await self._ask_for_subagent(method, request)
        return reply if reply is not None and reply.closed.end is QuestionEnd.ANSWERED else None

    async def _ask_for_subagent(self, method: str, request: Any) -> Reply:
        """Ask a question of a session that works for this one."""
        here = structs.replace(request, session_id=v2.SessionId(self._session.id))
        if method == REQUEST_PERMISSION:
            check_question(here)
        questions, id = self._session.questions, new_id("question")
        try:
            questions.open(id, method, here)
            return await questions.reply(id)
        finally:
            questions.drop(id)

    async def _reply(self, question_id: str) -> Reply | None:
        """Wait for the reply to a question that was opened in the agent's lane."""
        questions, id = self._session.questions, self._ids.get(question_id)
        if id is None or not questions.is_open(id):
            return None
        try:
            return await questions.reply(id)
        finally:
            self._ids.pop(question_id, None)
            with suppress(AntiphonError):  # the session is being put away
                questions.drop(id)

    def _asked_now(self) -> list[AttachmentWriter]:
        """Return the attachments that would be asked now."""
        turn = self._fold.turn
        asked = Question(
            question_id="",
            method=REQUEST_PERMISSION,
            params=NOTHING,
            opened=0,
            turn_id=None if turn is None else turn.turn_id,
        )
        session = self._session
        return [
            client.voices[session.id]
            for client in session.clients()
            if client.policy.answers(session, asked, client_id=client.client_id)
        ]

    def _decide_alone(
        self, request: v2.RequestPermissionRequest, asking: AskingSession
    ) -> v2.PermissionOption | None:
        """Return the option where no client is there that may decide; `None` where one is to be waited for:
        also the client that begins the session and is about to follow it."""
        unattended = self._hub.unattended
        if unattended == "wait" or self._asked_now() or self._session.start is not None:
            return None
        if unattended == "reject":
            decided: v2.PermissionOption | None = first_option(request, *REJECTS) or NO_OPTION
        else:
            reads = tool_kind(request, asking.fold) in READS
            decided = first_option(request, v2.PermissionOptionKind.ALLOW_ONCE) if reads else None
        if decided is not None:
            self._note(f"unattended: {decided.kind}")
        return decided


def _selected(option_id: str, meta: dict[str, Any] | None = None) -> v2.RequestPermissionResponse:
    chosen = v2.SelectedPermissionOutcome(option_id=v2.PermissionOptionId(option_id), meta=meta)
    return v2.RequestPermissionResponse(outcome=chosen)


def _here(asked: Question, session_id: str, fold: Session) -> Any:
    """Return the params of a question with the id that the session has here."""
    here = v2.SessionId(session_id)
    if asked.method == CREATE_ELICITATION:
        elicitation = elicitation_of(asked)
        if elicitation is None or not mode_of(elicitation):
            return None
        return structs.replace(elicitation, session_id=here)
    permission = asked.permission
    if permission is None:
        return None
    subject = permission.subject
    if isinstance(subject, v2.ToolCallPermissionSubject):
        subject = structs.replace(subject, tool_call=_news(subject.tool_call, fold))
    return structs.replace(permission, session_id=here, subject=subject)


def _news(call: v2.ToolCallUpdate, fold: Session) -> v2.ToolCallUpdate:
    """Return the fields of a question's tool call that are not known yet. v1 agents repeat all fields, and a
    v1 client would see changes where there are none."""
    known = fold.tools.get(call.tool_call_id)
    if known is None:
        return call
    same = [name for name in FIELDS if getattr(call, name) == getattr(known, name)]
    return structs.replace(call, **dict.fromkeys(same, UNSET))
