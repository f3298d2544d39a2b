"""ClientSession: one session of an agent, as its client uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from antiphon.client.link import Link
from antiphon.client.mcp.servers import AnyMcpServer
from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.config_options import options_by_id
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.session.content import Content, content_blocks
from antiphon.client.session.core import AnyMessage, SessionCore
from antiphon.client.session.queue import PromptQueue
from antiphon.client.session.setup import Folder, SessionSetup
from antiphon.client.session.turn import ClientTurn, SessionEvent
from antiphon.connection import Connection
from antiphon.engine.annotations import Annotation
from antiphon.engine.items import Compaction, ContextUsage, Plan
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.subagents import SessionNote, SubagentInfo
from antiphon.engine.tools import Terminal, ToolCall
from antiphon.engine.transcript import Message
from antiphon.engine.turn import TurnState
from antiphon.errors import LinkLost, LocalError
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.clients import Present, Who
from antiphon.schema.antiphon.messages import AnnotationKind
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import SessionMeta


class SessionClient(Protocol):
    """The `Client` of a session, as far as the session uses it and shows it."""

    who: Who
    link: Link
    _silence: float | None
    _setup: SessionSetup[ClientSession]

    @property
    def info(self) -> v1.Implementation | v2.Implementation | None: ...

    @property
    def agent_name(self) -> str: ...

    @property
    def connection(self) -> Connection: ...

    @property
    def lost(self) -> LinkLost | None: ...

    @property
    def abilities(self) -> Abilities: ...

    def find(self, session_id: str) -> ClientSession | None: ...

    def leave_session(self, session: ClientSession) -> None: ...

    async def close_session(self, session: ClientSession) -> None: ...

    async def archive(self, session_id: str) -> None: ...

    async def set_title(self, session_id: str, title: str) -> str: ...


class ClientSession:
    """A session of an agent. `messages`, `tool_calls`, `plans`, `usage`, `state`, … have everything that was
    received so far. `prompt` opens a turn."""

    def __init__(self, client: SessionClient, core: SessionCore[ClientSession]) -> None:
        self.client = client
        """The `Client` that opened it."""
        self.id = core.id
        self.cwd = core.cwd
        self.additional_directories = core.additional_directories
        """The further roots that it was opened with."""
        self._core = core

    @property
    def parent(self) -> ClientSession | None:
        """The session that this one works for; None unless it is a subagent's."""
        return None if self._core.parent is None else self._core.parent.view

    @property
    def agent_name(self) -> str:
        """The name of the agent that works for it: at a hub one of several."""
        if self.parent is not None:
            return self.parent.agent_name
        return read_meta(SessionMeta, self._core.opened_meta).agent or self.client.agent_name

    @property
    def cursor(self) -> int | None:
        """The number of the last event, if the agent numbers events for this client."""
        return self._core.resume_point.cursor

    # --- contents ----------------------------------------------------------------------------------

    @property
    def abilities(self) -> Abilities:
        """What the agent can do."""
        return self.client.abilities

    @property
    def fold(self) -> Session:
        """The session, folded from everything that this client received."""
        return self._core.fold

    @property
    def state(self) -> TurnState:
        return self.fold.state

    @property
    def turn(self) -> ClientTurn | None:
        """The open turn, whichever client opened it."""
        return self._core.tracker.turns.turn

    @property
    def messages(self) -> list[Message]:
        """User and agent messages and thoughts, in the order of first appearance."""
        return self.fold.messages

    @property
    def forgotten(self) -> list[Message]:
        """The messages of refused turns, which the agent drops from its context: each prompt, and all that
        follows it up to the next one (PROMPT-V1-08)."""
        return self._core.refused.messages(self.fold)

    @property
    def tool_calls(self) -> list[ToolCall]:
        return self.fold.tool_calls

    @property
    def terminals(self) -> list[Terminal]:
        return list(self.fold.terminals)

    @property
    def plans(self) -> list[Plan]:
        return list(self.fold.plans)

    @property
    def compactions(self) -> list[Compaction]:
        """How the agent has shortened its context, each with its summary."""
        return list(self.fold.compactions)

    @property
    def subagents(self) -> list[Subagent]:
        """The sessions that work, or have worked, for this one. Unstable."""
        return [Subagent(info, child.view) for info, child in self._core.children.values()]

    @property
    def session_messages(self) -> list[SessionNote]:
        """Messages between this session and others. Unstable."""
        return list(self.fold.session_messages)

    @property
    def usage(self) -> ContextUsage | None:
        """The context window and the cost so far, as last reported."""
        return self.fold.facts.usage

    @property
    def commands(self) -> list[v2.AvailableCommand]:
        return self._core.commands

    @property
    def config_options(self) -> list[v2.SessionConfigOption]:
        """The config options with their values; the complete list in the agent's order."""
        return self._core.config_options

    @property
    def config(self) -> dict[str, v2.SessionConfigOption]:
        """The config options by their ids. The modes of a v1 agent are one of them, of category `mode`."""
        return options_by_id(self.config_options)

    async def set_config(self, id: str, value: str | bool, *, meta: dict[str, Any] | None = None) -> None:
        """Set a config option. Raises `LocalError` for a value that is not offered, `CallFailed` if the agent
        refuses. `config` then has the result, which may change other options too."""
        self._core.check_open()
        await self._core.config.set(id, value, meta)

    @property
    def title(self) -> str | None:
        return None if self.fold.facts.info is None else self.fold.facts.info.title

    @property
    def questions(self) -> list[Question]:
        """The open questions of the agent."""
        return self.fold.questions.open

    @property
    def queue(self) -> PromptQueue:
        """The prompts that wait at the agent."""
        return self._core.queue

    @property
    def clients(self) -> list[Present]:
        """The clients that are attached now, this one included, if the agent reports them."""
        return self._core.tracker.others.attached

    @property
    def notices(self) -> list[SessionEvent]:
        """The last notices of the agent, those before the first call of `events` too."""
        return list(self._core.tracker.notices)

    def events(self) -> AsyncIterator[SessionEvent]:
        """All events from this call on, in turns and between them, until the link ends or the session is
        left."""
        return self._core.tracker.events()

    # --- prompts -----------------------------------------------------------------------------------

    async def prompt(
        self,
        *content: Content,
        delivery: str | None = None,
        operation_id: str | None = None,
        silence: float | None = None,
        meta: dict[str, Any] | None = None,
    ) -> ClientTurn:
        """Send a prompt. Returns once the agent has accepted it (v2) or it was sent (v1).

        delivery: what it does while the session works: `queue`, `steer` or `interrupt`, if the agent offers
            that.
        operation_id: the agent runs prompts of the same id once.
        silence: seconds without an update after which the prompt is withdrawn, or its turn cancelled, and the
            turn ends.
        meta: goes into the request as it is, such as trace context (`traceparent`, `tracestate`, `baggage`).

        A caller that is cancelled meanwhile withdraws the prompt. Raises `LocalError` for content that the
        agent cannot take, `CallFailed` if it refuses.
        """
        self._core.check_open()
        core = self._core
        turn = ClientTurn(core, content_blocks(content, self.abilities))
        accepted = core.start_prompt(turn, delivery=delivery, operation_id=operation_id, meta=meta)
        limit = self.client._silence if silence is None else silence
        if limit is not None:
            self.client.connection.start_soon(core.watch_silence(turn, limit))
        try:
            await asyncio.shield(accepted)
        except asyncio.CancelledError:
            core.prompts.withdraw(turn)
            raise
        return turn

    async def command(self, name: str, rest: str = "", *content: Content) -> ClientTurn:
        """Run one of the session's `commands` with the input `rest`; other content may go with it."""
        if not any(isinstance(command, v2.Command) and command.name == name for command in self.commands):
            raise LocalError(f"this session offers no command {name!r}")
        return await self.prompt(f"/{name} {rest}" if rest else f"/{name}", *content)  # CMD-02

    async def call_antiphon(self, method: str, **params: object) -> Any:
        """Call `_antiphon/{method}` for this session. `params` are the other fields of its request, in
        snake_case; the result is one of the types in `antiphon.schema.antiphon`."""
        return await self._core.context.call_antiphon(self.id, method, **params)

    def turn_of(self, prompt_request_id: int | str) -> ClientTurn:
        """The turn of a prompt by the id of its request: `turn.request_id`, or a `promptRequestId`. Raises
        `LocalError` for an unknown id, and for an ended turn that nobody holds any more."""
        return self._core.by_request.turn(prompt_request_id)

    async def drained(self, prompt_request_id: int | str) -> TurnEnd:
        """Wait until the turn of this prompt request has ended and everything of it has been applied. Returns
        at once for one of the last turns that ended. Raises `LocalError` for an unknown id."""
        return await self._core.by_request.drained(prompt_request_id)

    # --- annotations -------------------------------------------------------------------------------

    async def react(self, message: AnyMessage, value: str, *, operation_id: str | None = None) -> str:
        """Put a reaction, such as an emoji, on a message. Returns the id of the annotation. The message's
        `annotations` has it once the agent reports it."""
        kind = AnnotationKind.REACTION
        return await self._core.annotate(message, value, kind=kind, operation_id=operation_id)

    async def annotate(self, message: AnyMessage, note: str, *, operation_id: str | None = None) -> str:
        """Put a note on a message. Returns the id of the annotation."""
        kind = AnnotationKind.NOTE
        return await self._core.annotate(message, note, kind=kind, operation_id=operation_id)

    async def remove_annotation(self, annotation: Annotation | str) -> None:
        """Remove a reaction or note of this client."""
        await self._core.remove_annotation(annotation)

    # --- cancel and close --------------------------------------------------------------------------

    async def cancel(self, *, operation_id: str | None = None, meta: dict[str, Any] | None = None) -> None:
        """Cancel everything that the session works on. With an agent that supports operation ids, a second
        call with the same `operation_id` cancels nothing that has begun since."""
        if self.parent is not None:  # SUB-02
            info = self.parent.fold.subagents.get(self.id)
            if info is None or not info.can_cancel:
                raise LocalError("this subagent cannot be cancelled")
        await self._core.canceller.cancel_session(operation_id, meta)

    async def cancel_tool_call(self, tool_call_id: str) -> None:
        """Cancel one tool call. Raises `LocalError` if the agent does not offer that."""
        await self._core.canceller.cancel_tool_call(tool_call_id)

    async def cancel_terminal(self, terminal_id: str) -> None:
        """Cancel the command in one terminal. Raises `LocalError` if the agent does not offer that."""
        await self._core.canceller.cancel_terminal(terminal_id)

    async def close(self) -> None:
        """Close the session at the agent. It can be resumed if the agent keeps sessions."""
        self._core.check_not_subagent()
        await self.client.close_session(self)

    async def fork(
        self,
        *,
        at: str | None = None,
        cwd: Folder | None = None,
        mcp_servers: Sequence[AnyMcpServer] = (),
        additional_directories: Sequence[Folder] = (),
        system_prompt: str | v2.SystemPrompt | None = None,
        operation_id: str | None = None,
    ) -> ClientSession:
        """Fork the session: the new one continues from where this one was last idle or, if the agent supports
        that, right after the message `at`. The other options are those of `Client.new_session`."""
        fork = await self.client._setup.fork(
            self._core,
            at=at,
            cwd=cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            system_prompt=system_prompt,
            operation_id=operation_id,
        )
        return fork.view

    async def archive(self) -> None:
        """Close the session and take it out of the usual list."""
        await self.client.archive(self.id)

    async def set_title(self, title: str) -> str:
        """Set a title that the agent keeps and does not replace. Returns it as the agent stored it."""
        return await self.client.set_title(self.id, title)


class Subagent:
    """A session that works for another one. `session` has its messages, tool calls, questions and
    `events()`."""

    def __init__(self, info: SubagentInfo, session: ClientSession) -> None:
        self._info = info
        self.session = session

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def title(self) -> str | None:
        return self._info.title

    @property
    def description(self) -> str | None:
        return self._info.description

    @property
    def state(self) -> v2.State | None:
        """As its parent last reported it; None if it is not confirmed (SUB-02)."""
        state = self._info.state
        return state.state if isinstance(state, v2.StateUpdate) else None

    @property
    def can_cancel(self) -> bool:
        return self._info.can_cancel

    async def cancel(self) -> None:
        """Cancel what it works on, and nothing else. Raises `LocalError` if that is not offered."""
        await self.session.cancel()

    def __repr__(self) -> str:
        return f"Subagent({self.id!r}, title={self.title!r}, state={self.state!s})"
