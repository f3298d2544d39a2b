"""Link: one client's connection to an agent, from `initialize` to its end.

What the client asks is read into v2, done on the sessions of the agent, and answered in the client's dialect.
"""

from __future__ import annotations

import asyncio
import contextlib
import os.path
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from antiphon.agent import queueing
from antiphon.agent.session import AgentSession
from antiphon.bridge import requests as upward
from antiphon.bridge.dialects import writer
from antiphon.connection import Connection, Role
from antiphon.engine.events import Delivery
from antiphon.engine.prompt_states import PromptState
from antiphon.errors import InvalidParams, RequestError, ResourceNotFound
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.voice import Voice
from antiphon.schema import v1, v2
from antiphon.schema.version import EVERYTHING, META_KEY, V1, Agreement, Offer, OptIns
from antiphon.schema.wire import Unknown
from antiphon.transports.base import Transport

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent


LAST_UPDATES = 2.0
"""Seconds that a client gets to read the last updates of a session that is closed."""
ABLE = {
    "delivery": ["queue", "steer", "interrupt"],
    "inject": {"modes": ["queue", "steer"]},
    "replayAfter": True,
}
"""What our own part of the capabilities says to everyone."""


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
                "tool_call/cancel": _not_cancellable,
                "terminal/cancel": _not_cancellable,
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

    def follows(self, session_id: str) -> bool:
        return session_id in self._voices

    async def dismiss(self, session_id: str) -> None:
        """The session is over: its client gets the last of it, if it reads, and leaves."""
        voice = self._voices.get(session_id)
        if voice is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_UPDATES):
                    await voice.caught_up()  # SESS-40: the last updates come before the answer
            await self._leave(session_id)

    @property
    def _v1(self) -> bool:
        assert self.connection.agreement is not None
        return self.connection.agreement.version == V1

    # --- initialize --------------------------------------------------------------------------------

    async def _initialize(self, offer: Offer, params: Any) -> tuple[Agreement, Any]:
        able = OptIns(turn_complete=True, prompt_lifecycle=True, message_update=True)
        agreement = offer.agree(able, EVERYTHING)
        if offer.version == V1 and self._agent.turn_complete:
            agreement = replace(agreement, opt_ins=replace(agreement.opt_ins, turn_complete=True))
        accepts = self._agent.accepts
        info = {"name": self._agent.name, "version": self._agent.version}
        if offer.version != V1:
            return agreement, v2.InitializeResponse(
                protocol_version=v2.ProtocolVersion(2),
                info=v2.Implementation(name=info["name"], version=info["version"]),
                capabilities=v2.AgentCapabilities(
                    session=v2.SessionCapabilities(
                        prompt=_prompt_capabilities(accepts) if accepts else None,
                        additional_directories=v2.SessionAdditionalDirectoriesCapabilities(),
                        delete=v2.SessionDeleteCapabilities(),
                        mcp=v2.McpCapabilities(
                            stdio=v2.McpStdioCapabilities(), http=v2.McpHttpCapabilities()
                        ),
                    ),
                    meta={META_KEY: {**ABLE, **agreement.extras.to_meta()}},
                ),
                meta={META_KEY: {"dialect": "proposed"}} if offer.proposed else None,
            )
        self._v1_capabilities = params.client_capabilities or v1.ClientCapabilities()
        # TC-05: the marker stands exactly where the update will be sent.
        marker: Any = {} if agreement.opt_ins.turn_complete else None
        confirmed = agreement.opt_ins.to_meta() | agreement.extras.to_meta()
        return agreement, v1.InitializeResponse(
            protocol_version=v1.ProtocolVersion(1),
            agent_info=v1.Implementation(name=info["name"], version=info["version"]),
            agent_capabilities=v1.AgentCapabilities(
                load_session=True,
                prompt_capabilities=v1.PromptCapabilities(
                    image="image" in accepts,
                    audio="audio" in accepts,
                    embedded_context="embedded_context" in accepts,
                ),
                mcp_capabilities=v1.McpCapabilities(http=True),
                session_capabilities=v1.SessionCapabilities(
                    list=v1.SessionListCapabilities(),
                    delete=v1.SessionDeleteCapabilities(),
                    resume=v1.SessionResumeCapabilities(),
                    close=v1.SessionCloseCapabilities(),
                    additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
                    turn_complete=marker,
                ),
                meta={META_KEY: {**ABLE, **confirmed}},
            ),
        )

    # --- sessions ----------------------------------------------------------------------------------

    async def _new(self, params: Any, inbound: Inbound) -> Any:
        wanted: v2.NewSessionRequest = upward.new_session(params) if self._v1 else params
        _check_setup(wanted)
        session = await self._agent.create(wanted)
        voice = self._new_voice(session.id)
        voice.pin(session.live, session.heard)
        self._voices[session.id] = voice
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
        after = _after(params.replay_from)
        _check_setup(params)
        history = params.replay_from is not None and after is None
        voice = self._new_voice(params.session_id)
        session = await self._agent.open(params.session_id, voice=voice if history else None)
        if after is not None and after > session.fold.last_seq:
            raise InvalidParams("`replayFrom` names an event that is not there yet")
        await self._agent.set_up(session, params)
        before = self._voices.pop(session.id, None)
        if before is not None:
            await before.stop()
            voice.take_over(before)
        if not voice.pinned:
            voice.pin(session.live, session.heard, history=history, after=after)
        self._voices[session.id] = voice
        result, later = voice.writer.opened(v2.ResumeSessionResponse(), loaded=loaded)
        answered = asyncio.get_running_loop().create_future()

        def then() -> None:
            self.connection.answer(inbound, result)
            for raw in later:
                voice.say(raw)
            answered.set_result(None)

        # SESS-21: the state closes every resume; a v1 client has no word for it.
        voice.start(state=True, then=then)
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
        if session is None:
            return {}  # C-18: what is not there is closed
        if self._agent.others(self, session.id):
            await self._leave(session.id)  # the others go on
        else:
            await self._agent.close(session)
        return {}

    async def _delete(self, params: Any, inbound: Inbound) -> Any:
        session = self._agent.find(params.session_id)
        if session is not None:
            await self._agent.close(session)
        await self._agent.store.delete(params.session_id)
        return {}

    # --- prompts -----------------------------------------------------------------------------------

    async def _prompt(self, params: Any, inbound: Inbound) -> Any:
        voice, session = self._voice(params.session_id)
        wanted: v2.PromptRequest = upward.prompt(params) if self._v1 else params
        for block in wanted.prompt:
            if not isinstance(block, self._agent.accepted):
                kind = block.get("type") if isinstance(block, Unknown) else type(block).__struct_config__.tag
                raise InvalidParams(f"content of type {kind!r} is not accepted")  # PROMPT-V2-09, CONT-08
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
            await asyncio.shield(answered)
        except asyncio.CancelledError:
            if not inbound.cancelled:
                raise  # a lost connection withdraws nothing
            withdrawn = session.fold.prompts.withdraw(message_id)  # PROMPT-V2-33
            session.emit(withdrawn.events)
            if withdrawn.refusal is None:
                raise
            # Taken already, by a v1 client: its turn is cancelled, and answered as that (PROMPT-V1-14).
            session.cancel(message_id=message_id)
            await asyncio.shield(answered)
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

    def _new_voice(self, session_id: str) -> Voice:
        agreement = self.connection.agreement
        assert agreement is not None
        speaks = writer(agreement, capabilities=self._v1_capabilities)
        return Voice(session_id, self.connection, speaks, extras=agreement.extras)

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


