"""One session, written in the dialect of each connection.

A writer belongs to an attachment: it writes v2 updates in the client's dialect, and knows how prompts are
answered and questions asked. An update comes typed and as its original bytes; wherever the dialect allows,
those bytes are sent unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, structs

from antiphon.bridge.downgrade.session import Downgrade
from antiphon.bridge.losses import Report
from antiphon.bridge.prompts import Answer, RequestId, Taken, end_v1, refuse_v1
from antiphon.bridge.proposed import as_proposed
from antiphon.bridge.questions import Asked, Elicited, ask_as_written, ask_v1, elicit_v1
from antiphon.engine.items import OURS
from antiphon.engine.transcript import TYPE_OF, WHOLE, is_deletion
from antiphon.errors import ErrorObject
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.messages import MessageDeletedUpdate, MessageRole
from antiphon.schema.v1.optins import PromptAccepted, TurnComplete
from antiphon.schema.v2.proposed import PromptTaken
from antiphon.schema.version import META_KEY, Agreement, Dialect, OptIns
from antiphon.schema.wire import Unknown, Wire

MESSAGE_DELETED = "_antiphon_message_deleted"
"""The update after the one that empties a deleted message."""

Setup: TypeAlias = v2.NewSessionResponse | v2.ForkSessionResponse | v2.ResumeSessionResponse
Sent: TypeAlias = bytes | Answer
"""Something to send: the bytes of an update, or an answer."""

TOOL_CALL = "tool_call"
_encode = msgspec.json.Encoder().encode


class _Tagged(Wire, frozen=True, kw_only=True):
    session_update: str = ""


_tag = msgspec.json.Decoder(_Tagged).decode
_WHOLE = frozenset(WHOLE.values())


class Writer:
    """One session towards one client, in v2 as published: sessions are stored in it. Subclasses write other
    dialects."""

    dialect: Dialect = Dialect.V2
    recalls = False
    """Whether its output depends on what it has written before."""
    grows = True
    """Whether content can be appended to a tool call, and output to a terminal; v1 sends all of it again."""
    names_ends = False
    """Whether a separate update (`turn_complete`) reports the end of a turn, and states are not sent."""

    def __init__(self, *, extensions: Collection[str] = ()) -> None:
        self._extensions = frozenset(extensions)
        self._reports_deletions = MESSAGE_DELETED in self._extensions

    def write(self, update: v2.SessionUpdate, raw: bytes) -> Sequence[bytes]:
        """Return the updates to send for one update; `raw` is its encoding."""
        if self._reports_deletions and type(update) in _WHOLE:
            whole: Any = update
            return (raw, *self._deletion(whole, whole.message_id))
        return () if self._withheld(update) else (raw,)

    def write_translated(self, update: v2.SessionUpdate, raw: bytes, origin: bytes) -> Sequence[bytes]:
        """Write an update of a v1 agent, whose original bytes are kept as well."""
        return self.write(update, raw)

    def recall(self, update: v2.SessionUpdate, raw: bytes) -> None:
        """Take note of an update that the client has: later output may depend on it."""

    def passes(self, update: v2.SessionUpdate) -> bool:
        """Whether an update is sent as its original bytes, with nothing added. If so it counts as written.
        Except for message chunks, this depends on the type of the update alone."""
        if self._reports_deletions and type(update) in _WHOLE:
            return False
        return type(update) is not Unknown or not self._withheld(update)

    def flush(self) -> Sequence[bytes]:
        """Return the updates that were held back, when the client has caught up and the session is idle."""
        return ()

    def inserted(self, message_id: str, *, extra: dict[str, Any] | None = None) -> Taken | None:
        """Return the answer to this client's prompt at its insertion; `None` if it is answered at the end.
        `extra` goes into the `_meta` of the answer, under our own key.

        Call it before the message itself is written.
        """
        return v2.PromptResponse(message_id=v2.MessageId(message_id), meta=_ours(extra))

    def adopt(self, other: Writer) -> None:
        """Write to a client that `other` wrote to; every update since the cursor is written again."""

    def ended(self, idle: v2.StateUpdate, requests: Sequence[RequestId] = ()) -> list[Sent]:
        """Return what follows the updates of a turn at its end. `requests` are this client's inserted and
        unanswered prompts, oldest first."""
        return []  # TC-11: the idle state reports it

    def refused(self, request: RequestId, error: ErrorObject, *, cancelled: bool = False) -> list[Sent]:
        """Return the answer to a prompt that was never inserted; `cancelled` if the client's own cancel did
        that."""
        return [Answer(request, error)]

    def asked(
        self, request: v2.RequestPermissionRequest, *, question: str, origin: bytes | Raw | None = None
    ) -> Asked | None:
        """Return a permission question for this client, or `None` if it cannot be asked: then it is
        cancelled. `origin`: the params as a v1 agent wrote them."""
        return Asked(updates=(), params=request)

    def overheard(self, request: v2.RequestPermissionRequest) -> Sequence[bytes]:
        """Return the updates that a client needs because of a question that other clients are asked."""
        return ()

    def elicited(self, request: Elicited) -> v1.CreateElicitationRequest | v2.CreateElicitationRequest:
        """Return the params of an elicitation for this client."""
        return request

    def opened(self, result: Setup, *, loaded: bool = False) -> tuple[Wire, Sequence[bytes]]:
        """Return the result of new, fork, load or resume, and the updates that follow it."""
        return result, ()

    def configured(self, result: v2.SetSessionConfigOptionResponse) -> Wire:
        """Return the result of `session/set_config_option`."""
        return result

    def original_of(self, message_id: str) -> tuple[str, str] | None:
        """Return the role and the id of a message that this client knows by another id."""
        return None

    def _deletion(self, update: Any, known_as: str) -> Sequence[bytes]:
        """Return the update that reports a deleted message, for a client that asked for it."""
        if not self._reports_deletions or type(update) not in _WHOLE or not is_deletion(update):
            return ()
        role = MessageRole(TYPE_OF[type(update)])
        return (_encode(MessageDeletedUpdate(message_id=known_as, role=role)),)

    def _withheld(self, update: v2.SessionUpdate) -> bool:
        if type(update) is not Unknown:
            return False
        tag = str(update.get("sessionUpdate"))
        return tag.startswith(OURS) and tag not in self._extensions


class ProposedWriter(Writer):
    """v2 as first proposed: another spelling of the state, and `{}` as the answer to a prompt."""

    dialect = Dialect.V2_PROPOSED

    def __init__(self, *, names_prompts: bool = False, extensions: Collection[str] = ()) -> None:
        """`names_prompts`: the client asked for the ids of its prompts in the answers."""
        super().__init__(extensions=extensions)
        self._names_prompts = names_prompts

    def write(self, update: v2.SessionUpdate, raw: bytes) -> Sequence[bytes]:
        respelled = as_proposed(update)
        return super().write(update, raw) if respelled is None else (_encode(respelled),)

    def passes(self, update: v2.SessionUpdate) -> bool:
        return as_proposed(update) is None and super().passes(update)

    def inserted(self, message_id: str, *, extra: dict[str, Any] | None = None) -> Taken | None:
        # The user message may come among those of other clients: a client that asked for the id gets it here.
        named = {"messageId": message_id} if self._names_prompts or extra else {}
        return PromptTaken(meta=_ours({**named, **(extra or {})}))


class V1Writer(Writer):
    """v1, with the client's opt-ins."""

    dialect = Dialect.V1
    recalls = True
    grows = False

    def __init__(
        self,
        capabilities: v1.ClientCapabilities | None = None,
        opt_ins: OptIns | None = None,
        *,
        extensions: Collection[str] = (),
        report: Report | None = None,
    ) -> None:
        super().__init__(extensions=extensions)
        self.downgrade = Downgrade(capabilities, opt_ins, extensions=extensions, report=report)
        self._opt_ins = self.downgrade.opt_ins
        self.names_ends = self._opt_ins.turn_complete and not self._opt_ins.prompt_lifecycle
        self._passes = self.downgrade.passes

    def write(self, update: v2.SessionUpdate, raw: bytes) -> Sequence[bytes]:
        if self._passes(update):
            return (raw,)
        sent = _all(self.downgrade.apply(update))
        if self._reports_deletions and type(update) in _WHOLE:
            whole: Any = update
            known_as = self.downgrade.messages.known_as(TYPE_OF[type(whole)], whole.message_id)
            return [*sent, *self._deletion(whole, known_as)]
        return sent

    def original_of(self, message_id: str) -> tuple[str, str] | None:
        return self.downgrade.messages.original_of(message_id)

    def passes(self, update: v2.SessionUpdate) -> bool:
        return self._passes(update)

    def write_translated(self, update: v2.SessionUpdate, raw: bytes, origin: bytes) -> Sequence[bytes]:
        if not self.downgrade.takes(_tag(origin).session_update, update):
            return self.write(update, raw)
        self.recall(update, raw)
        return (origin,)

    def recall(self, update: v2.SessionUpdate, raw: bytes) -> None:
        with self.downgrade.ledger.muted():
            self.write(update, raw)

    def flush(self) -> Sequence[bytes]:
        return _all(self.downgrade.flush())

    def inserted(self, message_id: str, *, extra: dict[str, Any] | None = None) -> Taken | None:
        known_as = self.downgrade.messages.note_prompted(message_id)
        if self._opt_ins.prompt_lifecycle:
            return PromptAccepted(message_id=v1.MessageId(known_as), meta=_ours(extra))
        return None

    def adopt(self, other: Writer) -> None:
        if isinstance(other, V1Writer):
            self.downgrade.messages.adopt(other.downgrade.messages)

    def ended(self, idle: v2.StateUpdate, requests: Sequence[RequestId] = ()) -> list[Sent]:
        steps = end_v1(idle, requests, opt_ins=self._opt_ins, ledger=self.downgrade.ledger)
        return [*self.flush(), *map(_sent, steps)]

    def refused(self, request: RequestId, error: ErrorObject, *, cancelled: bool = False) -> list[Sent]:
        return [*map(_sent, refuse_v1(request, error, cancelled=cancelled, opt_ins=self._opt_ins))]

    def asked(
        self, request: v2.RequestPermissionRequest, *, question: str, origin: bytes | Raw | None = None
    ) -> Asked | None:
        downgraded = ask_v1(request, self.downgrade, question=question)
        written = None if origin is None or downgraded is None else ask_as_written(request, origin)
        if written is None or downgraded is None:
            return downgraded
        return structs.replace(written, updates=_announcements(downgraded.updates))

    def overheard(self, request: v2.RequestPermissionRequest) -> Sequence[bytes]:
        subject = request.subject
        if not isinstance(subject, v2.ToolCallPermissionSubject):
            return ()
        return _announcements(_all(self.downgrade.tools.update(subject.tool_call, untitled=request.title)))

    def elicited(self, request: Elicited) -> v1.CreateElicitationRequest | v2.CreateElicitationRequest:
        return elicit_v1(request, self.downgrade.ledger)

    def opened(self, result: Setup, *, loaded: bool = False) -> tuple[Wire, Sequence[bytes]]:
        configuration = self.downgrade.configuration
        later = _all(configuration.initial_commands(result.available_commands))
        if isinstance(result, v2.NewSessionResponse):
            return configuration.new_session(result), later
        if isinstance(result, v2.ForkSessionResponse):
            return configuration.fork_session(result), later
        if loaded:
            return configuration.load_session(result), later
        return configuration.resume_session(result), later

    def configured(self, result: v2.SetSessionConfigOptionResponse) -> Wire:
        return self.downgrade.configuration.set_config_option(result)


def writer(
    agreement: Agreement,
    *,
    capabilities: v1.ClientCapabilities | None = None,
    extensions: Collection[str] = (),
    report: Report | None = None,
) -> Writer:
    """Return the writer for an agreement; `capabilities` are those of a v1 client."""
    match agreement.dialect:
        case Dialect.V1:
            return V1Writer(capabilities, agreement.opt_ins, extensions=extensions, report=report)
        case Dialect.V2_PROPOSED:
            return ProposedWriter(names_prompts=agreement.extras.prompt_ids, extensions=extensions)
        case _:
            return Writer(extensions=extensions)


def _ours(said: dict[str, Any] | None) -> dict[str, Any] | None:
    return {META_KEY: said} if said else None


def _all(updates: Iterable[v1.SessionUpdate]) -> list[bytes]:
    return [_encode(update) for update in updates]


def _announcements(updates: Sequence[bytes]) -> list[bytes]:
    """Return the updates that announce a tool call. In v1 a call has to be announced before any other update
    of it, and a question may be the first to name it."""
    return [raw for raw in updates if _tag(raw).session_update == TOOL_CALL]


def _sent(step: TurnComplete | Answer) -> Sent:
    return step if isinstance(step, Answer) else _encode(step)
