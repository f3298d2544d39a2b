"""Asking: the questions that an agent has put to this client and that wait for an answer.

A question is answered once: by whoever decides, or as `cancelled` when its turn is cancelled or over, or when
the agent takes it back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from antiphon.client.answered import question_id_in
from antiphon.client.answers import Permission
from antiphon.client.elicitation import Elicitation
from antiphon.client.spoken import News, Spoken
from antiphon.client.view import View
from antiphon.engine.elicitations import CREATE_ELICITATION, Elicited
from antiphon.engine.events import NOTHING, QuestionClosed, QuestionEnd, QuestionOpened
from antiphon.engine.questions import REQUEST_PERMISSION
from antiphon.engine.reading import encode, is_readable
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.version import V1

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession

logger = logging.getLogger("antiphon.client")

CANCELLED = v2.CancelledPermissionOutcome()


class _Asked:
    """A question that is open."""

    def __init__(
        self,
        question_id: str,
        about: tuple[str | None, str | None],
        *,
        named: str | None,
        cancelled: Any,
        apart: bool,
    ) -> None:
        self.question_id = question_id
        self.named = named
        """The id that it has at the agent's side, which is the same if it is asked again."""
        self.call, self.terminal = about
        """What it is about."""
        self.cancelled = cancelled
        """The result that means that nobody decided."""
        self.apart = apart
        """Whether it was asked outside of every turn, and is none's."""
        self.origin = NOTHING
        """How a v1 agent wrote it, for who passes it on."""
        self.result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.deciding: asyncio.Task[None] | None = None


