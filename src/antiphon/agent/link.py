"""Link: one client's connection to an agent, from `initialize` to its end.

What the client asks is read into v2, done on the sessions of the agent, and answered in the client's dialect.
"""

from __future__ import annotations

import asyncio
import os.path
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from antiphon.agent import queueing
from antiphon.agent.session import AgentSession
from antiphon.bridge import requests as upward
from antiphon.bridge.dialects import Writer, writer
from antiphon.connection import Connection, Role
from antiphon.engine.events import Delivery
from antiphon.engine.prompt_states import PromptState
from antiphon.errors import InvalidParams, RequestError, ResourceNotFound
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.voice import Voice
from antiphon.schema import v1, v2
from antiphon.schema.version import META_KEY, V1, Agreement, Offer, OptIns
from antiphon.schema.wire import Unknown
from antiphon.transports.base import Transport

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent


QUEUE = {"delivery": ["queue", "steer", "interrupt"], "inject": {"modes": ["queue", "steer"]}}
"""What our own part of the capabilities says of the queue."""


class Link:
    def __init__(self, agent: Agent, transport: Transport) -> None:
        self._agent = agent
        self._voices: dict[str, Voice] = {}
        self._v1_capabilities: v1.ClientCapabilities | None = None
        self.connection = Connection(
            transport,
            role=Role.AGENT,
            on_initialize=self._initialize,
            requests={
                "session/new": self._new,
                "session/load": self._load,
                "session/resume": self._resume,
                "session/list": self._list,
                "session/close": self._close,
                "session/delete": self._delete,
                "session/prompt": self._prompt,
                **queueing.handlers(lambda session_id: self._voice(session_id)[1]),
            },
            notifications={"session/cancel": self._cancel},
        )

    async def run(self) -> None:
        """Serve the client until it is gone; its sessions stay."""
        async with self.connection:
            try:
                await self.connection.wait_closed()
            finally:
                await self._leave(*self._voices)

    @property
    def _v1(self) -> bool:
        assert self.connection.agreement is not None
        return self.connection.agreement.version == V1

    # --- initialize --------------------------------------------------------------------------------

    async def _initialize(self, offer: Offer, params: Any) -> tuple[Agreement, Any]:
        able = OptIns(turn_complete=True, prompt_lifecycle=True, message_update=True)
        agreement = offer.agree(able)
        if offer.version == V1 and self._agent.turn_complete:
            agreement = replace(agreement, opt_ins=replace(agreement.opt_ins, turn_complete=True))
        info = {"name": self._agent.name, "version": self._agent.version}
        if offer.version != V1:
            return agreement, v2.InitializeResponse(
                protocol_version=v2.ProtocolVersion(2),
                info=v2.Implementation(name=info["name"], version=info["version"]),
                capabilities=v2.AgentCapabilities(
                    session=v2.SessionCapabilities(
                        delete=v2.SessionDeleteCapabilities(),
                        mcp=v2.McpCapabilities(
                            stdio=v2.McpStdioCapabilities(), http=v2.McpHttpCapabilities()
                        ),
                    ),
                    meta={META_KEY: QUEUE},
                ),
                meta={META_KEY: {"dialect": "proposed"}} if offer.proposed else None,
            )
        self._v1_capabilities = params.client_capabilities or v1.ClientCapabilities()
        # TC-05: the marker stands exactly where the update will be sent.
        marker: Any = {} if agreement.opt_ins.turn_complete else None
        confirmed = agreement.opt_ins.to_meta()
        return agreement, v1.InitializeResponse(
            protocol_version=v1.ProtocolVersion(1),
            agent_info=v1.Implementation(name=info["name"], version=info["version"]),
            agent_capabilities=v1.AgentCapabilities(
                load_session=True,
                mcp_capabilities=v1.McpCapabilities(http=True),
                session_capabilities=v1.SessionCapabilities(
                    list=v1.SessionListCapabilities(),
                    delete=v1.SessionDeleteCapabilities(),
                    resume=v1.SessionResumeCapabilities(),
                    close=v1.SessionCloseCapabilities(),
                    turn_complete=marker,
                ),
                meta={META_KEY: {**QUEUE, **confirmed}},
            ),
        )

    # --- sessions ----------------------------------------------------------------------------------

    async def _new(self, params: Any, inbound: Inbound) -> Any:
        wanted: v2.NewSessionRequest = upward.new_session(params) if self._v1 else params
        _absolute(wanted.cwd, *wanted.additional_directories)
        session = await self._agent.create(wanted)
        voice = self._attach(session)
        result, later = voice.writer.opened(v2.NewSessionResponse(session_id=v2.SessionId(session.id)))
        self.connection.answer(inbound, result)
        for raw in later:
            voice.say(raw)
        voice.start()
        self._agent.opened(session)
        return result

    async def _load(self, params: v1.LoadSessionRequest, inbound: Inbound) -> Any:
        return await self._reopen(upward.load_session(params), inbound, loaded=True)

    async def _resume(self, params: Any, inbound: Inbound) -> Any:
        return await self._reopen(
            upward.resume_session(params) if self._v1 else params, inbound, loaded=False
        )

    async def _reopen(self, params: v2.ResumeSessionRequest, inbound: Inbound, *, loaded: bool) -> Any:
        if isinstance(params.replay_from, Unknown):
            raise InvalidParams("`replayFrom` is of an unknown type")  # SESS-19
        _absolute(params.cwd, *params.additional_directories)
        session = await self._agent.open(params.session_id)
        before = self._voices.pop(session.id, None)
        if before is not None:
            await before.stop()
        voice = self._attach(session)
        if before is not None:
            voice.take_over(before)
        result, later = voice.writer.opened(v2.ResumeSessionResponse(), loaded=loaded)
        answered = asyncio.get_running_loop().create_future()

        def then() -> None:
            self.connection.answer(inbound, result)
            for raw in later:
                voice.say(raw)
            answered.set_result(None)

        # SESS-21: the state closes every resume; a v1 client has no word for it.
        voice.start(history=params.replay_from is not None, state=True, then=then)
        await answered
        return result

    async def _list(self, params: Any, inbound: Inbound) -> Any:
        listing = await self._agent.store.list(cwd=params.cwd, after=params.cursor)
        types: Any = v1 if self._v1 else v2
        sessions = [
            types.SessionInfo(
                session_id=record.session_id,
                cwd=record.cwd,
                additional_directories=list(record.additional_directories),
                title=record.title,
                updated_at=_time(record.updated_at),
            )
            for record in listing.records
        ]
        return types.ListSessionsResponse(sessions=sessions, next_cursor=listing.next)

    async def _close(self, params: Any, inbound: Inbound) -> Any:
        session = self._agent.find(params.session_id)
        voice = self._voices.get(params.session_id)
        if session is not None:
            await session.close()
            if voice is not None:
                await voice.caught_up()  # SESS-40: the last updates come before the answer
            await self._leave(params.session_id)
            await self._agent.release(session)
        return {}  # C-18: what is not there is closed

    async def _delete(self, params: Any, inbound: Inbound) -> Any:
        session = self._agent.find(params.session_id)
        if session is not None:
            await self._close(params, inbound)
        await self._agent.store.delete(params.session_id)
        return {}

    # --- prompts -----------------------------------------------------------------------------------

    async def _prompt(self, params: Any, inbound: Inbound) -> Any:
        voice, session = self._voice(params.session_id)
        wanted: v2.PromptRequest = upward.prompt(params) if self._v1 else params
        if any(isinstance(block, Unknown) for block in wanted.prompt):
            raise InvalidParams("a content block of an unknown type")  # PROMPT-V2-09, CONT-08
        ours = (wanted.meta or {}).get(META_KEY)
        ours = ours if isinstance(ours, dict) else {}
        delivery = _delivery(ours.get("delivery")) or self._agent.busy
        outcome = session.submit(wanted.prompt, delivery=delivery, operation_id=ours.get("operationId"))
        if outcome.refusal is not None or outcome.entry is None:
            refused = InvalidParams().to_wire() if outcome.refusal is None else outcome.refusal.to_wire()
            raise RequestError(refused.code, refused.message, data=refused.data)
        message_id = outcome.entry.message_id
        if outcome.repeated and outcome.entry.state is PromptState.ACCEPTED:
            inserted = voice.writer.inserted(message_id)
            if inserted is not None:
                return inserted
            turn = session.fold.turn
            if turn is None or message_id not in turn.prompts:
                return v1.PromptResponse(stop_reason=_v1_reason(session, message_id))
        answered = voice.prompted(message_id, inbound)
        session.advance()
        try:
            # The voice answers, at the place in the stream where the answer is true.
            await answered
        except asyncio.CancelledError:
            if inbound.cancelled:  # a lost connection withdraws nothing
                session.emit(session.fold.prompts.withdraw(message_id).events)  # PROMPT-V2-33
            raise
        return None

    def _cancel(self, params: Any) -> None:
        voice = self._voices.get(params.session_id)
        session = self._agent.find(params.session_id)
        if voice is None or session is None:
            return  # PROMPT-V2-43
        ours = (params.meta or {}).get(META_KEY)
        voice.cancelled = session.fold.turn is not None or bool(session.fold.queue)
        session.cancel(message_id=ours.get("messageId") if isinstance(ours, dict) else None)

    # --- attachments -------------------------------------------------------------------------------

    def _attach(self, session: AgentSession) -> Voice:
        voice = Voice(session.live, self.connection, self._writer(), heard=session.heard)
        self._voices[session.id] = voice
        return voice

    def _writer(self) -> Writer:
        assert self.connection.agreement is not None
        return writer(self.connection.agreement, capabilities=self._v1_capabilities)

    def _voice(self, session_id: str) -> tuple[Voice, AgentSession]:
        voice, session = self._voices.get(session_id), self._agent.find(session_id)
        if voice is None or session is None:
            # RPC-25, SESS-56: a session that was not opened here is not active here.
            raise ResourceNotFound("no such session is active here", data={"sessionId": session_id})
        return voice, session

    async def _leave(self, *session_ids: str) -> None:
        for session_id in session_ids:
            voice = self._voices.pop(session_id, None)
            if voice is not None:
                await voice.stop()


def _v1_reason(session: AgentSession, message_id: str) -> v1.StopReason:
    """How the turn of a prompt ended, as far as it is still known and v1 has a word for it."""
    last = session.fold.turns.last
    if last is None or message_id not in last.prompts or last.stop_reason is None:
        return v1.StopReason.END_TURN
    try:
        return v1.StopReason(last.stop_reason)
    except ValueError:
        return v1.StopReason.END_TURN


def _absolute(*paths: str) -> None:
    """RPC-43: paths are absolute, and native to the machine the agent runs on."""
    for path in paths:
        if not os.path.isabs(path):
            raise InvalidParams(f"{path!r} is not an absolute path")


def _delivery(asked: object) -> Delivery | None:
    try:
        return None if asked is None else Delivery(str(asked))
    except ValueError:
        raise InvalidParams(f"{asked!r} is no way to deliver a prompt") from None


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")
