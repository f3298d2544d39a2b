"""AgentTurn: what a prompt handler works with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from antiphon.agent.asking import Asks, Channel, SessionChannel
from antiphon.agent.cancelling import tool_call
from antiphon.agent.reaching import TurnClient
from antiphon.agent.references import Referable
from antiphon.agent.tokens import add_tokens
from antiphon.agent.tracing import trace_of
from antiphon.agent.writers import MessageWriter, ToolCallWriter
from antiphon.engine.who import Who
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.agent.subagents import Subagent


class Prompt(Struct, frozen=True):
    """What the user said."""

    message_id: str
    content: list[v2.ContentBlock]
    meta: dict[str, Any] = {}
    """What the client put beside it, such as trace context (OBS-01)."""
    sender: Who | None = None
    """The client that it came from, as that calls itself."""

    @property
    def text(self) -> str:
        """Its plain text, blocks joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, v2.TextContent))


class StopTurn(Exception):
    """Ends the turn with a stop reason, from however deep in the handler it is raised (`turn.stop`)."""

    def __init__(self, reason: v2.StopReason, session: AgentSession) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.session = session
        """Whose turn it is."""


class AgentTurn(Asks):
    """One span of foreground work. It ends when its handler returns: with `end_turn`, or with the stop reason
    that is returned or stopped with; an exception ends it as an error, a cancel as cancelled."""

    def __init__(self, session: AgentSession, prompt: Prompt | None) -> None:
        self.session = session
        self._prompt = prompt
        self.client = TurnClient(session, session.prompters.get(prompt.message_id) if prompt else None)
        """Files and terminals of the client, where it offers them (v1)."""
        self._requests = 0
        self.usage: v2.Usage | None = None
        """What the turn used, reported at its end."""

    def _channel(self) -> Channel:
        return SessionChannel(self.session, meta=self.trace)

    @property
    def prompt(self) -> Prompt:
        """The prompt that opened this turn; a turn the agent opened by itself has none."""
        if self._prompt is None:
            raise AttributeError("no prompt opened this turn")
        return self._prompt

    @property
    def trace(self) -> dict[str, Any]:
        """The trace context and the correlation id that came with the prompt. Permission requests, questions
        and calls of clients' MCP servers carry it by themselves; put it on what else you send."""
        return {} if self._prompt is None else trace_of(self._prompt.meta)

    @asynccontextmanager
    async def message(self, *, about: Referable | None = None) -> AsyncIterator[MessageWriter]:
        """A message of the agent, streamed: every `write` is a chunk of it. `about` names the message that it
        answers: a prompt, a message, or an id."""
        yield MessageWriter(self.session, thought=False, about=about)

    @asynccontextmanager
    async def thought(self, *, about: Referable | None = None) -> AsyncIterator[MessageWriter]:
        """A thought, streamed like a message."""
        yield MessageWriter(self.session, thought=True, about=about)

    async def say(self, text: str, *, about: Referable | None = None) -> str:
        """A whole message at once; its id, by which it can be replaced later."""
        writer = MessageWriter(self.session, thought=False, about=about)
        await writer.replace(text)
        return writer.message_id

    @asynccontextmanager
    async def tool_call(
        self,
        title: str,
        *,
        kind: str = "other",
        raw_input: Any = None,
        name: str | None = None,
        cancellable: bool = False,
        pending: bool = False,
        about: Referable | None = None,
    ) -> AsyncIterator[ToolCallWriter]:
        """A tool call: in progress inside the block, completed after it, failed if the block raises. One that
        is `pending` does not run yet; `call.resume()` begins it. `about` names the message that triggered it.

        Where it is `cancellable`, a v2 client may cancel it alone: the block is cancelled, as a task is, and
        the turn goes on behind it, with `call.cancelled` set."""
        opened = tool_call(
            self.session,
            title,
            kind=kind,
            raw_input=raw_input,
            name=name,
            cancellable=cancellable,
            pending=pending,
            about=about,
        )
        async with opened as call:
            yield call

    def subagent(
        self, title: str, *, description: str | None = None, cancellable: bool = False, cwd: str | None = None
    ) -> AbstractAsyncContextManager[Subagent]:
        """A subagent at work inside the block, in a session of its own that this session's clients follow:
        `async with turn.subagent("Researcher") as child: await child.say("…")`. Where it is `cancellable`, a
        client may cancel it alone: the block ends there, and the turn goes on behind it. Unstable."""
        return self.session.subagent(title, description=description, cancellable=cancellable, cwd=cwd)

    async def plan(self, entries: Iterable[str | v2.PlanEntry], *, plan_id: str = "main") -> None:
        """Show the plan, whole; a later call with the same id replaces it."""
        items: Sequence[v2.PlanEntry] = [
            entry
            if isinstance(entry, v2.PlanEntry)
            else v2.PlanEntry(
                content=entry,
                priority=v2.PlanEntryPriority.MEDIUM,
                status=v2.PlanEntryStatus.PENDING,
            )
            for entry in entries
        ]
        content = v2.PlanItems(plan_id=v2.PlanId(plan_id), entries=list(items))
        await self.session.update(v2.PlanUpdate(plan=content))

    def stop(self, reason: str) -> NoReturn:
        """End the turn here: `max_tokens`, `max_turn_requests`, `refusal`, or a reason of your own that
        begins with `_`."""
        raise StopTurn(v2.StopReason(reason), self.session)

    def count_request(self, *, limit: int) -> None:
        """Call it before each request to a model: the one beyond the limit ends the turn as
        `max_turn_requests`."""
        self._requests += 1
        if self._requests > limit:
            self.stop(v2.StopReason.MAX_TURN_REQUESTS)

    def count_tokens(
        self,
        *,
        input: int,
        output: int,
        thought: int | None = None,
        cached_read: int | None = None,
        cached_write: int | None = None,
        total: int | None = None,
    ) -> None:
        """Add what a request to a model used to the turn's `usage`."""
        self.usage = add_tokens(
            self.usage,
            input=input,
            output=output,
            thought=thought,
            cached_read=cached_read,
            cached_write=cached_write,
            total=total,
        )

    def steered(self) -> list[Prompt]:
        """A break point: what the user sent to steer this turn, taken in now."""
        return self.session.take_steering()
