"""The turns of the good agent: how a prompt is inserted, the updates of its work, and how that ends.

Every method is one decision, so that a broken agent overrides one.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from typing import Any

from tests.conformance.good import mcp
from tests.conformance.good.peer import INTERNAL_ERROR, REQUEST_CANCELLED, Json, Peer
from tests.conformance.good.session import Prompt, Session, Store, Turn


class Turns(Peer):
    """A peer that works on prompts. `Worker` says what the work is."""

    sends_turn_complete = False

    def __init__(self, write: Callable[[Json], None], store: Store | None = None) -> None:
        super().__init__(write)
        self.store = Store() if store is None else store
        self.opened: dict[str, Session] = {}
        """The sessions that this connection created, loaded or resumed, and did not close."""

    # --- a turn begins ---

    def submit(self, prompt: Prompt) -> None:
        """Insert a prompt, or hold it while the session works (PROMPT-V2-32)."""
        if prompt.session.turn is None:
            self.begin_turn(prompt)
        else:
            self.hold(prompt)

    def hold(self, prompt: Prompt) -> None:
        prompt.session.held.append(prompt)

    def next_held(self, session: Session) -> Prompt:
        return session.held.pop(0)

    def begin_turn(self, prompt: Prompt) -> None:
        turn = prompt.session.turn = Turn(prompt)
        self.insert(turn)
        self.begin_work(turn)
        turn.work = self.spawn(self.attempt(turn))
        turn.supervisor = self.spawn(self.supervise(turn))

    def insert(self, turn: Turn) -> None:
        """Give the prompt an id and a position. v2 answers it now, and shows it (SD-07)."""
        id = self.next_message_id(turn.session)
        for block in turn.prompt.content:
            turn.session.add_block("user_message", id, block)
        turn.session.touch()
        self.store.save()
        if self.version == 2:
            self.answer_inserted(turn, id)
            self.show_prompt(turn, id)

    def answer_inserted(self, turn: Turn, id: str) -> None:
        self.answer(turn.prompt.request_id, {"messageId": id})  # PROMPT-V2-03

    def show_prompt(self, turn: Turn, id: str) -> None:
        self.send_message(turn.session, "user_message", id, turn.prompt.content)  # PROMPT-V2-04

    def begin_work(self, turn: Turn) -> None:
        self.state_update(turn.session, "running")  # PROMPT-V2-10

    async def attempt(self, turn: Turn) -> None:
        """Do the work, and remember its failure."""
        try:
            await self.work(turn)
        except Exception as failure:
            turn.failure = failure

    async def supervise(self, turn: Turn) -> None:
        """Wait for the work and end its turn, however the work ends."""
        assert turn.work is not None
        await asyncio.wait([turn.work])
        self.finish_tool_calls(turn)
        turn.session.turn = None
        self.end_turn(turn)
        turn.session.touch()
        self.store.save()
        if turn.session.held:
            self.begin_turn(self.next_held(turn.session))

    def work(self, turn: Turn) -> Coroutine[Any, Any, None]:
        """Return the work that a prompt asks for."""
        raise NotImplementedError

    # --- a turn ends ---

    def end_turn(self, turn: Turn) -> None:
        """End a turn once. Cancelled work was cancelled, whatever it raised (PROMPT-V1-15, PROMPT-V2-36)."""
        if turn.cancelled:
            self.end_cancelled(turn)
        elif turn.failure is not None:
            self.end_failed(turn)
        else:
            self.end_completed(turn)

    def end_completed(self, turn: Turn) -> None:
        self.report_end(turn, "end_turn")

    def end_cancelled(self, turn: Turn) -> None:
        self.report_end(turn, "cancelled")  # PROMPT-V1-14, PROMPT-V2-35

    def end_failed(self, turn: Turn) -> None:
        """v1 answers the prompt with an error; v2 answered it before (PROMPT-V1-18, PROMPT-V2-17)."""
        error = self.failure_error(turn)
        if self.version == 1:
            self.refuse(turn.prompt.request_id, error["code"], error["message"])
        else:
            self.state_update(turn.session, "idle", stopReason="error", error=error)

    def failure_error(self, turn: Turn) -> Json:
        return {"code": INTERNAL_ERROR, "message": "the work failed"}

    def report_end(self, turn: Turn, reason: str) -> None:
        if self.version == 1:
            self.answer_prompt(turn.prompt, reason)
        else:
            self.state_update(turn.session, "idle", stopReason=reason)

    def answer_prompt(self, prompt: Prompt, reason: str) -> None:
        """Answer a v1 prompt at the end of its turn."""
        if self.sends_turn_complete:
            self.turn_complete(prompt, reason)  # TC-08
        self.answer(prompt.request_id, {"stopReason": reason})

    def turn_complete(self, prompt: Prompt, reason: str) -> None:
        update = {"sessionUpdate": "turn_complete", "promptRequestId": self.printed_id(prompt)}
        self.send_update(prompt.session, update | {"stopReason": reason})

    def printed_id(self, prompt: Prompt) -> str:
        id = prompt.request_id
        return id if isinstance(id, str) else json.dumps(id)  # TC-04

    # --- cancelling ---

    def cancel_session(self, session: Session) -> None:
        """Cancel the foreground work and the held prompts; background work goes on (SD-17)."""
        self.cancel_held(session)
        if session.turn is not None:
            self.cancel_turn(session.turn)

    def cancel_held(self, session: Session) -> None:
        while session.held:
            self.drop_held(self.next_held(session))

    def drop_held(self, prompt: Prompt) -> None:
        """Answer a prompt that a cancel kept from being inserted: in v1 it is a turn of its own."""
        if self.version == 1:
            self.answer_prompt(prompt, "cancelled")
        else:
            self.refuse_cancelled(prompt)  # PROMPT-V2-34

    def refuse_cancelled(self, prompt: Prompt) -> None:
        self.refuse(prompt.request_id, REQUEST_CANCELLED, "the prompt was cancelled")

    def cancel_turn(self, turn: Turn) -> None:
        if not turn.cancelled and turn.work is not None:
            turn.cancelled = True
            turn.work.cancel()

    def finish_tool_calls(self, turn: Turn) -> None:
        """Give tool calls that were cut short a final status. v1 has none for cancelled ones."""
        for id in turn.session.unfinished_calls():
            self.update_tool_call(turn.session, id, status="failed" if self.version == 1 else "cancelled")

    async def stop(self, session: Session) -> None:
        """Cancel all work of a session, that in the background too, and wait for its last updates."""
        self.cancel_session(session)
        self.stop_background(session)
        ending = [*session.background.values(), *self.disconnect_servers(session)]
        if session.turn is not None and session.turn.supervisor is not None:
            ending.append(session.turn.supervisor)
        if ending:
            await asyncio.wait(ending)

    def stop_background(self, session: Session) -> None:
        for work in session.watched.values():
            work.cancel()  # SESS-39

    def connect_servers(self, session: Session, servers: list[Json]) -> None:
        """Connect to all MCP servers, and to none of an earlier request (MCPCFG-10, SESS-28)."""
        self.disconnect_servers(session)
        session.servers = [self.spawn(mcp.connect(server, session.cwd)) for server in servers]

    def disconnect_servers(self, session: Session) -> list[asyncio.Task[None]]:
        for server in session.servers:
            if not server.cancelling():
                server.cancel()
        return session.servers

    # --- updates ---

    def send_update(self, session: Session, update: Json) -> None:
        """Send one update. Every update passes here."""
        self.notify("session/update", {"sessionId": session.id, "update": update})

    def state_update(self, session: Session, state: str, **fields: Any) -> None:
        """Report the state of a session, which v1 does not know (SD-19)."""
        session.state = state
        if self.version == 2:
            update = {"sessionUpdate": "state_update", "state": state, **fields}
            self.send_update(session, update | self.background(session))

    def background(self, session: Session) -> Json:
        """Return the background work, which is on every state update (PROMPT-V2-45)."""
        return {"background": [{"type": "tool_call", "toolCallId": id} for id in session.background]}

    def next_message_id(self, session: Session) -> str:
        return f"msg_{os.urandom(8).hex()}"

    def next_tool_call_id(self, session: Session) -> str:
        return f"call_{os.urandom(8).hex()}"

    def send_message(self, session: Session, kind: str, id: str, content: list[Json]) -> None:
        """Send a whole message, which only v2 has."""
        self.send_update(session, {"sessionUpdate": kind, "messageId": id, "content": content})

    def send_chunk(self, session: Session, kind: str, id: str, block: Json) -> None:
        self.send_update(session, {"sessionUpdate": f"{kind}_chunk", "messageId": id, "content": block})

    async def stream(self, session: Session, kind: str, *texts: str) -> None:
        """Stream one message in chunks."""
        id = self.next_message_id(session)
        for text in texts:
            block = {"type": "text", "text": text}
            session.add_block(kind, id, block)
            self.send_chunk(session, kind, id, block)
            await asyncio.sleep(0)  # other sessions and the client's input have their turn

    async def say(self, turn: Turn, *texts: str) -> None:
        await self.stream(turn.session, "agent_message", *texts)

    async def think(self, turn: Turn, *texts: str) -> None:
        await self.stream(turn.session, "agent_thought", *texts)

    def new_tool_call(self, session: Session, title: str, kind: str, **fields: Any) -> str:
        """Report a tool call at once, as pending (PROMPT-V1-09)."""
        id = self.next_tool_call_id(session)
        call = session.put_call(id, {"title": title, "kind": kind, "status": "pending", **fields})
        self.create_tool_call(session, id, call)
        return id

    def create_tool_call(self, session: Session, id: str, call: Json) -> None:
        """Send a tool call whole: v1 has an update for that, v2 does not (TOOL-V2-01)."""
        self.send_tool_call(session, "tool_call" if self.version == 1 else "tool_call_update", id, call)

    def update_tool_call(self, session: Session, id: str, **fields: Any) -> None:
        """Send the changed fields of a tool call."""
        session.put_call(id, fields)
        self.send_tool_call(session, "tool_call_update", id, fields)

    def send_tool_call(self, session: Session, kind: str, id: str, fields: Json) -> None:
        if self.version == 1:
            fields = {key: value for key, value in fields.items() if key != "capabilities"}
            if fields.get("status") == "cancelled":
                fields["status"] = "failed"  # TOOL-V1-03
        self.send_update(session, {"sessionUpdate": kind, "toolCallId": id, **fields})

    def add_tool_output(self, session: Session, id: str, text: str) -> None:
        """Append to the content of a tool call: v2 sends the piece, v1 the whole."""
        item = {"type": "content", "content": {"type": "text", "text": text}}
        content = [*session.put_call(id, {}).get("content", []), item]
        if self.version == 1:
            self.update_tool_call(session, id, content=content)
        else:
            session.put_call(id, {"content": content})
            chunk = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": id, "content": item}
            self.send_update(session, chunk)

    def send_plan(self, session: Session, id: str, entries: list[Json]) -> None:
        session.put_plan(id, entries)
        if self.version == 1:
            update: Json = {"sessionUpdate": "plan", "entries": entries}
        else:
            plan = {"type": "items", "planId": id, "entries": entries}
            update = {"sessionUpdate": "plan_update", "plan": plan}
        self.send_update(session, update)

    def report_title(self, session: Session, text: str) -> None:
        if session.title is None:
            session.title = " ".join(text.split())[:40] or "Untitled"
            info = {"title": session.title, "updatedAt": session.updated_at}
            self.send_update(session, {"sessionUpdate": "session_info_update", **info})

    def report_usage(self, session: Session) -> None:
        used = sum(len(json.dumps(entry)) for entry in session.history)
        self.send_update(session, {"sessionUpdate": "usage_update", "used": used, "size": 200_000})
