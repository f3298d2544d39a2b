"""ClientSession: one session of an agent as its client sees it. What it holds is read here; what is done with
it has modules of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from antiphon.client.abilities import Abilities
from antiphon.client.accompanied import Accompanied
from antiphon.client.annotations import AnyMessage, annotate, remove_annotation
from antiphon.client.asking import Asking
from antiphon.client.cancelling import Cancelling
from antiphon.client.cancelling_items import CancellingItems
from antiphon.client.configuring import Configuring, by_id
from antiphon.client.content import Content, blocks
from antiphon.client.folders import Folder
from antiphon.client.forking import fork_session
from antiphon.client.mcp import AnyMcpServer
from antiphon.client.places import Place, new_operation
from antiphon.client.prompting import Prompting
from antiphon.client.queueing import QueuedPrompt, Queueing
from antiphon.client.refusals import Refusals
from antiphon.client.requests import Requests
from antiphon.client.spoken import News, Spoken
from antiphon.client.subagents import Subagent, check_cancel, check_own
from antiphon.client.turn import ClientTurn, SessionEvent, TurnEnd
from antiphon.client.view import View
from antiphon.engine.annotations import Annotation, AnnotationKind
from antiphon.engine.compactions import Compaction
from antiphon.engine.elicitations import Elicited
from antiphon.engine.events import Delivery
from antiphon.engine.facts import ContextUsage
from antiphon.engine.plans import Plan
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.subagents import SessionNote
from antiphon.engine.terminals import Terminal
from antiphon.engine.tools import ToolCall
from antiphon.engine.transcript import Message
from antiphon.engine.turn import TurnState
from antiphon.engine.who import Present
from antiphon.errors import LinkLost, LocalError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.updates import TextChunk
from antiphon.schema.version import META_KEY, ours_in, without_ours

if TYPE_CHECKING:
    from antiphon.client.client import Client


class ClientSession:
    """Read what it holds at any time: `messages`, `tool_calls`, `plans`, `usage`, `state`, … are as of
    everything that was received. `prompt` opens a turn."""

    def __init__(self, client: Client, session_id: str, spoken: Spoken, *, cwd: str) -> None:
        self.client = client
        self.id = session_id
        self.cwd = cwd
        self.additional_directories: tuple[str, ...] = ()
        """The roots beside `cwd`, as it was opened with."""
        self.place = Place(session_id)
        self.spoken = spoken
        self.parent: ClientSession | None = None
        """The session that this one works for (`subagents`)."""
        self.children: dict[str, Subagent] = {}
        self.opened_meta: dict[str, Any] = {}
        """What the agent put beside its answer when it was opened."""
        connection = client.connection
        self._view = View(
            lambda: ClientTurn(self),
            serial=spoken.answers_at_the_end,
            follower=None if client.relay is None else client.relay(self),
        )
        self.refusals = Refusals(self._view.fold)
        """The turns that the agent refused."""
        self.requests = Requests()
        """The turns of this client's prompts by their request ids."""
        self._prompting = Prompting(session_id, connection, spoken, self._view)
        self._asking = Asking(self, self._view, spoken, self._prompting.take)
        self._cancelling = Cancelling(session_id, connection, spoken, self._view, self._asking)
        self._cancelling.marks = client.relay is None
        self._cancelling.operation = partial(client.operation, "cancel")
        self._items = CancellingItems(session_id, connection, self._view)
        self._queueing = Queueing(self, self._view)
        self._configuring = Configuring(session_id, connection, spoken, self._view)
        self.fold.subagents.on_new = partial(client.following.announced, self)
        self._view.on_user_message = self._queueing.shown
        self._view.on_ending = self._asking.cancel  # PROMPT-V2-26: what is over is not asked any more
        self._view.on_turn = self._cancelling.due
        self._prompting.waited_for = lambda: self._asking.waits or not client.link.up
        self._prompting.lasts = lambda: self.lasts
        self._prompting.on_sent = self.requests.add
        self._prompting.on_silence = self._cancelling.soon
        self._prompting.on_too_late = self._cancelling.once_worked_on

    @property
    def agent_name(self) -> str:
        """Who works for it, as far as that was said: behind a hub one of several."""
        if self.parent is not None:
            return self.parent.agent_name
        said = ours_in(self.opened_meta).get("agent")
        return said if isinstance(said, str) and said else self.client.agent_name

    @property
    def cursor(self) -> int | None:
        """The number of the last event, where the agent was asked for numbers and gives them."""
        return self.place.cursor

    # --- what it holds -----------------------------------------------------------------------------

    @property
    def abilities(self) -> Abilities:
        """What the agent can do."""
        return self.client.abilities

    @property
    def fold(self) -> Session:
        """Everything this client was told of the session."""
        return self._view.fold

    @property
    def state(self) -> TurnState:
        return self.fold.state

    @property
    def turn(self) -> ClientTurn | None:
        """The turn that is open, whoever opened it."""
        return self._view.spans.turn

    @property
    def messages(self) -> list[Message]:
        """User and agent messages and thoughts, in the order of first appearance."""
        return self.fold.messages

    @property
    def forgotten(self) -> list[Message]:
        """Those of `messages` that the agent goes on without, because it refused the turn that they are of:
        its prompt, and all that came after it up to the next one (PROMPT-V1-08)."""
        return self.refusals.messages

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
        """How the agent has shortened what it keeps in mind, each with its summary."""
        return list(self.fold.compactions)

    @property
    def subagents(self) -> list[Subagent]:
        """The sessions that work, or have worked, for this one. Unstable."""
        return list(self.children.values())

    @property
    def session_messages(self) -> list[SessionNote]:
        """What this session and others have told each other. Unstable."""
        return list(self.fold.session_messages)

    @property
    def usage(self) -> ContextUsage | None:
        """The context window and the cost so far, as the agent told them last."""
        return self.fold.facts.usage

    @property
    def commands(self) -> list[v2.AvailableCommand]:
        told = self.fold.facts.commands
        return [] if told is None else list(told.latest.available_commands)

    @property
    def config_options(self) -> list[v2.SessionConfigOption]:
        """What can be chosen, and what is; the complete list in the agent's order."""
        return self._configuring.options

    @property
    def config(self) -> dict[str, v2.SessionConfigOption]:
        """The config options by their ids. A v1 agent's modes are one of them, of category `mode`."""
        return by_id(self.config_options)

    def assume_config(self, options: Sequence[v2.SessionConfigOption]) -> list[str]:
        """For a session that was opened again: take it that the agent still has these options, where it named
        none of their kind, so that they can be set. Returns the ids of those whose values are not known."""
        return self._configuring.assume(list(options))

    async def set_config(self, id: str, value: str | bool, *, meta: dict[str, Any] | None = None) -> None:
        """Choose another value. Raises `LocalError` for one that is not offered, `CallFailed` where the agent
        refuses; otherwise `config` has what came of it, in other options too."""
        self._check_open()
        await self._configuring.set(id, value, meta)

    @property
    def title(self) -> str | None:
        return None if self.fold.facts.info is None else self.fold.facts.info.title

    @property
    def questions(self) -> list[Question]:
        """What the agent asks and nobody has answered."""
        return self.fold.questions.open

    @property
    def queue_entries(self) -> list[dict[str, Any]]:
        """What waits at the agent, where it tells (`_antiphon_queue`)."""
        return self._view.queue

    @property
    def clients(self) -> list[Present]:
        """Who follows the session now, this client among them, where the agent tells."""
        return self._view.others.clients

    @property
    def notices(self) -> list[SessionEvent]:
        """The last notices of the agent, those too that came before anybody could ask for `events`."""
        return list(self._view.notices)

    def events(self) -> AsyncIterator[SessionEvent]:
        """Everything that happens from this call on, in turns and between them, until the link ends or the
        session is left."""
        return self._view.events()

    # --- prompting ---------------------------------------------------------------------------------

    async def prompt(
        self,
        *content: Content,
        delivery: str | None = None,
        operation_id: str | None = None,
        silence: float | None = None,
        meta: dict[str, Any] | None = None,
    ) -> ClientTurn:
        """Say something. Returns once the agent has taken it (v2) or it was sent (v1).

        `delivery` says what it does while the session works: `queue`, `steer` or `interrupt`, where the agent
        offers that. After `silence` seconds without a word the prompt is taken back, or its turn cancelled,
        and the turn ends. A caller that is cancelled meanwhile takes the prompt back too. `meta` goes beside
        the prompt as it is: trace context, for instance (`traceparent`, `tracestate`, `baggage`).
        Raises `LocalError` for what the agent cannot take, `CallFailed` where it refuses.
        """
        self._check_open()
        turn = ClientTurn(self, blocks(content, self.abilities))
        accepted = self.start_prompt(turn, delivery=delivery, operation_id=operation_id, meta=meta)
        limit = self.client.silence if silence is None else silence
        if limit is not None:
            self.client.connection.start_soon(self._prompting.watch_silence(turn, limit))
        try:
            await asyncio.shield(accepted)
        except asyncio.CancelledError:
            self._prompting.withdraw(turn)
            raise
        return turn

    def start_prompt(
        self,
        turn: ClientTurn,
        *,
        delivery: str | None = None,
        operation_id: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> asyncio.Future[None]:
        """Write the prompt of a turn to the agent, for a caller that must know the turn before the agent
        takes it. The future is done once it is taken, and fails where the agent refuses it."""
        self._check_open()
        ours: dict[str, Any] = {}
        if delivery is not None:
            ours["delivery"] = self._delivery(delivery)
        if operation_id is None and self.abilities.replay_after:
            operation_id = new_operation()
        if operation_id is not None:
            ours["operationId"] = operation_id
            self.place.operations.append(operation_id)
        joins = delivery == Delivery.STEER
        return self._prompting.send(turn, turn.prompt or [], ours, meta=meta, joins=joins)

    def take_back_prompt(self, turn: ClientTurn) -> bool:
        """Ask the agent with `$/cancel_request` to give back a prompt that it has not taken; whether that is
        possible. What the agent answers to the prompt is still read."""
        return self._prompting.ask_back(turn)

    async def command(self, name: str, rest: str = "", *content: Content) -> ClientTurn:
        """Run one of the session's `commands`; `rest` is its input, and other content may go with it."""
        if not any(isinstance(command, v2.Command) and command.name == name for command in self.commands):
            raise LocalError(f"this session offers no command {name!r}")
        return await self.prompt(f"/{name} {rest}" if rest else f"/{name}", *content)  # CMD-02

    def _delivery(self, wanted: str) -> str:
        if wanted not in self.abilities.delivery:
            raise LocalError(f"this agent does not offer to {wanted} prompts")
        return str(wanted)

    async def queue(self, *content: Content, mode: str = "queue") -> QueuedPrompt:
        """Let a prompt wait at the agent, where it outlives this connection. Returns once it is there."""
        self._check_open()
        if not self.abilities.queue:
            raise LocalError("this agent offers no queue")
        if not self.spoken.tells_every_end:
            raise LocalError("a queued prompt needs `turn_complete`: nothing else tells its end in v1")
        return await self._queueing.add(blocks(content, self.abilities), mode)

    def turn_of(self, prompt_request_id: int | str) -> ClientTurn:
        """The turn of a prompt by the id of its request: `turn.request_id`, or a `promptRequestId`. Raises
        `LocalError` for an id that is unknown, and for a turn that ended and that nobody holds any more."""
        return self.requests.turn(prompt_request_id)

    async def drained(self, prompt_request_id: int | str) -> TurnEnd:
        """Wait until the turn of this prompt request has ended and everything of it has been applied; returns
        at once for one of the last turns that ended. Raises `LocalError` for an unknown id."""
        return await self.requests.drained(prompt_request_id)

    async def resume_queue(self) -> None:
        """Let the agent go on with what waits, after a cancel."""
        await self.extension("resume_queue")

    def forget(self, queued: QueuedPrompt) -> None:
        """A queued prompt was withdrawn."""
        self._queueing.forget(queued)

    async def extension(self, method: str, **params: object) -> Any:
        """Call one of our own methods of this session."""
        wanted = {"sessionId": self.id, **params}
        return await self.client.connection.call(f"_antiphon/{method}", wanted)

    def _check_open(self) -> None:
        check_own(self)
        if self._view.over is not None and self.client.lost is None:
            raise LocalError("this session was left: open it again")

    # --- annotations -------------------------------------------------------------------------------

    async def react(self, message: AnyMessage, value: str, *, operation_id: str | None = None) -> str:
        """Put a sign, such as an emoji, on a message; gives the id of the annotation. The message's
        `annotations` has it once the agent tells it, as it does to every client that asked."""
        return await annotate(self, message, value, kind=AnnotationKind.REACTION, operation_id=operation_id)

    async def annotate(self, message: AnyMessage, note: str, *, operation_id: str | None = None) -> str:
        """Put a note on a message; gives the id of the annotation."""
        return await annotate(self, message, note, kind=AnnotationKind.NOTE, operation_id=operation_id)

    async def remove_annotation(self, annotation: Annotation | str) -> None:
        """Remove a reaction or note of this client's, by its id."""
        await remove_annotation(self, annotation)

    # --- cancelling and closing --------------------------------------------------------------------

    async def cancel(self, *, operation_id: str | None = None, meta: dict[str, Any] | None = None) -> None:
        """Stop whatever the session works on. Asked again under the same `operation_id`, where the agent
        offers that, it stops nothing that has begun since."""
        check_cancel(self)
        await self._cancelling.session(operation_id, meta)

    async def cancel_turn(self, turn: ClientTurn) -> None:
        """Stop one turn, and no other."""
        await self._cancelling.turn(turn)

    async def cancel_tool_call(self, tool_call_id: str) -> None:
        """Stop one tool call, where the agent offers that; raises `LocalError` where it does not."""
        await self._items.tool_call(tool_call_id)

    async def cancel_terminal(self, terminal_id: str) -> None:
        """Stop the command in one terminal, where the agent offers that; raises `LocalError` where not."""
        await self._items.terminal(terminal_id)

    async def close(self) -> None:
        """End the session at the agent; it can be resumed where the agent keeps sessions."""
        check_own(self)
        await self.client.close_session(self)

    # --- what becomes of it ------------------------------------------------------------------------

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
        """A new session that goes on from this one, which stays as it is: from where it was last idle or,
        where the agent can do that, right after the message `at`. Asked again under the same `operation_id`,
        where the agent offers that, it is the session of the first time."""
        return await fork_session(
            self,
            at=at,
            cwd=cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            prompt=system_prompt,
            operation_id=operation_id,
        )

    async def archive(self) -> None:
        """Put it away: it is closed, and not listed with the others."""
        await self.client.archive(self.id)

    async def set_title(self, title: str) -> str:
        """Give it a title that the agent keeps, and does not replace; as it was kept."""
        return await self.client.set_title(self.id, title)

    # --- what the client passes on -----------------------------------------------------------------

    async def ask_permission(self, params: Any, inbound: Inbound) -> Any:
        """`session/request_permission` came."""
        return await self._asking.ask(params, inbound)

    def permission_taken_back(self, params: Any) -> Any:
        """`session/request_permission` came, and its cancellation before it began."""
        return self._asking.taken_back(params)

    async def ask_elicitation(self, request: Elicited, inbound: Inbound) -> Any:
        """`elicitation/create` came."""
        return await self._asking.elicit(request, inbound)

    def receive(self, params: Any) -> None:
        """An update came, in the lane."""
        self._view.hear()
        ours = None if params.meta is None else params.meta.get(META_KEY)
        if isinstance(ours, dict) and isinstance(ours.get("seq"), int) and not self.place.take(ours):
            return
        news = self.spoken.read(params.update)
        if params.meta is None or self._view.follower is None:
            self._prompting.take(news)
        else:
            self.receive_read(news, meta=params.meta)

    def pass_on_text(self, chunks: Sequence[TextChunk]) -> bool:
        """Pass on plain text that came, in the lane; whether that can be done without reading each chunk."""
        follower = self._view.follower
        if follower is None or not self.spoken.name_text(chunks):
            return False
        self._view.hear()
        follower.streamed_text(chunks)
        return True

    def receive_read(
        self, news: Sequence[News], *, meta: dict[str, Any] | None, original: bytes | None = None
    ) -> None:
        """An update came, in the lane, and was read already; it was written so, with this beside it."""
        view, follower, beside = self._view, self._view.follower, without_ours(meta)
        view.hear()
        view.original = original
        if follower is not None and beside is not None:
            view.follower = Accompanied(follower, beside)
        try:
            self._prompting.take(news)
        finally:
            view.original = None
            if isinstance(view.follower, Accompanied):
                view.follower = follower

    def opened(self) -> None:
        """All is applied that the answer says by which it was opened."""
        if self._view.follower is not None:
            self._view.follower.opened()

    def pace(self) -> Awaitable[None] | None:
        """What the agent has to wait for before more is read of it."""
        return None if self._view.follower is None else self._view.follower.pace()

    def tell(self, update: v2.SessionUpdate) -> None:
        """Something is known of it that did not come as an update."""
        self._view.tell(update)

    def close_questions(self) -> None:
        """It is over at the agent: what it asks is answered as cancelled."""
        self._asking.close()

    # --- one link after another --------------------------------------------------------------------

    @property
    def lasts(self) -> bool:
        """Whether it goes on over another link as if nothing had happened."""
        client = self.client
        return client.lasting and client.abilities.replay_after and self.cursor is not None

    def cut(self, reason: LinkLost) -> None:
        """The link was lost, all that came over it has been applied, and another one may come."""
        self._asking.cut()
        if not self.lasts:
            cut = TurnEnd.cut_short(reason)
            self._prompting.cut(cut)
            self._queueing.leave(reason, cut)
            self._view.interrupt(cut)

    def restart(self) -> None:
        """It is about to be told from its beginning."""
        self.spoken.restart()
        self._view.restart()
        self.refusals = Refusals(self.fold)
        self.fold.subagents.on_new = partial(self.client.following.announced, self)

    def restored(self) -> None:
        """Another link is in use."""
        self._view.again = False
        self._prompting.restored()
        self._cancelling.restored()

    def leave(self, reason: LinkLost | str) -> None:
        """Nothing of it comes any more, and everything that came has been applied."""
        cut = TurnEnd.cut_short(reason)
        follower = self._view.follower
        if follower is not None:
            self._prompting.take(self.spoken.overdue())  # they were answered: nothing cut them short
            self._view.follower = None  # what is made up from here on is for our own view
            follower.left(reason)
        self._asking.leave()
        self._view.expire()  # before the turns end that they belong to
        self._prompting.leave(reason, cut)
        self._queueing.leave(reason if isinstance(reason, LinkLost) else LinkLost(reason), cut)
        self._view.leave(cut)