def _prompt_capabilities(accepts: frozenset[str]) -> v2.PromptCapabilities:
    return v2.PromptCapabilities(
        image=v2.PromptImageCapabilities() if "image" in accepts else None,
        audio=v2.PromptAudioCapabilities() if "audio" in accepts else None,
        embedded_context=v2.PromptEmbeddedContextCapabilities() if "embedded_context" in accepts else None,
    )


async def _not_cancellable(params: Any, inbound: Inbound) -> Any:
    """TOOL-V2-14, TERMV2-11: nothing offers it, so asking is the client's mistake, not a missing method."""
    raise InvalidParams("this cannot be cancelled")


def _check_setup(params: v2.NewSessionRequest | v2.ResumeSessionRequest) -> None:
    _absolute(params.cwd, *params.additional_directories)
    if params.system_prompt is not None:
        raise InvalidParams("a system prompt is not supported")  # SESS-58
    names = [getattr(server, "name", None) for server in params.mcp_servers]
    for server in params.mcp_servers:
        if not isinstance(server, v2.McpServerStdio | v2.McpServerHttp):
            raise InvalidParams("an MCP server of an unsupported type")  # MCPCFG-05
    if len(set(names)) != len(names):
        raise InvalidParams("two MCP servers of one name")  # MCPCFG-06


def _absolute(*paths: str) -> None:
    """RPC-43: paths are absolute, and native to the machine the agent runs on."""
    for path in paths:
        if not os.path.isabs(path):
            raise InvalidParams(f"{path!r} is not an absolute path")


def _after(replay_from: v2.ReplayFrom | None) -> int | None:
    """The number that our own `_antiphon_after` names; `None` for the start."""
    if not isinstance(replay_from, Unknown):
        return None
    seq = replay_from.get("seq")
    if replay_from.get("type") != "_antiphon_after":
        raise InvalidParams("`replayFrom` is of an unknown type")  # SESS-19
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        raise InvalidParams("`replayFrom.seq` is the number of an event")
    return seq


def _delivery(asked: object) -> Delivery | None:
    try:
        return None if asked is None else Delivery(str(asked))
    except ValueError:
        raise InvalidParams(f"{asked!r} is no way to deliver a prompt") from None


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")
