"""HubPermit: what the client of one connection may do, by the token that it came with.

Every refusal reads the same, whether a session is there or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from antiphon.agent.link import Link
from antiphon.agent.permits import Permit
from antiphon.connection.sessions import session_of
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import Forbidden, to_wire_error
from antiphon.hub.access.limits import limit_of, limited
from antiphon.hub.access.roles import ACTS, CLOSE_FOR_ALL, WITHOUT_SESSION, Role, may
from antiphon.hub.access.tokens import Grant
from antiphon.hub.policies import Policy, designated
from antiphon.schema.version import ours_in

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engine.questions import Question
    from antiphon.hub.hub import Hub

MOST_PARENTS = 64
"""How many sessions up is looked for one that a token covers."""

BEYOND = frozenset({"session/fork", "_antiphon/link"})
"""What would lead to other sessions, whichever it names: the fork is one, and a link may be for all."""
SETS_UP = frozenset({"session/load", "session/resume"})


class HubPermit(Permit):
    def __init__(self, hub: Hub, grant: Grant, *, peer: str = "") -> None:
        """`peer` is the address that it came from."""
        self._hub = hub
        self.grant = grant
        self.credential = grant.name
        self._peer = peer or None
        self.acts = grant.role.includes(Role.CONTROLLER)
        self.sees_all = grant.sessions is None
        begins = self.acts and self.sees_all
        only = {} if grant.sessions is None else {"sessions": sorted(grant.sessions)}
        self.tells = {"role": str(grant.role), **only, **({"cwd": hub.cwd} if begins and hub.cwd else {})}

    async def admit(self, link: Link, method: str, params: Any, size: int) -> Any:
        meant = _meant(method, params)
        session_id = session_of(params)
        covered = self._covers(meant, session_id) or await self._covers_parent(meant, session_id)
        if not (self._allows(meant) and covered):
            self._note(link, meant, session_id, "forbidden")
            raise Forbidden
        limit = self._hub.admission.exceeded(self.grant, meant, size)
        if limit is not None:
            self._note(link, meant, session_id, f"limit: {limit}")
            raise limited(limit, f"Too many: {limit}")
        if meant in ACTS or (meant.startswith("_") and not meant.startswith("_antiphon/")):
            self._note(link, meant, session_id, "allowed")
        if not self.acts and method in SETS_UP:
            return structs.replace(params, mcp_servers=[])  # what an observer brings is not used
        return params

    def hears(self, link: Link, method: str, params: Any) -> bool:
        session_id = session_of(params)
        allowed = self._allows(method) and self._covers(method, session_id)
        if not allowed or method in ACTS:
            self._note(link, method, session_id, "allowed" if allowed else "forbidden")
        return allowed

    def failed(self, link: Link, method: str, params: Any, error: Exception) -> None:
        meant = _meant(method, params)
        limit = limit_of(error)
        if limit is not None:
            self._note(link, meant, session_of(params), f"limit: {limit}")
        elif meant in ACTS:
            self._note(link, meant, session_of(params), f"failed: {to_wire_error(error).code}")

    def shows(self, session_id: str) -> bool:
        return self.grant.covers(session_id)

    def queues(self, session: AgentSession, message_id: str, size: int) -> None:
        self._hub.queued_bytes.take(self.grant.name, session, message_id, size)

    def serves(self, session_id: str) -> bool:
        return self._allows("_antiphon/answer") and self._covers("_antiphon/answer", session_id)

    def answers(self, link: Link, session: AgentSession, question: Question) -> bool:
        if not self.serves(session.id):
            return False
        policy = self._hub.questions
        if policy is Policy.OWNER:
            return self.grant.role is Role.OWNER
        if policy is Policy.DESIGNATED:
            chosen = designated(session, question)
            return not chosen or link.guest.who.client_id in chosen
        return True

    def stands(self) -> bool:
        return self._hub.admission.tokens.is_valid(self.grant)

    def _allows(self, method: str) -> bool:
        """By its role, for as long as it has it: who is to be sent away does nothing more meanwhile."""
        return may(self.grant.role, method) and self.stands()

    def _covers(self, method: str, session_id: str | None) -> bool:
        if self.grant.sessions is None:
            return True
        if session_id is None:
            return method in WITHOUT_SESSION
        if method in BEYOND:
            return False
        session = self._hub.find(session_id)
        for _ in range(MOST_PARENTS):
            if session is None or session.parent is None:
                break
            session = session.parent  # what works for a session belongs to it
        return self.grant.covers(session_id if session is None else session.id)

    async def _covers_parent(self, method: str, session_id: str | None) -> bool:
        """The same of a session that is not open, and worked for another one."""
        for _ in range(MOST_PARENTS):  # an imported or damaged record may lead in a circle
            if session_id is None or self._hub.find(session_id) is not None:
                return False
            record = await self._hub.store.get(session_id)
            parent = None if record is None else record.meta.get(SUBAGENT_OF)
            session_id = parent if isinstance(parent, str) else None
            if session_id is not None and self._covers(method, session_id):
                return True
        return False

    def _note(self, link: Link, method: str, session_id: str | None, outcome: str) -> None:
        self._hub.audit.note(
            ACTS.get(method, "call" if method.startswith("_") else "read"),
            outcome,
            token=self.grant.name,
            peer=self._peer,
            client=link.guest.who.client_id,
            session=session_id,
            method=method,
        )


def _meant(method: str, params: Any) -> str:
    for_all = method == "session/close" and ours_in(params.meta).get("forAll") is True
    return CLOSE_FOR_ALL if for_all else method
