"""AgentSession, AgentTurn and Subagent: what handlers work with.

The three refer to each other, so they are one module. All of them are handles of a `HandlerWorker`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NoReturn

from msgspec import UNSET, UnsetType

from antiphon.agent.edits import (
    append_content,
    as_blocks,
    change_revision,
    delete_content,
    get_message,
    replace_content,
)
from antiphon.agent.elicitation import SessionChannel, ask, ask_url, can_ask
from antiphon.agent.mcp import McpServer, using
from antiphon.agent.open_turn import OpenTurn, Prompt, StopTurn
from antiphon.agent.subagents import run_subagent
from antiphon.agent.system_prompts import SystemPrompt, read_system_prompt
from antiphon.agent.tool_calls import ToolCallWriter, Work, run_in_turn, start_background
from antiphon.agent.turn_client import TurnClient
from antiphon.agent.worker import HandlerWorker
from antiphon.agent.writers import CompactionWriter, MessageWriter, Referable
from antiphon.engine.annotations import Annotation
from antiphon.engine.configuration import Value, find_option, set_value, takes
from antiphon.engine.session import Session
from antiphon.engine.transcript import Message
from antiphon.errors import LocalError
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.schema.version import META_KEY
from antiphon.server.client_calls import ask_first
from antiphon.server.ids import new_id
from antiphon.server.questions import Channel
from antiphon.server.session_facts import ConfigValues, is_title_chosen, options_of

OWN_LIST = {META_KEY: {"ownList": True}}
"""Marks commands that a session was given for itself: they outlive the process that gave them."""


class AgentSession:
    """One session of an agent, as its handlers use it."""

    def __init__(self, worker: HandlerWorker, find_command: Callable[[str], v2.Command]) -> None:
        """`find_command` returns a declared command by its name, or raises `LocalError`."""
        self._worker = worker
        self._find_command = find_command

    @property
    def id(self) -> str:
        return self._worker.id

    @property
    def live(self) -> LiveSession:
        return self._worker.live

    @property
    def fold(self) -> Session:
        """Everything this session holds: messages, tool calls, plans, its queue and its state."""
        return self._worker.fold

    @property
    def cwd(self) -> str:
        return self._worker.cwd

    @property
    def additional_directories(self) -> tuple[str, ...]:
        """The roots besides `cwd`, as the last client to set them up gave them (SESS-10)."""
        return self._worker.session.additional_directories

    @property
    def mcp_servers(self) -> tuple[v2.McpServer, ...]:
        """The MCP servers the client wants the agent to use (MCPCFG-01, MCPCFG-10)."""
        return self._worker.session.mcp_servers

    @property
    def system_prompt(self) -> SystemPrompt | None:
        """The last system prompt that a client gave (SESS-58); it is not kept."""
        given = self._worker.session.system_prompt
        return None if given is None else read_system_prompt(given)

    @property
    def forked_from(self) -> str | None:
        """The id of the session that this one was forked from."""
        return self._worker.session.forked_from

    @property
    def subagent_of(self) -> str | None:
        """The id of the session that this one works, or has worked, for."""
        return self._worker.session.subagent_of

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that the session works in."""
        return (self.cwd, *self.additional_directories)

    def holds(self, path: str | os.PathLike[str]) -> bool:
        """Whether a file is in one of the `roots`, wherever links lead to: a tool is to touch no other
        (SESS-11). A path that is not absolute is one in the session's folder."""
        real = os.path.realpath(os.path.join(self.cwd, path))
        roots = map(os.path.realpath, self.roots)
        return any(real == root or real.startswith(os.path.join(root, "")) for root in roots)

    @property
    def trace(self) -> dict[str, Any]:
        """The trace context of the open turn (`AgentTurn.trace`)."""
        return self._worker.trace

    def mcp(self, name: str) -> AbstractAsyncContextManager[McpServer]:
        """Use an MCP server that a client offers over its connection, one of `mcp_servers` of type `acp`:
        `async with session.mcp("files") as server: await server.call("tools/list")`."""
        return using(self._worker, name)

    async def call_extension(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Call an extension method of the clients; the first answer counts. Raises `MethodNotFound` where no
        client knows it, or none is there."""
        clients = self._worker.session.askable()
        return await ask_first(clients, self.id, method, {"sessionId": self.id, **(params or {})})

    async def notify_extension(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send an extension notification to the clients."""
        self._worker.session.notify_clients(method, {"sessionId": self.id, **(params or {})})

    async def update(self, update: v2.SessionUpdate) -> None:
        """Send an update to every client of the session, now and later."""
        await self._worker.update(update)

    async def ask(
        self, request: v2.RequestPermissionRequest, *, tool_call_id: str
    ) -> v2.RequestPermissionOutcome:
        """Ask the clients of the session, and wait for the first answer; without clients it waits."""
        return await self._worker.questions.permission(request, tool_call_id=tool_call_id)

    # --- turns and background work -----------------------------------------------------------------

    async def idle(self) -> None:
        """Wait until no turn is open. Background work opens a turn right after it, before anything else
        is awaited: `await session.idle()`, then `async with session.turn()`."""
        await self._worker.idle()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[AgentTurn]:
        """Open a turn that no prompt asked for (PROMPT-V2-27); it ends with the block."""
        async with self._worker.open_turn() as turn:
            yield AgentTurn(self, turn)

    async def background(
        self,
        title: str,
        work: Work,
        *,
        kind: str = "other",
        cancellable: bool = False,
    ) -> str:
        """Start work that outlives the turn; return the id of its tool call. It is listed on every state
        update while it runs, a cancel does not touch it, closing the session ends it (PROMPT-V2-40, -44..46,
        SESS-39). Where it is `cancellable`, a v2 client may cancel it alone."""
        call = ToolCallWriter(self._worker, title, kind=kind, cancellable=cancellable)
        await start_background(self._worker, call, work)
        return call.tool_call_id

    @asynccontextmanager
    async def subagent(
        self, title: str, *, description: str | None = None, cancellable: bool = False, cwd: str | None = None
    ) -> AsyncIterator[Subagent]:
        """Run a subagent inside the block (`AgentTurn.subagent`). While no turn is open it is listed as
        background work. Unstable."""
        running = run_subagent(self._worker, title, description=description, cancellable=cancellable, cwd=cwd)
        async with running as (worker, turn):
            yield Subagent(AgentSession(worker, self._find_command), turn, self)

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that the session owns: it ends with it at the latest."""
        self._worker.session.tasks.start_soon(work)

    # --- options and commands ----------------------------------------------------------------------

    @property
    def config(self) -> ConfigValues:
        """The values of the config options: `session.config["model"]`."""
        return ConfigValues(self.fold)

    async def set_config(self, id: str, value: Value) -> None:
        """Change an option from the agent's side; every client gets the complete list. No handler is
        asked: handlers decide about the changes of clients."""
        options = options_of(self.fold)
        option = find_option(options, id)
        if option is None:
            raise LocalError(f"this session has no config option {id!r}")
        if not takes(option, value):
            raise LocalError(f"the config option {id!r} does not take {value!r}")
        if self.config[id] != value:
            await self.update(v2.ConfigOptionUpdate(config_options=set_value(options, id, value)))

    async def set_commands(self, commands: Sequence[str | v2.AvailableCommand]) -> None:
        """Offer these commands in this session, and no others: declared ones by name, or new ones, which
        reach the prompt handler as the text they are. They are still offered after a restart."""
        offered = [
            self._find_command(command) if isinstance(command, str) else command for command in commands
        ]
        await self.update(v2.AvailableCommandsUpdate(available_commands=offered, meta=OWN_LIST))

    # --- title and usage ---------------------------------------------------------------------------

    async def set_title(self, title: str | None) -> bool:
        """Give the session a title; whether it has it now: one that a client chose stays (SESS-57)."""
        if is_title_chosen(self.fold):
            return False
        await self.update(v2.SessionInfoUpdate(title=title))
        return True

    async def report_usage(
        self,
        *,
        used: int,
        size: int | None,
        cost: float | v2.Cost | UnsetType | None = UNSET,
        currency: str = "USD",
    ) -> None:
        """Report how many tokens of the context window are in use, and what the session has cost so far.

        A cost that is not given stays, None clears it. Nothing is sent if `size` is None or 0.
        """
        if used < 0 or (size is not None and size < 0):
            raise LocalError(f"token counts must be >= 0, got used={used}, size={size}")
        if not size:
            return  # USAGE-02
        total = v2.Cost(amount=cost, currency=currency) if isinstance(cost, int | float) else cost
        before = self.fold.facts.usage
        spent = None if before is None else before.cost
        if isinstance(total, v2.Cost) and spent is not None:
            falls = total.amount < spent.amount and total.currency == spent.currency
            if falls:  # USAGE-03
                raise LocalError(f"the total cost cannot fall, got {total.amount} after {spent.amount}")
        await self.update(v2.UsageUpdate(used=used, size=size, cost=total))

    # --- notices and compactions -------------------------------------------------------------------

    async def notice(self, title: str, *, description: str | None = None, severity: str = "info") -> None:
        """Show a notice to the clients that are attached now. It changes nothing and is not replayed
        (NOTE-04, NOTE-05). `severity`: `info`, `warning`, `error`, or your own, which begins with `_`."""
        await self.update(
            v2.Notice(severity=v2.NoticeSeverity(severity), title=title, description=description)
        )

    def compaction(self) -> AbstractAsyncContextManager[CompactionWriter]:
        """The context is being compacted inside the block, and what is written there is the summary, for
        people to read: completed after it, failed if it raises, cancelled with its task."""
        return CompactionWriter(self._worker).running()

    # --- messages by their ids ---------------------------------------------------------------------
    # `role` tells messages apart that share an id: `user`, `agent` or `thought`. Without it the agent's
    # message is meant, then the user's, then the thought.

    async def replace_message(
        self, message_id: str, *content: str | v2.ContentBlock, role: str | None = None
    ) -> None:
        """Replace the content of a message that was sent before, in whatever turn. An unknown id is that of a
        new message of the agent."""
        await replace_content(self._worker, message_id, role, content)

    async def append_message(
        self, message_id: str, *content: str | v2.ContentBlock, role: str | None = None
    ) -> None:
        """Append to a message that was sent before, as one edit that can be undone."""
        await append_content(self._worker, self._message(message_id, role), content)

    async def delete_message(self, message_id: str, *, role: str | None = None) -> None:
        """Delete a message: its content is gone for every client, and a mark stays in its place."""
        await delete_content(self._worker, self._message(message_id, role))

    async def undo_edit(self, message_id: str, *, role: str | None = None) -> bool:
        """Undo the last edit of a message, also a deletion; return whether there was one. The version before
        it is read from the journal. A fork has no versions older than itself."""
        return await change_revision(self._worker, self._message(message_id, role), -1)

    async def redo_edit(self, message_id: str, *, role: str | None = None) -> bool:
        """Redo the edit that was undone last, unless the message was edited since; return whether there was
        one."""
        return await change_revision(self._worker, self._message(message_id, role), 1)

    def annotations(self, message_id: str, *, role: str | None = None) -> list[Annotation]:
        """Return the reactions and notes that clients have put on a message."""
        return self._message(message_id, role).annotations

    def _message(self, message_id: str, role: str | None) -> Message:
        return get_message(self.fold, message_id, role)


class AgentTurn:
    """One span of foreground work. It ends when its handler returns: with `end_turn`, or with the stop reason
    that is returned or stopped with; an exception ends it as an error, a cancel as cancelled."""

    can_ask = can_ask
    ask = ask
    ask_url = ask_url

    def __init__(self, session: AgentSession, turn: OpenTurn) -> None:
        self.session = session
        self._worker = session._worker
        self._turn = turn
        self.client = TurnClient(self._worker, turn.prompter)
        """Files and terminals of the client, where it offers them (v1)."""
        self._requests = 0

    @property
    def usage(self) -> v2.Usage | None:
        """What the turn used, reported at its end."""
        return self._turn.usage

    @usage.setter
    def usage(self, usage: v2.Usage | None) -> None:
        self._turn.usage = usage

    def _channel(self) -> Channel:
        return SessionChannel(self._worker, meta=self.trace)

    @property
    def prompt(self) -> Prompt:
        """The prompt that opened this turn; a turn the agent opened by itself has none."""
        if self._turn.prompt is None:
            raise AttributeError("no prompt opened this turn")
        return self._turn.prompt

    @property
    def trace(self) -> dict[str, Any]:
        """The trace context and the correlation id that came with the prompt. Permission requests, questions
        and calls of clients' MCP servers carry it by themselves; put it on what else you send."""
        return self._turn.trace

    @asynccontextmanager
    async def message(self, *, about: Referable | None = None) -> AsyncIterator[MessageWriter]:
        """A message of the agent, streamed: every `write` is a chunk of it. `about` names the message that it
        answers: a prompt, a message, or an id."""
        yield MessageWriter(self._worker, thought=False, about=about)

    @asynccontextmanager
    async def thought(self, *, about: Referable | None = None) -> AsyncIterator[MessageWriter]:
        """A thought, streamed like a message."""
        yield MessageWriter(self._worker, thought=True, about=about)

    async def say(self, text: str, *, about: Referable | None = None) -> str:
        """A whole message at once; its id, by which it can be replaced later."""
        writer = MessageWriter(self._worker, thought=False, about=about)
        await writer.replace(text)
        return writer.message_id

    def tool_call(
        self,
        title: str,
        *,
        kind: str = "other",
        raw_input: Any = None,
        name: str | None = None,
        cancellable: bool = False,
        pending: bool = False,
        about: Referable | None = None,
    ) -> AbstractAsyncContextManager[ToolCallWriter]:
        """A tool call: in progress inside the block, completed after it, failed if the block raises. One that
        is `pending` does not run yet; `call.resume()` begins it. `about` names the message that triggered it.

        Where it is `cancellable`, a v2 client may cancel it alone: the block is cancelled, as a task is, and
        the turn continues behind it, with `call.cancelled` set."""
        call = ToolCallWriter(
            self._worker,
            title,
            kind=kind,
            raw_input=raw_input,
            name=name,
            cancellable=cancellable,
            pending=pending,
            about=about,
        )
        return run_in_turn(call)

    def subagent(
        self, title: str, *, description: str | None = None, cancellable: bool = False, cwd: str | None = None
    ) -> AbstractAsyncContextManager[Subagent]:
        """Run a subagent inside the block, in its own session, which this session's clients follow:
        `async with turn.subagent("Researcher") as child: await child.say("…")`. Where it is `cancellable`, a
        client may cancel it alone: the block ends there, and the turn continues. Unstable."""
        return self.session.subagent(title, description=description, cancellable=cancellable, cwd=cwd)

    async def plan(self, entries: Iterable[str | v2.PlanEntry], *, plan_id: str = "main") -> None:
        """Show the plan, whole; a later call with the same id replaces it."""
        medium, pending = v2.PlanEntryPriority.MEDIUM, v2.PlanEntryStatus.PENDING
        items = [
            v2.PlanEntry(content=entry, priority=medium, status=pending) if isinstance(entry, str) else entry
            for entry in entries
        ]
        content = v2.PlanItems(plan_id=v2.PlanId(plan_id), entries=items)
        await self._worker.update(v2.PlanUpdate(plan=content))

    def stop(self, reason: str) -> NoReturn:
        """End the turn here: `max_tokens`, `max_turn_requests`, `refusal`, or a reason of your own that
        begins with `_`."""
        raise StopTurn(v2.StopReason(reason), self._turn)

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
        """Add what a request to a model used to the turn's `usage`. `total` is by default the sum of the
        others."""
        parts = (input, output, thought, cached_read, cached_write)
        for tokens in (*parts, total):
            if tokens is not None and tokens < 0:
                raise LocalError(f"token count must be >= 0, got {tokens}")
        so_far = self.usage or v2.Usage(total_tokens=0, input_tokens=0, output_tokens=0)
        self.usage = v2.Usage(
            total_tokens=so_far.total_tokens + (sum(part or 0 for part in parts) if total is None else total),
            input_tokens=so_far.input_tokens + input,
            output_tokens=so_far.output_tokens + output,
            thought_tokens=_sum(so_far.thought_tokens, thought),
            cached_read_tokens=_sum(so_far.cached_read_tokens, cached_read),
            cached_write_tokens=_sum(so_far.cached_write_tokens, cached_write),
        )

    def steered(self) -> list[Prompt]:
        """A break point: what the user sent to steer this turn, taken in now."""
        return self._worker.take_steering()


class Subagent(AgentTurn):
    """What a subagent works with: a turn in its own session, with messages, tool calls and questions."""

    def __init__(self, session: AgentSession, turn: OpenTurn, parent: AgentSession) -> None:
        super().__init__(session, turn)
        self._parent = parent

    @property
    def id(self) -> str:
        """The id of its session."""
        return self.session.id

    @property
    def trace(self) -> dict[str, Any]:
        return self._parent.trace

    async def describe(self, *, title: str | None = None, description: str | None = None) -> None:
        """Announce it under another title or description."""
        await self._parent.update(
            v2.SubagentUpdate(
                session_id=v2.SessionId(self.id),
                title=UNSET if title is None else title,
                description=UNSET if description is None else description,
            )
        )

    async def instruct(self, *content: str | v2.ContentBlock) -> str:
        """Show a message of the parent to it, in both sessions; return the id (SUB-03)."""
        return await self._pass_on(content, sender=self._parent.id, recipient=self.id)

    async def report(self, *content: str | v2.ContentBlock) -> str:
        """Show its message to the parent, in both sessions; return the id."""
        return await self._pass_on(content, sender=self.id, recipient=self._parent.id)

    async def _pass_on(
        self, content: tuple[str | v2.ContentBlock, ...], *, sender: str, recipient: str
    ) -> str:
        message = v2.SessionMessage(
            message_id=v2.MessageId(new_id("msg")),
            sender_session_id=v2.SessionId(sender),
            recipient_session_id=v2.SessionId(recipient),
            content=as_blocks(content),
        )
        await self._parent.update(message)
        await self.session.update(message)
        return message.message_id


def _sum(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more
