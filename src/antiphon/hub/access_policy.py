"""HubPolicy: what the client of one connection may do, by its token.

Every refusal reads the same, whether a session is there or not.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from msgspec import structs

from antiphon.connection.sessions import session_of
from antiphon.engine.questions import Question
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import Forbidden, to_wire_error
from antiphon.hub.access.admission import Admission
from antiphon.hub.access.audit import Audit
from antiphon.hub.access.limits import limit_of, limited
from antiphon.hub.access.tokens import OWNER, Grant
from antiphon.hub.options import Asked
from antiphon.hub.quotas import QueuedBytes
from antiphon.schema.antiphon.clients import Who
from antiphon.server.access import AccessPolicy, PolicySession
from antiphon.server.method import Method, Opens, Role
from antiphon.server.methods.table import method_of
from antiphon.server.session import ServedSession
from antiphon.stores.base import Store

MOST_PARENTS = 64
"""How many parents of a subagent are looked at for one that a token covers."""

ANSWER = method_of("_antiphon/answer")
ADD_AGENT = "_antiphon/add_agent"


class PolicySource(Protocol):
    """The parts of a hub that decide what a client may do."""

    cwd: str | None
    store: Store
    admission: Admission
    audit: Audit
    questions: Asked
    queued_bytes: QueuedBytes

    def find(self, session_id: str) -> ServedSession | None: ...


class HubPolicy(AccessPolicy):
    def __init__(self, hub: PolicySource, grant: Grant, *, peer: str = "") -> None:
        """`peer` is the address of the client."""
        self._hub = hub
        self.grant = grant
        self.credential = grant.name
        self._peer = peer or None
        self.acts = grant.role.includes(Role.CONTROLLER)
        self.sees_all = grant.sessions is None
        self.only = grant.sessions
        begins = self.acts and self.sees_all
        only = {} if grant.sessions is None else {"sessions": sorted(grant.sessions)}
        self.introduction = {
            "role": str(grant.role),
            **only,
            **({"cwd": hub.cwd} if begins and hub.cwd else {}),
        }

    async def admit(self, method: Method, params: Any, *, size: int, client_id: str) -> Any:
        session_id = session_of(params)
        covered = self._covers(method, session_id) or await self._covers_parent(method, session_id)
        if not (self._allows(method) and covered and self._may_run(method, params)):
            self._note(client_id, method, session_id, "forbidden")
            raise Forbidden
        limit = self._hub.admission.exceeded(self.grant, method, size)
        if limit is not None:
            self._note(client_id, method, session_id, f"limit: {limit}")
            raise limited(limit, f"Too many: {limit}")
        if method.is_act or method.is_foreign:
            self._note(client_id, method, session_id, "allowed")
        if not self.acts and method.opens is Opens.EXISTING:
            return structs.replace(params, mcp_servers=[])  # what an observer brings is not used
        return params

    def admits_notification(self, method: Method, params: Any, *, client_id: str) -> bool:
        session_id = session_of(params)
        allowed = self._allows(method) and self._covers(method, session_id)
        if not allowed or method.is_act:
            self._note(client_id, method, session_id, "allowed" if allowed else "forbidden")
        return allowed

    def in_progress(self, size: int) -> AbstractContextManager[None]:
        return self._hub.admission.in_progress(self.grant, size)

    def searching(self) -> AbstractAsyncContextManager[object]:
        return self._hub.admission.searching(self.grant)

    def failed(self, method: Method, params: Any, error: Exception, *, client_id: str) -> None:
        limit = limit_of(error)
        if limit is not None:
            self._note(client_id, method, session_of(params), f"limit: {limit}")
        elif method.is_act:
            self._note(client_id, method, session_of(params), f"failed: {to_wire_error(error).code}")

    def shows(self, session_id: str) -> bool:
        return self.grant.covers(session_id)

    def queues(self, session: PolicySession, message_id: str, size: int) -> None:
        self._hub.queued_bytes.take(self.grant.name, session, message_id, size)

    def serves(self, session_id: str) -> bool:
        return self._allows(ANSWER) and self._covers(ANSWER, session_id)

    def answers(self, session: PolicySession, question: Question, *, client_id: str) -> bool:
        if not self.serves(session.id):
            return False
        asked = self._hub.questions
        if asked == "owner":
            return self.grant.role is Role.OWNER
        if asked == "designated":
            chosen = _prompters(session, question)
            return not chosen or client_id in chosen
        return True

    def is_valid(self) -> bool:
        return self._hub.admission.tokens.is_valid(self.grant)

    def _allows(self, method: Method) -> bool:
        """Whether the role includes the method and the token is valid: it may have been revoked since."""
        return self.grant.role.includes(method.role) and self.is_valid()

    def _may_run(self, method: Method, params: Any) -> bool:
        """Whether a command that is to be added as an agent comes from the hub's own token: it is run as the
        user of the hub, without any session."""
        command = getattr(params, "command", None) if method.name == ADD_AGENT else None
        return command is None or self.grant == OWNER

    def _covers(self, method: Method, session_id: str | None) -> bool:
        if self.grant.sessions is None:
            return True
        if session_id is None:
            return method.sessionless
        if method.leads_elsewhere:
            return False
        session = self._hub.find(session_id)
        for _ in range(MOST_PARENTS):
            if session is None or session.parent is None:
                break
            session = session.parent  # what works for a session belongs to it
        return self.grant.covers(session_id if session is None else session.id)

    async def _covers_parent(self, method: Method, session_id: str | None) -> bool:
        """Whether the token covers a parent of a session that is not open."""
        for _ in range(MOST_PARENTS):  # an imported or damaged record may lead in a circle
            if session_id is None or self._hub.find(session_id) is not None:
                return False
            record = await self._hub.store.get(session_id)
            parent = None if record is None else record.meta.get(SUBAGENT_OF)
            session_id = parent if isinstance(parent, str) else None
            if session_id is not None and self._covers(method, session_id):
                return True
        return False

    def _note(self, client_id: str, method: Method, session_id: str | None, outcome: str) -> None:
        self._hub.audit.note(
            str(method.act),
            outcome,
            token=self.grant.name,
            peer=self._peer,
            client=client_id,
            session=session_id,
            method=method.name,
        )


def _prompters(session: PolicySession, question: Question) -> frozenset[str]:
    """Return the ids of the attached clients that sent the prompts of the question's turn."""
    turn, prompts = session.fold.turn, session.fold.prompts
    if turn is None or question.turn_id != turn.turn_id:
        return frozenset()
    taken = [
        entry for entry in prompts.entries.values() if (entry.became or entry.message_id) in turn.prompts
    ]
    senders = {entry.sender.client_id for entry in (*taken, *prompts.sent) if isinstance(entry.sender, Who)}
    return frozenset(senders) & frozenset(session.askable_ids)
