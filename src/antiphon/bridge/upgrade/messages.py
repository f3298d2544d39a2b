"""Messages of a v1 agent as v2 has them: every one gets an id, and the same one again on replay (24.4, MSG).

v1 need not name messages. Then the only boundaries are those a reader can see (MSG-05): another type of
message, something else that takes its place in the conversation, the end of a turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from msgspec import UNSET, UnsetType

from antiphon.bridge.content import ContentUp
from antiphon.engine.transcript import WHOLE, MessageType
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.messages import MessageMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.updates import TextChunk
from antiphon.schema.v1 import optins
from antiphon.schema.version import META_KEY, ours_in, with_ours

Chunk: TypeAlias = v1.UserMessageChunk | v1.AgentMessageChunk | v1.AgentThoughtChunk
ChunkUp: TypeAlias = v2.UserMessageChunk | v2.AgentMessageChunk | v2.AgentThoughtChunk
WholeUp: TypeAlias = v2.UserMessage | v2.AgentMessage | v2.AgentThought
Lifted: TypeAlias = ChunkUp | WholeUp

PREFIX: Final = "b:"
"""How every id begins that is made here."""
_UP: dict[type, tuple[MessageType, type[ChunkUp]]] = {
    v1.UserMessageChunk: (MessageType.USER, v2.UserMessageChunk),
    v1.AgentMessageChunk: (MessageType.AGENT, v2.AgentMessageChunk),
    v1.AgentThoughtChunk: (MessageType.THOUGHT, v2.AgentThoughtChunk),
}
_CHUNK_UP: dict[MessageType, type[ChunkUp]] = dict(_UP.values())
_OF_MESSAGES: Final = ("sender", "about", "revision")
"""The keys in our entry of a chunk's `_meta` that concern its whole message."""
_Text = v1.TextContent
_KINDS: dict[str, type[v1.AgentMessageChunk | v1.AgentThoughtChunk]] = {
    "agent_message_chunk": v1.AgentMessageChunk,
    "agent_thought_chunk": v1.AgentThoughtChunk,
}


