"""SessionControl: what clients may ask of a session. It commits first, and then calls the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw

from antiphon.engine.configuration import Value, find_option, takes
from antiphon.engine.events import AnyBody, PromptQueued, RequestId
from antiphon.engine.prompts import Outcome, raw_content
from antiphon.engine.session import Session
from antiphon.engine.who import Named
from antiphon.errors import InvalidParams
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.server.access import EVERYTHING, AccessPolicy, PolicySession
from antiphon.server.ids import new_id
from antiphon.server.questions import Questions
from antiphon.server.session_facts import options_of
from antiphon.server.worker import Worker


class SessionControl:
    def __init__(
        self,
        session: PolicySession,
        emit: Callable[[Sequence[AnyBody]], None],
        questions: Questions,
        worker: Worker,
    ) -> None:
        self._session = session
        self.emit = emit
        self._worker = worker
        self.answer = questions.answer
        """Answers a question (`Questions.answer`)."""
        self.advance = worker.advance
        self.take_back = worker.take_back
        self.cancel = worker.cancel
        self._configuring = asyncio.Lock()
        """Held while a client sets an option: options are set one at a time, in the order they were asked."""

    @property
    def fold(self) -> Session:
        return self._session.fold

    def submit(
        self,
        content: Sequence[v2.ContentBlock] | Raw,
        *,
        held: bool = True,
        delivery: Delivery = Delivery.QUEUE,
        operation_id: str | None = None,
        sender: Named | None = None,
        meta: dict[str, Any] | None = None,
        request_id: RequestId = None,
        policy: AccessPolicy = EVERYTHING,
    ) -> Outcome:
        """Queue a prompt. `policy` is that of the client that sends it: it bounds how much may wait."""
        queued = PromptQueued(
            message_id=new_id("msg"),
            raw_content=raw_content(content),
            delivery=self._worker.admit(delivery),
            held=held,
            operation_id=operation_id,
            sender=sender,
            meta=meta,
            request_id=request_id,
        )
        outcome = self.fold.prompts.submit(queued, state=self.fold.state)
        if outcome.events and outcome.entry is not None:
            policy.queues(self._session, outcome.entry.message_id, len(outcome.entry.raw_content))
        self.emit(outcome.events)
        if outcome.events and outcome.entry is not None:
            self._worker.queued(outcome.entry)
        return outcome

    async def configure(self, id: str, value: Value, meta: dict[str, Any] | None) -> None:
        """Set a config option. Raises `InvalidParams`; then nothing is changed (CONF-V2-02)."""
        async with self._configuring:
            self.check_option(id, value)
            await self._worker.configure(id, value, meta)

    def check_option(self, id: str, value: Value) -> None:
        """Raise `InvalidParams` for an option, or a value, that is not offered now."""
        option = find_option(options_of(self.fold), id)
        if option is None:
            raise InvalidParams(f"the session has no config option {id!r}")
        if not takes(option, value):
            raise InvalidParams(f"the config option {id!r} does not take this value")
