"""RemoteControl: what clients ask of a session that another hub owns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Raw, structs

from antiphon.engine.events import NOTHING
from antiphon.engine.json_values import encode as encode_json
from antiphon.engine.questions import CREATE_ELICITATION
from antiphon.errors import AntiphonError, InvalidParams, RequestError
from antiphon.hub.cluster.messages import Asked, Reply
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.live.feed import SessionFeed
from antiphon.schema import v2
from antiphon.server.access import EVERYTHING, AccessPolicy
from antiphon.server.control import operations as op
from antiphon.server.control.control import Control
from antiphon.server.ids import new_id
from antiphon.server.tasks import Tasks

logger = logging.getLogger("antiphon.hub")

PAUSE = 0.25
"""Seconds between two looks for an owner that answers."""

Send = Callable[[Asked], Awaitable[Reply | None]]
"""Sends an operation to the owner of its session. Returns `None` if it has an owner, but that does not
answer."""
TakeOver = Callable[[], Awaitable[Control | None]]
"""Makes this hub the owner of a session that has none. Returns the control of the session; `None` if this hub
may not own it."""


class RemoteControl:
    inserts = True
    """The owner knows, and queues what the agent does not take while it works."""

    def __init__(
        self,
        feed: SessionFeed,
        send: Send,
        take_over: TakeOver,
        tasks: Tasks,
        *,
        patience: float,
        label: str,
        home: str | None,
        introduction: dict[str, Any],
    ) -> None:
        """Control a session of another hub.

        patience: seconds for which an owner is looked for
        label: the label of this hub
        home: the label of the session's host, if the session cannot move
        """
        self._feed = feed
        self._send = send
        self._take_over = take_over
        self._tasks = tasks
        self._patience = patience
        self._label = label
        self._home = home
        self.introduction = introduction

    def check_content(self, content: Sequence[v2.ContentBlock]) -> None:
        """The owner checks it."""

    async def perform(self, operation: op.Operation, policy: AccessPolicy = EVERYTHING) -> Any:
        asked = Asked(
            id=new_id("op"),
            session_id=self._feed.session_id,
            operation=op.identified(operation),
            credential=policy.credential,
            label=self._label,
        )
        if isinstance(operation, op.Submit):
            return await self._perform(asked, policy)  # a client may abandon it
        # It goes on also if the client that asked for it is gone: it may have been done already.
        return await self._tasks.share(asked.id, lambda: self._perform(asked, policy))

    async def _perform(self, asked: Asked, policy: AccessPolicy) -> Any:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        while True:
            reply = await self._send(asked)
            if reply is None:
                pass
            elif reply.owned:
                await self._feed.durable(reply.seq)
                return reply.value()
            else:
                control = await self._take_over()
                if control is None:
                    asked = structs.replace(asked, home=self._home)
                elif isinstance(control, RemoteControl) and control is not self:
                    # It was taken over and lost again. Its `perform` would wait for this very submission.
                    return await control._perform(asked, policy)
                elif control is not self:
                    return await control.perform(asked.operation, policy)
            if loop.time() >= until:
                raise self._unreachable()
            await asyncio.sleep(PAUSE)

    def _unreachable(self) -> RequestError:
        where = "" if self._home is None else f"; it works on the host {self._home!r} only"
        return RequestError(
            AntiphonError.code,
            f"The hub that works on the session does not answer{where}",
            data={"reason": "owner_unreachable"},
        )

    def cancel(self, operation: op.Cancel, policy: AccessPolicy = EVERYTHING) -> None:
        self._tasks.start_soon(self._quietly(operation, policy))

    def answer(self, question_id: str, answer: Any, voice: AttachmentWriter) -> None:
        if not voice.counts():
            return  # the question waits for other clients
        question = self._feed.fold.questions.get(question_id)
        if question is None or question.method != CREATE_ELICITATION:
            result: Any = v2.RequestPermissionResponse(outcome=answer)
        else:
            result = answer
        asked = op.AnswerQuestion(
            question_id=question_id,
            result=NOTHING if result is None else Raw(encode_json(result)),
            by=voice.who,
            credential=voice.credential,
        )
        self._tasks.start_soon(self._answer(asked))

    async def _answer(self, asked: op.AnswerQuestion) -> None:
        try:
            await self.perform(asked)
        except RequestError as error:
            if error.wire_code == InvalidParams.code and asked.result != NOTHING:
                # As a client that answers with an error.
                await self._answer(structs.replace(asked, result=NOTHING))
            else:
                logger.debug("answer not counted: %s", error)
        except AntiphonError as error:
            logger.warning("answer not sent in session %s: %s", self._feed.session_id, error)

    async def _quietly(self, operation: op.Operation, policy: AccessPolicy) -> None:
        try:
            await self.perform(operation, policy)
        except AntiphonError as error:
            logger.warning("session %s: not done: %s", self._feed.session_id, error)
