"""What an agent asks behind a hub: a question of the session, put to everybody who is attached."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import UNSET, Raw, structs

from antiphon.agent.asking import Reply
from antiphon.client import Permission
from antiphon.client.elicitation import Elicitation
from antiphon.engine.elicitations import CREATE_ELICITATION, elicitation_of, mode_of, read_response
from antiphon.engine.events import AnyBody, QuestionClosed, QuestionEnd, QuestionOpened, Updated
from antiphon.engine.questions import REQUEST_PERMISSION, Question, QuestionState
from antiphon.engine.reading import encode
from antiphon.engine.session import Session
from antiphon.engine.turn import TurnState
from antiphon.errors import AntiphonError
from antiphon.hub.answering import Answering
from antiphon.hub.upstream import CANCEL, tell_done
from antiphon.schema import v2
from antiphon.schema.codec import codec
from antiphon.schema.version import META_KEY, ours_in, without_ours

FIELDS = ("name", "title", "kind", "status", "content", "locations", "raw_input", "raw_output")


class HubQuestions(Answering):
    """A question is opened at its place in the agent's lane, and answered by the first who does; the agent
    may take it back."""

    _named: dict[str, str]
    """The ids that questions have here, by those they have at the agent's side."""

    def forget_questions(self) -> None:
        """Another session at an agent asks from here on."""
        self._named.clear()

    def _question(self, asked: Question) -> None:
        if self.parent is not None:
            return  # it is asked through the session that this one works for
        known = self._named.get(asked.question_id)
        if asked.state is not QuestionState.OPEN:
            if known is not None:
                self.emit(self.fold.questions.cancel(known).events)  # taken back; an answered one stays so
            return
        params = _here(asked, self.id, self.fold)
        if params is None or known is not None:
            return
        id = self._named[asked.question_id] = f"question_{secrets.token_hex(12)}"
        self._questions[id] = asyncio.get_running_loop().create_future()
        works = [getattr(work, "tool_call_id", None) for work in self.fold.background or ()]
        behind = asked.tool_call_id is not None and asked.tool_call_id in works
        self.emit(
            [
                QuestionOpened(
                    question_id=id,
                    method=asked.method,
                    params=Raw(encode(params)),
                    tool_call_id=asked.tool_call_id if behind else None,
                    origin=asked.origin,
                )
            ]
        )
        self.let_expire(id)

    def waited_for(self) -> list[str]:
        """The open questions that the turn waits for: none of background work's. One that was asked before
        the state that opens the turn is among them."""
        turn = self.fold.turn
        of_turn = None if turn is None else turn.turn_id
        return [
            question.question_id
            for question in self.fold.questions.open
            if question.turn_id == of_turn and question.tool_call_id is None and question.terminal_id is None
        ]

    def name_in(self, meta: dict[str, Any] | None) -> dict[str, Any] | None:
        """The `_meta` of a `requires_action`, with the ids of the questions that it waits for. There are none
        while the agent has not asked. Ids that the agent gives are its own, and are left out."""
        waited_for = self.waited_for()
        ours = {key: value for key, value in ours_in(meta).items() if key != "waitingFor"}
        if waited_for:
            ours["waitingFor"] = waited_for
        return {**(without_ours(meta) or {}), **({META_KEY: ours} if ours else {})} or None

    def _name_waited_for(self) -> None:
        """Repeat `requires_action` where it waits for other questions than it named (PROMPT-V2-21): an agent
        may say it before it asks, ask twice, or have one of two answered."""
        state, waited_for = self.fold.turns.latest, self.waited_for()
        if self.fold.state is not TurnState.REQUIRES_ACTION or not isinstance(state, v2.SessionStateUpdate):
            return
        if waited_for and ours_in(state.meta).get("waitingFor") != waited_for:
            self.emit([Updated.of(structs.replace(state, meta=self.name_in(state.meta)))])

    def emit(self, bodies: Sequence[AnyBody]) -> None:
        super().emit(bodies)
        if any(isinstance(body, QuestionOpened | QuestionClosed) for body in bodies):
            self._name_waited_for()

    async def _reply(self, question_id: str) -> Reply | None:
        id = self._named.get(question_id)
        waiting = None if id is None else self._questions.get(id)
        if id is None or waiting is None:
            return None
        try:
            return await waiting
        finally:
            self._questions.pop(id, None)
            self._named.pop(question_id, None)
            with suppress(AntiphonError):  # the session is being let go
                self.emit(self.fold.questions.cancel(id).events)

    async def agent_asks(self, permission: Permission) -> str | None:
        if (decided := self.decide_alone(permission)) is not None:
            return decided.option_id or None
        if permission.session.parent is not None:  # it works for this session, which asks for it
            request = structs.replace(permission.request, session_id=v2.SessionId(self.id))
            outcome: Any = await self.ask(request, tool_call_id="")
        else:
            reply = await self._reply(permission.question_id)
            if reply is None or reply.closed.end is not QuestionEnd.ANSWERED:
                return None
            outcome = codec(2).result(REQUEST_PERMISSION, reply.closed.result).outcome
        if not isinstance(outcome, v2.SelectedPermissionOutcome):
            return None
        permission.meta = outcome.meta  # OBS-02
        offered = [option.option_id for option in permission.options]
        return outcome.option_id if outcome.option_id in offered else None

    async def agent_elicits(self, elicitation: Elicitation) -> Any:
        voices = self.answering()
        able = any(elicitation.mode in voice.modes for voice in voices)
        alone = not voices and self.start is None
        if (voices and not able) or (alone and self.unattended == "reject"):
            return CANCEL  # ELIC-02: nobody who is there could answer
        if elicitation.session is not None and elicitation.session.parent is not None:
            here = structs.replace(elicitation.request, session_id=v2.SessionId(self.id))
            reply: Reply | None = await self.pose(CREATE_ELICITATION, here)
        else:
            reply = await self._reply(elicitation.question_id)
        if reply is None or reply.closed.end is not QuestionEnd.ANSWERED:
            return CANCEL
        response = read_response(bytes(reply.closed.result))
        if isinstance(response, v2.ElicitationAcceptAction) and reply.voice is not None:
            self.soon(tell_done(elicitation, reply.voice.notify))
        return response


def _here(asked: Question, session_id: str, fold: Session) -> Any:
    """The params of a question as this session asks it: the agent knows the session by another id."""
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
    """What a question says of its tool call that is not known yet: v1 agents tell all of it again, and a v1
    client would be told of changes where there are none."""
    known = fold.tools.get(call.tool_call_id)
    if known is None:
        return call
    same = [name for name in FIELDS if getattr(call, name) == getattr(known, name)]
    return structs.replace(call, **dict.fromkeys(same, UNSET))
