"""SessionContext: what all sessions of a client share."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from antiphon.client.link import Link
from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.client.protocol.questions import AnswerMemory, Decider
from antiphon.client.session.resume_point import new_operation_id
from antiphon.errors import LocalError
from antiphon.schema.methods import OWN, Kind, find
from antiphon.schema.version import V2


class SessionContext(Struct, frozen=True, kw_only=True):
    agent: AgentConnection[Any]
    link: Link
    decider: Decider
    lasting: bool
    """Whether another link follows a lost one."""
    answer_memory: AnswerMemory = field(default_factory=AnswerMemory)

    def operation(self, kind: str, operation_id: str | None = None) -> dict[str, str]:
        """The operation id of a request, under its name on the wire; empty if it has none. If another link
        may follow, an id is made up, so that the request can be sent again."""
        if operation_id is None and self.lasting and kind in self.agent.abilities.operations:
            operation_id = new_operation_id()
        return {} if operation_id is None else {"operationId": operation_id}

    async def call_antiphon(self, session_id: str, method: str, **params: object) -> Any:
        """Call `_antiphon/{method}` for a session. `params` are the other fields of its request."""
        found = find(Kind.REQUEST, OWN + method, V2)
        if found is None:
            raise LocalError(f"there is no method {OWN + method!r}")
        return await self.agent.connection.call(found.name, found.params(session_id=session_id, **params))
