"""SessionControl: performs what clients ask of a session. It commits first, and then calls the worker."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from antiphon.engine.configuration import Value, find_option, takes
from antiphon.engine.events import AnyBody, PromptQueued, Updated
from antiphon.engine.prompts import Outcome
from antiphon.engine.session import Session
from antiphon.errors import Forbidden, InvalidParams, LocalError, RequestError, ResourceNotFound, StoreError
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from antiphon.server.access import EVERYTHING, AccessPolicy, PolicySession
from antiphon.server.control import operations as op
from antiphon.server.control.annotations import annotation_id, check_room, new_annotation
from antiphon.server.questions import Questions
from antiphon.server.session_facts import chosen_title, options_of
from antiphon.server.worker import Worker


class Control(Protocol):
    """What clients may ask of a session, wherever it is worked on."""

    @property
    def inserts(self) -> bool:
        """Whether a prompt may be handed to an agent that works, which then decides what it does."""

    def check_content(self, content: Sequence[v2.ContentBlock]) -> None:
        """Raise `InvalidParams` for content that is not taken."""

    async def perform(self, operation: op.Operation, policy: AccessPolicy = EVERYTHING) -> Any:
        """Perform an operation. `policy` is that of the client that asks: it bounds how much may wait, and it
        has the name for the audit log."""

    def cancel(self, operation: op.Cancel, policy: AccessPolicy = EVERYTHING) -> None:
        """Cancel, after what was asked before, and before what is asked later."""

    def answer(self, question_id: str, answer: Any, voice: AttachmentWriter) -> None:
        """Answer a question of the agent that this client was asked (`OnAnswer`)."""

    @property
    def introduction(self) -> dict[str, Any]:
        """Goes under our own key of the answer to a client that begins or joins the session."""


class SessionControl:
    def __init__(
        self,
        session: PolicySession,
        emit: Callable[[Sequence[AnyBody]], None],
        durable: Callable[[], Awaitable[None]],
        now: Callable[[], int],
        *,
        questions: Questions,
        worker: Worker,
    ) -> None:
        """`emit` commits events, `durable` waits until all of them are in the store."""
        self._session = session
        self._emit = emit
        self._durable = durable
        self._now = now
        self._questions = questions
        self._worker = worker
        self._configuring = asyncio.Lock()
        """Held while a client sets an option: options are set one at a time, in the order they were asked."""
        self._performers: Mapping[type, Callable[[Any, AccessPolicy], Awaitable[Any]]] = {
            op.Submit: self._submit,
            op.Abandon: self._abandon,
            op.Edit: self._edit,
            op.Move: self._move,
            op.Revoke: self._revoke,
            op.ResumeQueue: self._resume_queue,
            op.Cancel: self._cancel,
            op.CancelToolCall: self._cancel_tool_call,
            op.CancelTerminal: self._cancel_terminal,
            op.AnswerQuestion: self._answer_question,
            op.Annotate: self._annotate,
            op.RemoveAnnotation: self._remove_annotation,
            op.Configure: self._configure,
            op.Rename: self._rename,
        }

    @property
    def _fold(self) -> Session:
        return self._session.fold

    @property
    def introduction(self) -> dict[str, Any]:
        return self._worker.introduction

    async def perform(self, operation: op.Operation, policy: AccessPolicy = EVERYTHING) -> Any:
        perform = self._performers.get(type(operation))
        if perform is None:
            raise LocalError(f"{type(operation).__name__} is not an operation on a session's control")
        return await perform(operation, policy)

    # --- prompts -----------------------------------------------------------------------------------

    @property
    def inserts(self) -> bool:
        return self._worker.inserts

    def check_content(self, content: Sequence[v2.ContentBlock]) -> None:
        accepted = self._worker.accepted
        for block in content:
            if not isinstance(block, accepted):
                kind = block.get("type") if isinstance(block, Unknown) else type(block).__struct_config__.tag
                raise InvalidParams(f"content of type {kind!r} is not accepted")  # PROMPT-V2-09, CONT-08

    async def _submit(self, asked: op.Submit, policy: AccessPolicy) -> str:
        prompts = self._fold.prompts
        if prompts.get(asked.message_id) is None:
            queued = PromptQueued(
                message_id=asked.message_id,
                raw_content=asked.content,
                delivery=self._worker.admit(asked.delivery),
                held=asked.held,
                operation_id=asked.operation_id,
                sender=asked.sender,
                meta=asked.meta,
                request_id=asked.request_id,
            )
            outcome = prompts.submit(queued, state=self._fold.state)
            if outcome.events and outcome.entry is not None:
                policy.queues(self._session, outcome.entry.message_id, len(outcome.entry.raw_content))
            self._emit(outcome.events)
            if outcome.events and outcome.entry is not None:
                self._worker.queued(outcome.entry)
            if outcome.refusal is not None and not asked.held:
                await self._durable()  # the refusal may rest on what is not committed yet (invariant 1)
            message_id = _accepted_id(outcome)
        else:
            message_id = asked.message_id  # asked again
        if asked.held:
            self._emit(self._fold.prompts.resume())  # to ask again is to want it, too
        self._worker.advance()
        if not asked.held:  # no attachment answers where it is committed
            await self._durable()
        return message_id

    async def _abandon(self, asked: op.Abandon, _: AccessPolicy) -> bool:
        if self._fold.prompts.get(asked.message_id) is None and not self._fold.turns.took(asked.message_id):
            return True  # it was never committed
        withdrawn = self._fold.prompts.withdraw(asked.message_id)
        self._emit(withdrawn.events)
        if withdrawn.refusal is None:
            return True
        self._worker.take_back(asked.message_id, cancel_turn=asked.cancel_turn)
        self._worker.cancel(message_id=asked.message_id)
        return False

    async def _edit(self, asked: op.Edit, policy: AccessPolicy) -> str:
        def edit() -> Outcome:
            outcome = self._fold.prompts.edit(asked.message_id, asked.content)
            if outcome.events:
                policy.queues(self._session, asked.message_id, len(asked.content))
            return outcome

        return await self._once(asked, edit)

    async def _move(self, asked: op.Move, _: AccessPolicy) -> str:
        return await self._once(asked, lambda: self._fold.prompts.move(asked.message_id, before=asked.before))

    async def _revoke(self, asked: op.Revoke, _: AccessPolicy) -> str:
        returned = self._worker.take_back(asked.message_id)
        if returned is not None:
            await asyncio.wait([returned])
        return await self._once(asked, lambda: self._fold.prompts.withdraw(asked.message_id))

    async def _once(self, asked: op.Edit | op.Move | op.Revoke, change: Callable[[], Outcome]) -> str:
        """Change an entry, unless that was done before under the same operation id. The outcome is in the
        store when this returns, also a refusal (invariant 1)."""
        if asked.operation_id in self._fold.operations:
            await self._durable()
            return asked.message_id
        outcome = change()
        if outcome.refusal is None:
            self._emit((*outcome.events, *self._fold.operations.done(asked.operation_id)))
        await self._durable()
        return _accepted_id(outcome)

    async def _resume_queue(self, asked: op.ResumeQueue, _: AccessPolicy) -> None:
        operations = self._fold.operations
        if asked.operation_id not in operations:
            self._emit((*self._fold.prompts.resume(), *operations.done(asked.operation_id)))
            self._worker.advance()
        await self._durable()

    # --- turns and questions -----------------------------------------------------------------------

    def cancel(self, operation: op.Cancel, _: AccessPolicy = EVERYTHING) -> None:
        operations = self._fold.operations
        if operation.operation_id in operations:
            return  # the turn that it was meant for is over, and another one is at work now
        self._emit(operations.done(operation.operation_id))
        work, known = self._fold.work, operation.known
        if known is not None and work is not None and work.shares_nothing_with(known):
            return  # it was on its way for longer than what it was meant for took
        self._worker.cancel(message_id=operation.message_id, meta=operation.meta)

    async def _cancel(self, asked: op.Cancel, _: AccessPolicy) -> None:
        self.cancel(asked)

    async def _cancel_tool_call(self, asked: op.CancelToolCall, _: AccessPolicy) -> bool:
        return self._worker.cancel_tool_call(asked.tool_call_id)

    async def _cancel_terminal(self, asked: op.CancelTerminal, _: AccessPolicy) -> bool:
        return self._worker.cancel_terminal(asked.terminal_id)

    def answer(self, question_id: str, answer: Any, voice: AttachmentWriter) -> None:
        with suppress(StoreError):  # the question expires with the agent: another server has the session
            self._questions.answer(question_id, answer, voice)

    async def _answer_question(self, asked: op.AnswerQuestion, _: AccessPolicy) -> None:
        self._questions.answer_by_id(asked)
        await self._durable()  # invariant 1

    # --- annotations and configuration -------------------------------------------------------------

    async def _annotate(self, asked: op.Annotate, _: AccessPolicy) -> str:
        operation_id, fold = asked.operation_id, self._fold
        id = f"ann_{secrets.token_hex(12)}" if operation_id is None else annotation_id(operation_id)
        if operation_id is None or operation_id not in fold.operations:
            made = new_annotation(fold, asked, id, at=self._now())
            id = made.id
            if fold.annotations.get(id) is None:
                check_room(fold, made)
                self._emit((Updated.of(made.materialize()), *fold.operations.done(operation_id)))
                self._worker.annotated(made, removed=False)
        await self._durable()
        return id

    async def _remove_annotation(self, asked: op.RemoveAnnotation, _: AccessPolicy) -> None:
        operation_id, fold = asked.operation_id, self._fold
        if operation_id is None or operation_id not in fold.operations:
            found = fold.annotations.get(asked.annotation_id)
            if found is None:
                raise ResourceNotFound("no such annotation", data={"reason": "unknown_annotation_id"})
            if found.by.client_id != asked.by.client_id:
                raise Forbidden
            self._emit((Updated.of(found.removal()), *fold.operations.done(operation_id)))
            self._worker.annotated(found, removed=True)
        await self._durable()

    async def _configure(self, asked: op.Configure, _: AccessPolicy) -> None:
        """Raises `InvalidParams`; then nothing is changed (CONF-V2-02)."""
        async with self._configuring:
            self.check_option(asked.option_id, asked.value)
            await self._worker.configure(asked.option_id, asked.value, asked.meta)

    async def _rename(self, asked: op.Rename, _: AccessPolicy) -> None:
        self._emit([chosen_title(asked.title)])
        await self._durable()

    def check_option(self, id: str, value: Value) -> None:
        """Raise `InvalidParams` for an option, or a value, that is not offered now."""
        option = find_option(options_of(self._fold), id)
        if option is None:
            raise InvalidParams(f"the session has no config option {id!r}")
        if not takes(option, value):
            raise InvalidParams(f"the config option {id!r} does not take this value")


def _accepted_id(outcome: Outcome) -> str:
    """Return the id of the prompt that a command on the queue led to. Raises `RequestError` for a refusal."""
    if outcome.refusal is not None:
        error = outcome.refusal.to_wire()
        raise RequestError(error.code, error.message, data=error.data)
    assert outcome.entry is not None
    return outcome.entry.message_id
