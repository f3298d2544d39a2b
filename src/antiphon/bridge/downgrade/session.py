"""One v2 session for one v1 client: takes v2 updates in order, returns the v1 updates to send.

A `Downgrade` belongs to an attachment. It never raises for a valid v2 update: what v1 cannot express is in
`losses`. Parts that need memory have their own modules, and are combined here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import UNSET

from antiphon.bridge import losses
from antiphon.bridge.content import ContentDown, recast, twin
from antiphon.bridge.downgrade.configuration import Configuration
from antiphon.bridge.downgrade.messages import Messages
from antiphon.bridge.downgrade.plans import Plans
from antiphon.bridge.downgrade.tools import Tools
from antiphon.bridge.losses import Ledger, Report, mark
from antiphon.bridge.proposed import normalize
from antiphon.engine.annotations import ANNOTATION_UPDATES
from antiphon.engine.content import patch_meta
from antiphon.schema import v1, v2
from antiphon.schema.v1 import optins
from antiphon.schema.v2.proposed import StateChange
from antiphon.schema.version import OptIns
from antiphon.schema.wire import Unknown

MadeChunk = v1.CompactionSummaryChunk | v1.SessionMessageChunk


class Downgrade:
    """The state machine between a v2 session and a v1 client."""

    def __init__(
        self,
        capabilities: v1.ClientCapabilities | None = None,
        opt_ins: OptIns | None = None,
        *,
        extensions: Collection[str] = (),
        report: Report | None = None,
    ) -> None:
        """`extensions` are the updates outside v1's closed set that the client asked for, by their tag."""
        capabilities = capabilities or v1.ClientCapabilities()
        session = capabilities.session or v1.ClientSessionCapabilities()
        options = session.config_options
        self.opt_ins = opt_ins or OptIns()
        self.ledger = Ledger(report)
        self.content = ContentDown(self.ledger)
        self.messages = Messages(self.content, self.ledger, self.opt_ins)
        self.passes: Final = self.messages.passes
        """Whether an update's bytes may be sent unchanged. If so it counts as applied; else apply it."""
        self.tools = Tools(self.content, self.ledger)
        self.configuration = Configuration(
            self.ledger, boolean=options is not None and options.boolean is not None
        )
        self._plans = Plans(self.ledger, several=capabilities.plan is not None)
        self._extensions = frozenset(extensions)
        self._notices = session.notices is not None
        plans = () if capabilities.plan is not None else ("plan_update", "plan_removed")
        notices = () if self._notices else ("notice",)
        compactions = () if session.compaction else ("compaction_update", "compaction_summary_chunk")
        self._unasked = frozenset((*plans, *notices, *compactions))
        """The updates that only a client gets that asked for them."""
        self._noticed = 0
        self._info_meta: dict[str, Any] = {}
        self._cost: v1.Cost | None = None
        self._handlers: dict[type, Callable[[Any], Sequence[v1.SessionUpdate]]] = {
            v2.UserMessageChunk: self.messages.chunk,
            v2.AgentMessageChunk: self.messages.chunk,
            v2.AgentThoughtChunk: self.messages.chunk,
            v2.UserMessage: self.messages.whole,
            v2.AgentMessage: self.messages.whole,
            v2.AgentThought: self.messages.whole,
            v2.SessionStateUpdate: self._state,
            StateChange: lambda update: self.apply(normalize(update)),
            v2.SessionToolCallUpdate: self.tools.update,
            v2.ToolCallContentChunk: self.tools.chunk,
            v2.TerminalUpdate: self.tools.terminal_update,
            v2.TerminalOutputChunk: self.tools.terminal_chunk,
            v2.PlanUpdate: self._plans.update,
            v2.PlanRemoved: self._plans.removed,
            v2.AvailableCommandsUpdate: self.configuration.commands,
            v2.ConfigOptionUpdate: self.configuration.options,
            v2.SessionInfoUpdate: self._info,
            v2.UsageUpdate: self._usage,
            v2.Notice: self._notice,
            v2.CompactionUpdate: self._compaction_update,
            v2.CompactionSummaryChunk: partial(self._chunk, v1.CompactionSummaryChunk),
            v2.SubagentUpdate: self._subagent,
            v2.SessionMessage: self._session_message,
            v2.SessionMessageChunk: partial(self._chunk, v1.SessionMessageChunk),
            Unknown: self._unknown,
        }
        if session.compaction is None:  # COMP-01
            for kind in (v2.CompactionUpdate, v2.CompactionSummaryChunk):
                self._handlers[kind] = self._drop_compaction
        if capabilities.subagents is None:
            for message in (v2.SubagentUpdate, v2.SessionMessage, v2.SessionMessageChunk):
                self._handlers[message] = self._drop_subagent

    def apply(self, update: v2.SessionUpdate) -> Sequence[v1.SessionUpdate]:
        """Return the v1 updates for one v2 update."""
        return self._handlers[type(update)](update)

    def takes(self, tag: str, upgraded: v2.SessionUpdate) -> bool:
        """Whether this client may get a v1 agent's update as it was written, instead of a downgraded one:
        updates that it did not ask for are downgraded."""
        if isinstance(upgraded, v2.ConfigOptionUpdate):
            return self.configuration.takes(upgraded.config_options)
        return tag not in self._unasked

    def flush(self) -> Sequence[v1.SessionUpdate]:
        """Return the updates that are held back to save bandwidth; every state update sends them too."""
        return self.tools.flush()

    def _drop_compaction(self, update: v2.SessionUpdate) -> list[v1.SessionUpdate]:
        self.ledger.lose(losses.COMPACTION, update)
        return []

    def _drop_subagent(self, update: v2.SessionUpdate) -> list[v1.SessionUpdate]:
        self.ledger.lose(losses.SUBAGENT, update)
        return []

    def _state(self, update: v2.SessionStateUpdate) -> list[v1.SessionUpdate]:
        sent: list[v1.SessionUpdate] = list(self.flush())
        if not self.opt_ins.prompt_lifecycle:
            self.ledger.lose(losses.STATE, update)
            return sent
        sent.append(
            optins.SessionStateUpdate(
                **_state_fields(update),
                background=None if update.background is None else msgspec.to_builtins(update.background),
            )
        )
        return sent

    def _info(self, update: v2.SessionInfoUpdate) -> list[v1.SessionUpdate]:
        self._info_meta = patch_meta(self._info_meta, update.meta)
        meta = UNSET if update.meta is UNSET else dict(self._info_meta)
        return [recast(update, v1.SessionInfoUpdate, meta=meta)]

    def _usage(self, update: v2.UsageUpdate) -> list[v1.SessionUpdate]:
        if update.cost is not UNSET:  # USAGE-04: v1 cannot say "as before"
            self._cost = None if update.cost is None else recast(update.cost, v1.Cost)
        return [recast(update, v1.UsageUpdate, cost=self._cost)]

    def _notice(self, notice: v2.Notice) -> Sequence[v1.SessionUpdate]:
        if self._notices:
            return [recast(notice, v1.Notice, severity=v1.NoticeSeverity(notice.severity))]
        self.ledger.lose(losses.NOTICE, notice)  # NOTE-01
        self._noticed += 1
        text = notice.title if not notice.description else f"{notice.title}\n\n{notice.description}"
        return self.messages.chunk(
            v2.AgentMessageChunk(
                message_id=v2.MessageId(f"b:notice:{self._noticed}"),
                content=v2.TextContent(text=text),
                meta=mark(notice.meta, notice),
            )
        )

    def _compaction_update(self, update: v2.CompactionUpdate) -> list[v1.SessionUpdate]:
        summary = self.content.blocks(update.summary) if isinstance(update.summary, list) else update.summary
        status = v1.CompactionStatus(update.status)
        return [recast(update, v1.CompactionUpdate, status=status, summary=summary)]

    def _chunk(self, made: type[MadeChunk], chunk: Any) -> list[v1.SessionUpdate]:
        return [recast(chunk, made, content=self.content.block(chunk.content))]

    def _subagent(self, update: v2.SubagentUpdate) -> list[v1.SessionUpdate]:
        fields = msgspec.structs.asdict(update)
        state = update.state
        if isinstance(state, v2.StateUpdate):
            if state.background is not None:
                self.ledger.lose(losses.SUBAGENT_STATE, update)
                fields["meta"] = mark(update.meta or None, {"state": state})
            fields["state"] = v1.StateUpdate(**_state_fields(state))
        elif isinstance(state, Unknown):
            self.ledger.lose(losses.SUBAGENT_STATE, update)
            fields["meta"] = mark(update.meta or None, {"state": state})
            fields["state"] = UNSET
        if isinstance(update.capabilities, v2.SubagentSessionCapabilities):
            fields["capabilities"] = twin(update.capabilities, v1)
        return [v1.SubagentUpdate(**fields)]

    def _session_message(self, update: v2.SessionMessage) -> list[v1.SessionUpdate]:
        content = self.content.blocks(update.content) if isinstance(update.content, list) else update.content
        return [recast(update, v1.SessionMessage, content=content)]

    def _unknown(self, update: Unknown) -> list[v1.SessionUpdate]:
        if update.get("sessionUpdate") in self._extensions:
            return [self._renamed(update) if update["sessionUpdate"] in ANNOTATION_UPDATES else update]
        self.ledger.lose(losses.UNKNOWN_UPDATE, update)  # EXT-10: v1's union is closed
        return []

    def _renamed(self, update: Unknown) -> Unknown:
        """Return an annotation with the id by which this client knows the message."""
        id = self.messages.known_as(update["role"], update["messageId"])
        return Unknown({**update, "messageId": id})


def _state_fields(state: v2.StateUpdate) -> dict[str, Any]:
    """Return the fields of a state that v1 has, as v1 has them."""
    return {
        "state": v1.State(state.state),
        "stop_reason": None if state.stop_reason is None else v1.IdleStopReason(state.stop_reason),
        "error": twin(state.error, v1),
        "usage": twin(state.usage, v1),
        "meta": state.meta,
    }
