"""One session of a v1 agent as v2: takes what the agent sends, returns the v2 updates that mean the same.

An `Upgrade` belongs to one session of one agent. v1 has no state and no user messages, so both are made here:
a turn opens with a prompt and ends with its response (24.3). Nothing else opens one: what a v1 agent sends
outside a turn, message chunks too, leaves the state unchanged (24.3, PROMPT-V2-28), because v1 does not mark
its end. For the same reason, what comes after the response belongs to the session.

It never raises for a valid v1 update; what v2 cannot express is in `losses`. Parts that need memory have
their own modules, and are combined here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

import msgspec

from antiphon.bridge import losses
from antiphon.bridge.content import ContentUp
from antiphon.bridge.losses import Ledger, Report
from antiphon.bridge.prompts import RequestId
from antiphon.bridge.proposed import normalize, normalize_state
from antiphon.bridge.upgrade.configuration import Configuration
from antiphon.bridge.upgrade.echoes import Echoes
from antiphon.bridge.upgrade.facts import Facts, plan, plan_removed, plan_update
from antiphon.bridge.upgrade.messages import Chunk, Messages
from antiphon.bridge.upgrade.tools import Tools
from antiphon.bridge.upgrade.turns import Turns
from antiphon.engine.transcript import MessageType
from antiphon.errors import ErrorObject
from antiphon.schema import v1, v2
from antiphon.schema.repair import Malformed, repair
from antiphon.schema.updates import TextChunk
from antiphon.schema.v1 import optins
from antiphon.schema.version import OptIns
from antiphon.schema.wire import Unknown

_CHUNKS: dict[str, type[Chunk]] = {
    "user_message_chunk": v1.UserMessageChunk,
    "agent_message_chunk": v1.AgentMessageChunk,
    "agent_thought_chunk": v1.AgentThoughtChunk,
}
_BLOCKS = frozenset(member.__struct_config__.tag for member in get_args(v1.ContentBlock))
_V2_TAGS = frozenset(member.__struct_config__.tag for member in get_args(v2.SessionUpdate))


class Upgrade:
    """The state machine between a v1 agent and its v2 client."""

    def __init__(self, opt_ins: OptIns | None = None, *, report: Report | None = None) -> None:
        """`opt_ins` are those that the agent confirmed: under the future flag it reports the turn itself."""
        self.opt_ins = opt_ins or OptIns()
        self.ledger = Ledger(report)
        content = ContentUp(self.ledger)
        self.configuration = Configuration(self.ledger)
        self.messages = Messages(content)
        self._echoes = Echoes()
        self.tools = Tools(content, self.ledger)
        self._turns = Turns(self.ledger, running=self.tools.running)
        self._compactions: set[str] = set()
        facts = Facts(content, self.ledger)
        self._handlers: dict[type, Callable[[Any], Sequence[v2.SessionUpdate]]] = {
            v1.UserMessageChunk: self._user_chunk,
            v1.AgentMessageChunk: self.messages.chunk,
            v1.AgentThoughtChunk: self.messages.chunk,
            v1.ToolCall: self._tool_call,
            v1.SessionToolCallUpdate: self._tool_call_update,
            v1.Plan: lambda update: self._placed(plan(update)),
            v1.PlanUpdate: lambda update: self._placed(plan_update(update)),
            v1.PlanRemoved: lambda update: [plan_removed(update)],
            v1.AvailableCommandsUpdate: lambda update: [self.configuration.commands(update)],
            v1.CurrentModeUpdate: self.configuration.mode_update,
            v1.ConfigOptionUpdate: self.configuration.option_update,
            v1.SessionInfoUpdate: lambda update: [facts.info(update)],
            v1.UsageUpdate: lambda update: [facts.usage(update)],
            v1.Notice: lambda update: [facts.notice(update)],
            v1.CompactionUpdate: lambda update: self._compaction(facts.compaction(update)),
            v1.CompactionSummaryChunk: lambda chunk: self._compaction(facts.compaction_chunk(chunk)),
            v1.SubagentUpdate: lambda update: [facts.subagent(update)],
            v1.SessionMessage: lambda update: [facts.session_message(update)],
            v1.SessionMessageChunk: lambda chunk: [facts.session_message_chunk(chunk)],
            optins.TurnComplete: self._turn_complete,
            optins.MessageUpdate: self.messages.changed,
            optins.UserMessage: lambda update: [self.messages.user_message(update)],
            optins.SessionStateUpdate: self._state_update,
            Unknown: self._unknown,
        }

    # Updates of the agent

    def update(self, update: v1.SessionUpdate) -> Sequence[v2.SessionUpdate]:
        released = self.release(update)
        upgraded = self._handlers[type(update)](update)
        return [*released, *upgraded] if released else upgraded

    def name_text(self, chunks: Sequence[TextChunk]) -> bool:
        """Set the message id of each plain text; return `False` if each has to be upgraded by itself."""
        if self.messages.replaying or not self._echoes.over:
            return False
        self.messages.name_text(chunks)
        return True

    def release(self, update: v1.SessionUpdate | None = None) -> Sequence[v2.SessionUpdate]:
        """Return the updates that were held as a possible echo of a prompt and are none, before another
        update is upgraded or a prompt is answered."""
        chunks = self._echoes.release(update)
        return [upgraded for chunk in chunks for upgraded in self.messages.chunk(chunk)] if chunks else ()

    def subject(self, call: v1.ToolCallUpdate) -> v2.ToolCallUpdate:
        """Return the tool call of a permission request, which is often the first update of it
        (PERM-V2-03)."""
        if call.tool_call_id not in self.tools:
            self.messages.cut()
        return self.tools.subject(call)

    # The turn

    def prompted(
        self,
        request_id: RequestId,
        content: Sequence[v2.ContentBlock],
        *,
        message_id: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> list[v2.SessionUpdate]:
        """Our prompt was sent to the agent, which counts as its insertion: v1 has no other (24.3).

        The message gets a new id unless one is given. Under the future flag the agent reports everything.
        """
        if self.opt_ins.prompt_lifecycle:
            return []
        self._echoes.sent(request_id, content)
        message = self.messages.prompted(list(content), message_id, meta)
        if not self._turns.open:
            self.tools.stop()
        return [message, *self._turns.prompted(request_id, message.message_id)]

    def cancelled(self) -> None:
        """`session/cancel` was sent: however they end, our open prompts are cancelled (PROMPT-V2-35)."""
        self._turns.cancelled()

    def responded(
        self, request_id: RequestId, result: v1.PromptResponse | optins.PromptAccepted
    ) -> Sequence[v2.SessionUpdate]:
        """A prompt of ours was answered. The turn ends with the last of those that are open (24.3)."""
        if isinstance(result, optins.PromptAccepted):
            return []
        self.messages.cut()
        self._echoes.ended(request_id)
        return self._turns.responded(request_id, result)

    def failed(self, request_id: RequestId, error: ErrorObject) -> Sequence[v2.SessionUpdate]:
        """A prompt of ours was answered with an error: it stays inserted, and its turn has failed."""
        self.messages.cut()
        self._echoes.ended(request_id)
        return self._turns.failed(request_id, error)

    def interrupted(self) -> Sequence[v2.SessionUpdate]:
        """The agent is gone: the open turn, if one is, was cut short."""
        self.messages.cut()
        self._echoes = Echoes()
        return self._turns.interrupted()

    def asked(self, question: str, call: str) -> Sequence[v2.SessionUpdate]:
        """A permission for this tool call was requested; the caller names the question.

        For a caller that folds these updates. A session that holds questions itself reports their state
        itself.
        """
        return self._turns.asked(question, call)

    def answered(self, question: str) -> Sequence[v2.SessionUpdate]:
        """The answer was sent to the agent, or the question was retracted."""
        return self._turns.answered(question)

    # The session, opened again

    def reopening(self) -> None:
        """Load or resume was sent: what the agent sends until it answers is a replay from the start.

        This holds for a resume too: an agent that cannot resume is loaded, and some agents replay on resume.
        The caller drops those updates then.
        """
        self.messages.restart()
        self.messages.replaying = True
        self.tools.restart()
        self._compactions.clear()

    def reopened(
        self, result: v1.LoadSessionResponse | v1.ResumeSessionResponse
    ) -> tuple[v2.ResumeSessionResponse, Sequence[v2.SessionUpdate]]:
        """Return the answer as v2 has it, and the state, which precedes it (SESS-21)."""
        self.messages.replaying = False
        self.messages.cut()
        return self.configuration.reopened(result), [v2.SessionStateUpdate(state=self._turns.state)]

    def holds(self, messages: Iterable[tuple[MessageType, str]]) -> None:
        """Note the messages of the session, in their order, so that new ids differ from theirs.

        For a session that outlived its agent's process, or this one.
        """
        self.messages.hold(messages)

    # How it is done

    def _user_chunk(self, chunk: v1.UserMessageChunk) -> Sequence[v2.SessionUpdate]:
        if not self.messages.replaying and self._echoes.take(chunk):
            return ()
        return self.messages.chunk(chunk)

    def _placed(self, upgraded: v2.SessionUpdate) -> list[v2.SessionUpdate]:
        """Return an update that takes a place in the conversation, which ends the message before it
        (MSG-05)."""
        self.messages.cut()
        return [upgraded]

    def _tool_call(self, call: v1.ToolCall) -> list[v2.SessionUpdate]:
        return [*self._placed(self.tools.create(call)), *self._turns.update_state()]

    def _tool_call_update(self, update: v1.SessionToolCallUpdate) -> list[v2.SessionUpdate]:
        if update.tool_call_id in self.tools:
            self.messages.worked()
        else:
            self.messages.cut()
        return [self.tools.update(update), *self._turns.update_state()]

    def _compaction(self, update: v2.CompactionUpdate | v2.CompactionSummaryChunk) -> list[v2.SessionUpdate]:
        if update.compaction_id not in self._compactions:  # COMP-03
            self._compactions.add(update.compaction_id)
            self.messages.cut()
        return [update]

    def _turn_complete(self, update: optins.TurnComplete) -> Sequence[v2.SessionUpdate]:
        self.messages.cut()
        return self._turns.completed(update)

    def _state_update(self, update: optins.SessionStateUpdate) -> list[v2.SessionUpdate]:
        upgraded: v2.SessionStateUpdate = repair(2).build(v2.SessionStateUpdate, msgspec.to_builtins(update))
        return [self._note_state(normalize_state(upgraded))]  # SD-02

    def _note_state(self, update: v2.SessionStateUpdate) -> v2.SessionStateUpdate:
        """Note a state that the agent reports itself."""
        self._turns.state = update.state
        if update.state is v2.State.IDLE:
            self.messages.cut()
        return update

    def _unknown(self, update: Unknown) -> list[v2.SessionUpdate]:
        """Keep an unknown update whole (EXT-09). If v2 knows its tag, it has to be valid in v2, or it could
        not be read back from the journal."""
        if update.get("sessionUpdate") not in _V2_TAGS:
            return [update]
        chunk = _odd_chunk(update)
        if chunk is not None:
            return [*self.messages.chunk(chunk)]
        try:
            known: v2.SessionUpdate = repair(2).build(v2.SessionUpdate, dict(update))
        except Malformed:
            self.ledger.lose(losses.UNREADABLE_UPDATE, update)
            return []
        upgraded = normalize(known)
        match upgraded:
            case v2.SessionStateUpdate():
                self._note_state(upgraded)
            case v2.AgentMessage() | v2.AgentThought():
                self.messages.whole(upgraded)
            case v2.ToolCallContentChunk():
                if upgraded.tool_call_id not in self.tools:
                    self.messages.cut()
                    self.tools.see(upgraded.tool_call_id)
        return [upgraded]


def _odd_chunk(update: Unknown) -> Chunk | None:
    """Return a message chunk whose content is of a type that v1 does not have, but v2 can hold; `None` for
    anything else."""
    made, content = _CHUNKS.get(str(update.get("sessionUpdate"))), update.get("content")
    id, meta = update.get("messageId"), update.get("_meta")
    if made is None or not isinstance(content, dict) or not isinstance(content.get("type"), str):
        return None
    if content["type"] in _BLOCKS or not isinstance(id, str | None) or not isinstance(meta, dict | None):
        return None
    odd: Any = Unknown(content)
    return made(content=odd, message_id=None if id is None else v1.MessageId(id), meta=meta)
