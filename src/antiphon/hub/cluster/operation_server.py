"""OperationServer: performs operations that other hubs send to the owner of a session, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Raw
from msgspec.json import decode

from antiphon.engine.json_values import CONTENT
from antiphon.engine.json_values import encode as encode_json
from antiphon.errors import AntiphonError, StoreError, to_wire_error
from antiphon.hub.access.audit import Audit
from antiphon.hub.access.limits import limit_of
from antiphon.hub.cluster.messages import NOT_OWNED, Asked, Reply, decode_asked, encode, failed
from antiphon.server.access import AccessPolicy
from antiphon.server.control import operations as op
from antiphon.server.control.operations import CallAgent, Cancel, Close, Submit
from antiphon.server.method import Act
from antiphon.server.registry import SessionRegistry
from antiphon.server.request import ExtensionHandler
from antiphon.server.session import ServedSession
from antiphon.server.tasks import Tasks

ACTS: Mapping[type, Act] = {
    op.Submit: Act.PROMPT,
    op.Abandon: Act.CANCEL,
    op.Edit: Act.PROMPT,
    op.Move: Act.CONFIG,
    op.Revoke: Act.CANCEL,
    op.ResumeQueue: Act.CONFIG,
    op.Cancel: Act.CANCEL,
    op.CancelToolCall: Act.CANCEL,
    op.CancelTerminal: Act.CANCEL,
    op.AnswerQuestion: Act.ANSWER,
    op.Annotate: Act.ANNOTATE,
    op.RemoveAnnotation: Act.ANNOTATE,
    op.Configure: Act.CONFIG,
    op.Rename: Act.CONFIG,
    op.Close: Act.CLOSE,
    op.CallAgent: Act.CALL,
}
"""What the audit log calls each operation."""
REMEMBERED = 4096
"""How many replies are kept for operations that are asked again."""


class OperationServer:
    def __init__(
        self,
        registry: SessionRegistry,
        tasks: Tasks,
        *,
        policy_of: Callable[[str | None], AccessPolicy],
        audit: Audit,
        call_agent: ExtensionHandler,
        notify_agent: ExtensionHandler,
        stopping: Callable[[], bool],
    ) -> None:
        """`policy_of` returns what a client of another hub may do, by the name of its token. `stopping` says
        whether this hub is about to end."""
        self._registry = registry
        self._tasks = tasks
        self._policy_of = policy_of
        self._audit = audit
        self._call_agent = call_agent
        self._notify_agent = notify_agent
        self._stopping = stopping
        self._replies: dict[str, bytes] = {}
        """The last replies by the ids of the operations, the oldest first."""

    async def handle(self, data: bytes) -> bytes:
        """Perform an operation and return the reply. One that is asked again gets the reply of the first
        time, also while that is in progress."""
        asked = decode_asked(data)
        known = self._replies.get(asked.id)
        if known is not None:
            return known
        return await self._tasks.share(("operation", asked.id), lambda: self._perform(asked))

    async def _perform(self, asked: Asked) -> bytes:
        reply = await self._reply(asked)
        data = encode(reply)
        if reply.owned:
            self._replies[asked.id] = data
            if len(self._replies) > REMEMBERED:
                del self._replies[next(iter(self._replies))]
        return data

    async def _reply(self, asked: Asked) -> Reply:
        session = self._registry.find(asked.session_id)
        if session is None and asked.home is not None and not self._stopping():
            with suppress(AntiphonError):  # another hub of this host may be faster
                session = await self._registry.own(asked.session_id)
        if session is None or session.gone:
            return NOT_OWNED
        if self._stopping() and isinstance(asked.operation, Submit):
            return NOT_OWNED  # the prompt is for the hub that takes the session over
        try:
            result = await self._result(session, asked)
            seq = session.fold.last_seq
            await session.live.durable(seq)
            self._note(asked, "allowed")
            return Reply(seq=seq, result=Raw(encode_json(result)))
        except StoreError:
            return NOT_OWNED  # its store has failed, or another hub has taken it over
        except asyncio.CancelledError:
            raise
        except Exception as error:
            limit = limit_of(error)
            self._note(asked, f"failed: {to_wire_error(error).code}" if limit is None else f"limit: {limit}")
            return failed(error, seq=session.live.journal.last)

    def _note(self, asked: Asked, outcome: str) -> None:
        operation = asked.operation
        token = asked.credential or getattr(operation, "credential", None)
        act = ACTS[type(operation)]
        self._audit.note(act, outcome, token=token, session=asked.session_id, hub=asked.label or None)

    async def _result(self, session: ServedSession, asked: Asked) -> Any:
        operation = asked.operation
        match operation:
            case Close():
                await self._registry.close(session)
                return None
            case Cancel() if not session.cancellable:
                return None  # SUB-02
            case CallAgent(notify=notify):
                relay = self._notify_agent if notify else self._call_agent
                return await relay(lambda: session, operation.method, decode(operation.params))
            case Submit(content=content):
                session.control.check_content(CONTENT.read(content))
        return await session.control.perform(operation, self._policy_of(asked.credential))