class Asking:
    def __init__(
        self, session: ClientSession, view: View, spoken: Spoken, take: Callable[[Iterable[News]], None]
    ) -> None:
        self._session = session
        self._view = view
        self._spoken = spoken
        self._take = take
        self._answered = session.client.answered
        self._open: dict[str, _Asked] = {}
        self._deciding: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        """Those of a link that was lost: who decides may still be busy with leaving them."""
        self._count = 0

    @property
    def waits(self) -> bool:
        """Whether the agent waits for us."""
        return bool(self._open)

    @property
    def calls(self) -> list[str]:
        """The tool calls of the foreground that it waits with."""
        return [asked.call for asked in self._foreground() if asked.call is not None]

    async def ask(self, params: Any, inbound: Inbound) -> Any:
        """`session/request_permission`: it begins in the lane, and waits for the answer outside of it."""
        asked, request, answer = self._put(params)
        if request is None:
            return answer(CANCELLED)
        permission = Permission(self._session, asked.question_id, request)
        if self._v1 and self._session.client.relay is not None and inbound.params is not None:
            asked.origin = inbound.params if is_readable(inbound.params) else NOTHING
        self._begin(asked, REQUEST_PERMISSION, request, lambda: self._permit(permission))
        return answer((await self._result(asked, inbound)).outcome)

    def taken_back(self, params: Any) -> Any:
        """A permission request was cancelled before it began: it is told, and over, and nobody is asked
        (PERM-V2-09)."""
        asked, request, answer = self._put(params)
        if request is not None:
            self._begin(asked, REQUEST_PERMISSION, request, None)
        return answer(CANCELLED)

    def _put(self, params: Any) -> tuple[_Asked, v2.RequestPermissionRequest | None, Callable[[Any], Any]]:
        """A permission request in v2's words, and what makes an answer to it."""
        question_id = self._name()
        put = self._spoken.asked(params, question_id)
        self._take(put.updates)
        about = (None, None) if put.params is None else _about(put.params)
        cancelled = v2.RequestPermissionResponse(outcome=CANCELLED)
        spans = self._view.spans
        # PERM-V2-10: asked where nothing is worked on or waits, it is not known to belong to a turn.
        apart = not self._v1 and spans.open is None and not spans.all()
        named = question_id_in(params)
        asked = _Asked(question_id, about, named=named, cancelled=cancelled, apart=apart)
        return asked, put.params, put.answer

    async def elicit(self, request: Elicited, inbound: Inbound) -> Any:
        """`elicitation/create` of this session."""
        spans = self._view.spans
        apart = spans.open is None and not spans.all()  # ELIC-20: then it depends on no turn
        about = (request.tool_call_id, None)
        cancelled, named = v2.ElicitationCancelAction(), question_id_in(request)
        asked = _Asked(self._name(), about, named=named, cancelled=cancelled, apart=apart)
        session = self._session
        elicitation = Elicitation(session.client, request, session=session, question_id=asked.question_id)
        self._begin(asked, CREATE_ELICITATION, request, lambda: session.client.eliciting.decide(elicitation))
        return await self._result(asked, inbound)

    def _name(self) -> str:
        self._count += 1
        return f"question-{self._count}"

    async def _result(self, asked: _Asked, inbound: Inbound) -> Any:
        try:
            return await asyncio.shield(asked.result)
        except asyncio.CancelledError:
            if not inbound.cancelled:
                raise  # the link ends
            self._settle(asked, None)  # PERM-V2-09: taken back by the agent, and answered all the same
            return asked.cancelled

    def _begin(
        self, asked: _Asked, method: str, params: Any, decide: Callable[[], Coroutine[Any, Any, Any]] | None
    ) -> None:
        question_id, call = asked.question_id, asked.call
        self._open[question_id] = asked
        behind = self._is_behind(asked)
        span = self._view.spans.open
        self._view.happened(
            QuestionOpened(
                question_id=question_id,
                method=method,
                params=Raw(encode(params)),
                tool_call_id=call,
                terminal_id=asked.terminal,
                origin=asked.origin,
            ),
            behind=behind,
        )
        # PROMPT-V1-12: it was asked before the agent heard of the cancel.
        if decide is None or (span is not None and span.cancelled and not behind):
            self._settle(asked, None)
            return
        if (call is not None or method == CREATE_ELICITATION) and not behind:
            self._take(self._spoken.blocked(question_id, call or question_id))
        asked.deciding = asyncio.get_running_loop().create_task(self._decide(asked, decide))
        self._deciding.add(asked.deciding)
        asked.deciding.add_done_callback(self._deciding.discard)

    async def _decide(self, asked: _Asked, decide: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        result = None
        try:
            if self._leaving:
                await asyncio.wait(self._leaving)  # it may be the same question again
                self._leaving.clear()
            result = self._answered.get(self._session.id, asked.named)
            if result is None:
                result = await decide() or asked.cancelled
                self._answered.keep(self._session.id, asked.named, result)
        finally:  # also where what decides was itself cancelled
            self._settle(asked, result)

    async def _permit(self, permission: Permission) -> v2.RequestPermissionResponse | None:
        try:
            chosen = permission.chosen(await self._session.client.answers.decide(permission))
        except Exception:
            logger.exception("the decision on a permission failed; it counts as not given")
            return None
        if chosen is None:
            return None
        outcome = v2.SelectedPermissionOutcome(option_id=chosen.option_id, meta=permission.meta)
        return v2.RequestPermissionResponse(outcome=outcome)

    def _settle(self, asked: _Asked, result: Any) -> None:
        """Answer it, unless it was answered before."""
        if self._open.pop(asked.question_id, None) is None:
            return
        if asked.deciding is not None and asked.deciding is not asyncio.current_task():
            asked.deciding.cancel()
        result = asked.cancelled if result is None else result
        asked.result.set_result(result)
        self._view.hear()  # it waited for us so far
        end = QuestionEnd.CANCELLED if result == asked.cancelled else QuestionEnd.ANSWERED
        told, by = Raw(encode(result)), None
        elsewhere = self._view.others.ended(asked.named)
        if elsewhere is not None and elsewhere.by is not None and end is QuestionEnd.CANCELLED:
            end, told, by = QuestionEnd.ANSWERED, elsewhere.result, elsewhere.by
        self._view.happened(
            QuestionClosed(question_id=asked.question_id, end=end, result=told, by=by),
            behind=self._is_behind(asked),
        )
        self._take(self._spoken.unblocked(asked.question_id))

    def cancel(self) -> None:
        """What is open of the foreground is over: it is answered `cancelled` at once (PROMPT-V1-12,
        PERM-V1-03, PERM-V2-10). What belongs to background work stays."""
        if self._view.spans.open is None and not self._v1:
            return  # nothing is foreground
        for asked in self._foreground():
            self._settle(asked, None)

    def close(self) -> None:
        """The session is over at the agent: nothing of it is decided any more."""
        for asked in list(self._open.values()):
            self._settle(asked, None)

    def cut(self) -> None:
        """The link is gone, and with it whoever waits for these answers: what is still open after that is
        asked again."""
        for asked in list(self._open.values()):
            if asked.deciding is not None:
                self._leaving.add(asked.deciding)
            self._settle(asked, None)

    @property
    def _v1(self) -> bool:
        return self._session.client.agreement.version == V1

    def _foreground(self) -> list[_Asked]:
        return [
            asked
            for asked in self._open.values()
            if not asked.apart and not self._is_behind(asked) and not self._view.runs_behind(asked.call)
        ]

    def _is_behind(self, asked: _Asked) -> bool:
        """As of now: background work may be listed as such after it has asked (PERM-V2-10)."""
        return self._view.is_behind(asked.call, asked.terminal)

    def leave(self) -> None:
        """This client decides nothing any more. Nobody answers for it: others may have been asked too."""
        self._open.clear()
        for task in self._deciding:
            task.cancel()


def _about(request: v2.RequestPermissionRequest) -> tuple[str | None, str | None]:
    """The tool call and the terminal that a request is about."""
    match request.subject:
        case v2.ToolCallPermissionSubject(tool_call=call):
            return call.tool_call_id, None
        case v2.CommandPermissionSubject() as command:
            return command.tool_call_id, command.terminal_id
    return None, None
