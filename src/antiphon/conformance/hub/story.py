"""Stories: what a client was shown of a session, in a form that can be compared between clients.

Two correct clients may get a message in other chunks, so adjacent chunks of a message are joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum, auto

from msgspec import Struct

from antiphon.conformance.recording import RecordedFrame

SHOWN = 120
"""Characters of a story that a sentence shows."""
MESSAGES = ("agent_message", "agent_thought")


class Entry(Struct, frozen=True):
    """One step of a story: a part of a message, or a status of a tool call."""

    kind: str
    id: str
    text: str


class Difference(Enum):
    """How one story differs from another."""

    ORDER = auto()
    """The same words in another order."""
    WORDS = auto()
    """Something is missing, doubled or changed."""


def text_of(content: object) -> str:
    """Return the text of a content block or of a list of them."""
    blocks = content if isinstance(content, list) else [content]
    return "".join(
        block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
    )


def story(frames: Iterable[RecordedFrame]) -> list[Entry]:
    """Return what the agent said and did in the updates among the frames.

    Prompts are left out, because a v1 client is not shown its own, and so are states, which v1 does not have.
    """
    entries: list[Entry] = []
    for frame in frames:
        entry = _entry(frame)
        if entry is None:
            continue
        last = entries[-1] if entries else None
        if last is not None and (last.kind, last.id) == (entry.kind, entry.id):
            if entry.kind in MESSAGES:
                entries[-1] = Entry(entry.kind, entry.id, last.text + entry.text)
                continue
            if last == entry:  # a repeated status says nothing new
                continue
        entries.append(entry)
    return entries


def _entry(frame: RecordedFrame) -> Entry | None:
    kind, update = frame.update_kind or "", frame.update
    message = kind.removesuffix("_chunk")
    if message in MESSAGES:
        return Entry(message, str(update.get("messageId") or ""), text_of(update.get("content")))
    if kind in ("tool_call", "tool_call_update") and "status" in update:
        return Entry("tool_call", str(update.get("toolCallId")), str(update["status"]))
    return None


def message_texts(frames: Iterable[RecordedFrame]) -> dict[str, str]:
    """Return the text of each message of the agent by its id: updates replace it, chunks append to it."""
    texts: dict[str, str] = {}
    for frame in frames:
        kind, id = frame.update_kind or "", str(frame.update.get("messageId") or "")
        if kind == "agent_message" and "content" in frame.update:
            texts[id] = text_of(frame.update["content"])
        elif kind == "agent_message_chunk":
            texts[id] = texts.get(id, "") + text_of(frame.update.get("content"))
    return texts


def spoken(frames: Iterable[RecordedFrame]) -> list[Entry]:
    """Return what the agent said, as one entry without an id: the same for clients of every version."""
    words = "".join(entry.text for entry in story(frames) if entry.kind == "agent_message")
    return [Entry("agent_message", "", words)]


def difference(one: list[Entry], other: list[Entry]) -> Difference | None:
    """Compare two stories."""
    if one == other:
        return None
    return Difference.ORDER if _words(one) == _words(other) else Difference.WORDS


def _words(entries: list[Entry]) -> Counter[tuple[str, str, str]]:
    return Counter((entry.kind, entry.id, word) for entry in entries for word in entry.text.split())


def as_text(entries: list[Entry]) -> str:
    """Return a story as one line, for a sentence about it."""
    words = " ".join(" ".join(entry.text.split()) for entry in entries)
    return repr(words if len(words) <= SHOWN else f"{words[:SHOWN]}…")
