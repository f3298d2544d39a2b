"""Echoes: user messages by which an agent repeats the prompt that it was sent.

v1 agents do not echo prompts (PROMPT-V1-22), but some do: with their own id or none, in one chunk or several,
and sometimes with other text around the prompt. The message of the prompt exists already, so its echo must
not become another message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from antiphon.engine.who import sender_in
from antiphon.schema import v1

Key = Any
"""Names a prompt: the id of its request."""


class MessageText(Struct, frozen=True):
    """The parts of a message by which it is recognized."""

    text: str
    kinds: frozenset[str]
    """The types of its blocks that are no text, by their names."""

    def repeats(self, other: MessageText) -> bool:
        """Whether this contains all of the other message."""
        return other.text in self.text if other.text else self.kinds == other.kinds

    def is_part_of(self, other: MessageText) -> bool:
        return self.text in other.text if self.text else bool(self.kinds & other.kinds)


def message_text(blocks: Sequence[Any]) -> MessageText:
    """Return what identifies these content blocks. White space is ignored, because agents reflow text."""
    texts = [text for block in blocks if isinstance(text := getattr(block, "text", None), str)]
    others = [type(block).__name__ for block in blocks if getattr(block, "text", None) is None]
    return MessageText("".join("".join(texts).split()), frozenset(others))


class Echoes:
    """The prompts of one session that are open, and the user message that comes just now.

    A message is held back until it is known whether it is an echo: when it has all of a prompt, or when
    something else comes.
    """

    __slots__ = ("_due", "_has_replied", "_held", "_id", "_is_echo")

    def __init__(self) -> None:
        self._due: dict[Key, MessageText] = {}
        self._held: list[v1.UserMessageChunk] = []
        self._id: str | None = None
        """The id of the message that comes just now, if the agent gave it one."""
        self._is_echo = False
        """Whether the message that comes just now is known to be an echo."""
        self._has_replied = False
        """Whether the agent has sent anything else since the last prompt."""

    @property
    def over(self) -> bool:
        """Whether the next update of the agent changes nothing here: it has sent something else, and nothing
        is held."""
        return self._has_replied and not self._held and not self._is_echo

    def sent(self, key: Key, content: Sequence[Any]) -> None:
        self._due[key] = message_text(content)
        self._has_replied = False

    def ended(self, key: Key) -> None:
        """The prompt was answered: later chunks are not its echo."""
        self._due.pop(key, None)

    def take(self, chunk: v1.UserMessageChunk) -> bool:
        """Whether a chunk is part of an echo, or may be: then it is dropped or held. Call `release` first."""
        if self._is_echo:
            return True
        if not self._due or sender_in(chunk.meta) is not None:
            return False  # a hub names the sender of a message, which is another client
        self._held.append(chunk)
        self._id = chunk.message_id
        text = message_text([held.content for held in self._held])
        for key, prompt in self._due.items():
            if text.repeats(prompt):
                del self._due[key]
                self._held.clear()
                self._is_echo = True
                return True
        return True

    def release(self, update: v1.SessionUpdate | None) -> Sequence[v1.UserMessageChunk]:
        """Return the held chunks that are no echo, before another update comes, or the end of a turn."""
        if not self._held and not self._is_echo:
            self._note(update)
            return ()
        if isinstance(update, v1.UserMessageChunk) and update.message_id == self._id:
            return ()  # the same message continues
        held, self._held = self._held, []
        self._is_echo = False
        text = message_text([each.content for each in held])
        part = not self._has_replied and any(text.is_part_of(prompt) for prompt in self._due.values())
        self._note(update)
        return () if part else held

    def _note(self, update: v1.SessionUpdate | None) -> None:
        if isinstance(update, v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.ToolCall):
            self._has_replied = True