class Messages:
    """The messages of one session, as far as it takes to name them.

    A made id counts from the user's message before it: `b:agent:3.2` is the second agent message after the
    third user message, which itself is `b:user:3`. So a replay that cuts one turn differently from how it was
    live names the messages of all other turns the same.
    """

    __slots__ = (
        "_content", "_counts", "_id", "_kind", "_last", "_made", "_seen", "_taken", "_turn", "replaying",
    )  # fmt: skip

    def __init__(self, content: ContentUp) -> None:
        self._content = content
        self.replaying = False
        """Whether the messages that come now may be known already, so that each begins empty (SESS-23)."""
        self.restart()

    def restart(self) -> None:
        """The agent replays the conversation from its start."""
        self._turn = 0
        """How many user messages there were."""
        self._last: dict[type, str] = {}
        """The last message of the agent's since then, of each kind, whose id was made."""
        self._counts: Counter[MessageType] = Counter()
        self._seen: set[tuple[MessageType, str]] = set()
        """The messages that the agent named."""
        self._taken: set[str] = set()
        self.cut()

    def cut(self) -> None:
        """Something else follows the current message: a chunk without an id begins another one."""
        self._kind: type | None = None
        self._id = ""
        self._made = False

    def worked(self) -> None:
        """The agent updated an item that has its place already. That ends no message of the agent, which may
        be in the middle of a sentence, but the user's message is complete."""
        if self._kind is v1.UserMessageChunk:
            self.cut()

    def hold(self, messages: Iterable[tuple[MessageType, str]]) -> None:
        """Note the messages of the session, in their order: new ones follow them."""
        self.restart()
        for type, id in messages:
            self._named(type, id)

    def chunk(self, chunk: Chunk) -> list[Lifted]:
        kind = type(chunk)
        message, upgraded = _UP[kind]
        begun = False
        if chunk.message_id is not None:
            id: str = chunk.message_id
            if id != self._id or kind is not self._kind:
                begun = self._named(message, id)
                self._kind, self._id, self._made = kind, id, False
        elif kind is self._kind and self._made:
            id = self._id
        elif kind in self._last and _is_empty(chunk.content):
            # Some agents send usage in the `_meta` of an empty chunk after a tool call: it begins and ends no
            # message.
            id = self._last[kind]
        else:
            id, begun = self._make(message), True
            self._kind, self._id, self._made = kind, id, True
            if message is not MessageType.USER:
                self._last[kind] = id
        content = chunk.content
        made = upgraded(
            message_id=v2.MessageId(id),
            content=v2.TextContent(text=content.text, meta=content.meta)
            if type(content) is _Text and content.annotations is None
            else self._content.block(content),
            meta=chunk.meta,
        )
        if begun and self.replaying:
            return [WHOLE[message](message_id=v2.MessageId(id), content=[], meta=_signature(chunk)), made]
        if (begun or _names_revision(chunk)) and _signature(chunk) is not UNSET:
            return [WHOLE[message](message_id=v2.MessageId(id), meta=_signature(chunk)), made]
        return [made]

    def name_text(self, chunks: Sequence[TextChunk]) -> None:
        """Set the message id of each plain text, as `chunk` does; not for a replay."""
        for chunk in chunks:
            kind, named = _KINDS[chunk.session_update], chunk.message_id
            if kind is self._kind and (self._made if named is None else named == self._id):
                chunk.message_id = self._id  # most belongs to the message before it
            else:
                chunk.message_id = self.chunk(as_v1(chunk))[-1].message_id

    def prompted(
        self, content: list[v2.ContentBlock], id: str | None, meta: dict[str, Any] | None
    ) -> v2.UserMessage:
        """Return the user's own message, which v1 does not echo (PROMPT-V1-22)."""
        self.cut()
        if id is None:
            id = self._make(MessageType.USER)
        else:
            self._named(MessageType.USER, id)
        return v2.UserMessage(
            message_id=v2.MessageId(id), content=content, meta=UNSET if meta is None else meta
        )

    def user_message(self, update: optins.UserMessage) -> v2.UserMessage:
        """Return the user's message, which the agent sends under the future flag, as in v2."""
        content = update.content
        upgraded = v2.UserMessage(
            message_id=v2.MessageId(update.message_id),
            content=self._content.blocks(content) if isinstance(content, list) else content,
            meta=update.meta,
        )
        self.whole(upgraded)
        return upgraded

    def whole(self, update: WholeUp) -> None:
        """Note a message that the agent sent as in v2."""
        type = next(type for type, whole in WHOLE.items() if isinstance(update, whole))
        if self._named(type, update.message_id):
            self.cut()

    def changed(self, update: optins.MessageUpdate) -> list[Lifted]:
        """Return the updates for a message that is changed by its id. v1 does not name the type of the
        message, but its ids are unique (MSG-07); an agent of ours names it for a message that it has not sent
        before."""
        id, said = v2.MessageId(update.message_id), read_meta(MessageMeta, update.meta).role
        unseen = MessageType(said) if said in tuple(MessageType) else MessageType.AGENT
        type = next((type for type in MessageType if (type, id) in self._seen), unseen)
        if self._named(type, id):
            self.cut()
        meta: dict[str, Any] | UnsetType = UNSET if update.meta is None else _without_role(update.meta)
        given = update.content
        blocks = self._content.blocks(given if isinstance(given, list) else [given] if given else [])
        match update.update_type:
            case "append":
                patched = [] if meta is UNSET else [WHOLE[type](message_id=id, meta=meta)]
                return [*patched, *(_CHUNK_UP[type](message_id=id, content=block) for block in blocks)]
            case "delete":
                return [WHOLE[type](message_id=id, content=[], meta=with_ours(meta or None, deleted=True))]
            case "edit" if given is UNSET:
                return [WHOLE[type](message_id=id, meta=meta)]
        return [WHOLE[type](message_id=id, content=blocks, meta=meta)]

    def _named(self, type: MessageType, id: str) -> bool:
        """Note a message that the agent names; return whether it is new."""
        if (type, id) in self._seen:
            return False
        self._seen.add((type, id))
        if id.startswith(PREFIX):
            self._taken.add(id)
        self._count(type)
        return True

    def _make(self, type: MessageType) -> str:
        self._count(type)
        id = f"{PREFIX}{type}:{self._turn}"
        if type is not MessageType.USER:
            id = f"{id}.{self._counts[type]}"
        made, number = id, 1
        while made in self._taken:  # an agent that is a bridge itself may have named one so
            number += 1
            made = f"{id}~{number}"
        return made

    def _count(self, type: MessageType) -> None:
        if type is MessageType.USER:
            self._turn += 1
            self._counts.clear()
            self._last.clear()
        else:
            self._counts[type] += 1


def as_v1(chunk: TextChunk) -> v1.AgentMessageChunk | v1.AgentThoughtChunk:
    """Return a plain text chunk as v1 has it."""
    id = chunk.message_id
    return _KINDS[chunk.session_update](
        content=v1.TextContent(text=chunk.content.text), message_id=None if id is None else v1.MessageId(id)
    )


def _names_revision(chunk: Chunk) -> bool:
    """Whether a chunk makes another version of its message: an addition, or the undo of a deletion."""
    return "revision" in ours_in(chunk.meta)


def _signature(chunk: Chunk) -> dict[str, Any] | UnsetType:
    """Return the `_meta` of a chunk that concerns its whole message: the sender, the subject, the version."""
    said = ours_in(chunk.meta)
    kept = {key: said[key] for key in _OF_MESSAGES if isinstance(said.get(key), dict)}
    return {META_KEY: kept} if kept else UNSET


def _without_role(meta: dict[str, Any]) -> dict[str, Any]:
    """Return a `_meta` without the role of a message, which its type implies."""
    ours = {key: value for key, value in ours_in(meta).items() if key != "role"}
    return {**meta, META_KEY: ours} if META_KEY in meta else meta


def _is_empty(content: v1.ContentBlock) -> bool:
    return isinstance(content, _Text) and not content.text
