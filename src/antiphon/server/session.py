"""ServedSession: one session that is open here, its clients and its worker.

`feed` is what attachments follow: the fold, the committed events and the tail. `control` is what clients may
ask for. Here both are about the same live session; nothing else relies on that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, final

from antiphon.engine.events import AnyBody, QuestionClosed, QuestionOpened, SessionCreated
from antiphon.engine.session import Session
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.server.clients.session_clients import SessionClients
from antiphon.server.connection import ClientConnection
from antiphon.server.control.control import SessionControl
from antiphon.server.questions import Questions
from antiphon.server.session_facts import SessionStart
from antiphon.server.tasks import Tasks
from antiphon.server.worker import Worker


@final
class ServedSession:
    def __init__(
        self,
        live: LiveSession,
        connections: Collection[ClientConnection],
        make_worker: Callable[[ServedSession], Worker],
        *,
        grace: float,
    ) -> None:
        """`connections`: all clients of the server. `grace`: seconds that work gets to end in."""
        self.live = self.feed = live
        """What attachments follow."""
        self.id = live.session_id
        self._clients = SessionClients(self.id, connections)
        self.grace = grace
        self.additional_directories: tuple[str, ...] = ()
        """The roots besides `cwd`, as the last client to set them up gave them (SESS-10)."""
        self.mcp_servers: tuple[v2.McpServer, ...] = ()
        """The MCP servers the client wants the agent to use (MCPCFG-01, MCPCFG-10)."""
        self.system_prompt: v2.SystemPrompt | None = None
        """The last system prompt that a client gave (SESS-58); it is not kept."""
        self.prompters = self._clients.prompters
        """The clients whose prompts wait to be taken, by the message ids of the prompts."""
        self.parent: ServedSession | None = None
        """The session that this one works for, while it does (SUB-01)."""
        self.cancellable = True
        """Whether a client may cancel it; a subagent only where that was announced."""
        self.joining: set[asyncio.Future[None]] = set()
        """Clients that are about to follow it because they follow its parent."""
        self.new = False
        """Whether no client knows of it yet."""
        self.closing = False
        """Whether it is being closed: nothing new is begun in it."""
        self.start: SessionStart | None = None
        """Where the client that begins it starts to follow; `None` once that client is attached."""
        self.gone = False
        """Whether it was put away."""
        self.opened_meta: dict[str, Any] = {}
        """The `_meta` of the answer to the client that begins it."""
        self.tasks = Tasks(f"session {live.session_id}", grace=grace)
        """Everything that runs for the session. It ends with the session."""
        self.questions = Questions(live.fold, self.emit, self.attached)
        self.worker = make_worker(self)
        self.control = SessionControl(
            self, self.emit, live.durable, live.now, questions=self.questions, worker=self.worker
        )

    @property
    def fold(self) -> Session:
        """Everything this session holds: messages, tool calls, plans, its queue and its state."""
        return self.live.fold

    @property
    def _created(self) -> SessionCreated:
        assert self.fold.created is not None
        return self.fold.created

    @property
    def cwd(self) -> str:
        return self._created.cwd

    @property
    def forked_from(self) -> str | None:
        """The id of the session that this one was forked from."""
        forked = self._created.meta.get("forkedFrom")
        return forked.get("sessionId") if isinstance(forked, dict) else None

    @property
    def subagent_of(self) -> str | None:
        """The id of the session that this one works, or has worked, for."""
        return self._created.meta.get(SUBAGENT_OF)

    def restore_directories(self) -> None:
        """Set the roots that the session was made with: the client that opens it does not set it up."""
        self.additional_directories = self._created.additional_directories

    # --- clients -----------------------------------------------------------------------------------

    def clients(self) -> list[ClientConnection]:
        """Return the clients attached to this session now, the oldest first."""
        return self._clients.all()

    def askable(self) -> list[ClientConnection]:
        """Return the clients that the agent of the session may ask (`SessionClients.askable`)."""
        return self._clients.askable()

    @property
    def askable_ids(self) -> Collection[str]:
        return {client.client_id for client in self.askable()}

    def attached(self) -> list[AttachmentWriter]:
        """Return the attachments of the session."""
        return self._clients.attached()

    def mcp_provider(self, server_id: str) -> ClientConnection | None:
        """Return the client that provides an MCP server.

        Of several that declared its id, the token that was first has it, so that no client replaces another.
        Of that token's connections the last is asked, as the others may be about to be found dead.
        """
        found = [
            (at, client)
            for client in self.askable()
            if (at := client.mcp.declared(self.id, server_id)) is not None
        ]
        if not found:
            return None
        _, first = min(found, key=lambda each: each[0])
        same = [client for _, client in found if client.policy.credential == first.policy.credential]
        return max(same, key=lambda client: client.serial)

    def notify_clients(self, method: str, params: Any) -> None:
        """Send a notification to every client of the session: after all events so far, and before all later
        ones (PROXY-07). A slow client delays no other."""
        seq = self.fold.last_seq
        for voice in self.attached():
            voice.notify_at(seq, method, params)
        if self.start is not None:  # the client that begins the session is about to follow it
            self.start.note(seq, method, params)

    # --- events and the end ------------------------------------------------------------------------

    def emit(self, bodies: Sequence[AnyBody]) -> None:
        """Commit events, and publish them."""
        self.live.emit(bodies)
        changed = [body for body in bodies if isinstance(body, QuestionOpened | QuestionClosed)]
        if changed:
            for body in changed:
                if isinstance(body, QuestionClosed):
                    self.questions.close(body)
            self.worker.questions_changed(changed)

    async def close(self) -> None:
        """End what is at work, wait for its last updates, and close."""
        await self.worker.close()
        await self.tasks.aclose()
        self.emit(self.fold.close())
        await self.live.durable()

    async def stop(self) -> None:
        """End what is at work, as interrupted: the session is put away."""
        await self.worker.stop()
        await self.tasks.aclose()
