"""Open questions, which wait until a user answers here or in another client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from antiphon.client import ClientSession, Elicitation, Permission, Permissions, Reply
from antiphon.schema import v2


class PendingQuestion:
    """An open question."""

    def __init__(self, asked: Permission | Elicitation) -> None:
        self.asked = asked
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def reply(self, answer: v2.PermissionOption | Reply | None) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


class PendingQuestions(Permissions):
    """The decisions of a client: it asks the user."""

    elicits = ("form", "url")

    def __init__(self) -> None:
        super().__init__(ask=self._put)
        self.open: list[PendingQuestion] = []
        self.on_change: Callable[[], None] = lambda: None
        """Called whenever a question opens or ends."""

    async def elicit(self, elicitation: Elicitation) -> Reply | None:
        reply: Reply | None = await self._put(elicitation)
        return reply

    async def _put(self, asked: Permission | Elicitation) -> Any:
        pending = PendingQuestion(asked)
        self.open.append(pending)
        self.on_change()
        try:
            return await pending.answer
        finally:
            pending.answer.cancel()
            self.open.remove(pending)
            self.on_change()

    def of(self, session: ClientSession | None) -> list[PendingQuestion]:
        """Return the questions of a session, the oldest first, and those without a session."""
        asked = ((each, each.asked.session) for each in self.open)
        return [each for each, asker in asked if asker is None or _root(asker) is session]


def _root(session: ClientSession) -> ClientSession:
    """Return the session that a subagent's session belongs to."""
    while session.parent is not None:
        session = session.parent
    return session
