"""Entries of the transcript. Each makes its own lines, and keeps them until the entry or the page changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from antiphon.engine import Message, MessageType, Plan
from antiphon.transcripts import DELETED, annotation_lines, content_text, plan_entries
from antiphon.tui.text.markdown import MarkdownText, Page
from antiphon.tui.text.palette import Palette
from antiphon.tui.text.pictures import picture_lines
from antiphon.tui.text.plain import plain, plain_line


class Entry(ABC):
    """`key`: the key of the item in the fold, or a separate key for a note."""

    close = False
    """Whether there is no blank line between this entry and others of the kind."""
    folds = False

    def __init__(self, key: str) -> None:
        self.key = key
        self.folded = self.folds
        self._laid: tuple[Page, bool, list[Strip]] | None = None

    def stands_close(self, before: Entry | None) -> bool:
        """Return whether there is no blank line between the entry before and this one."""
        return before is not None and before.close and self.close

    def touch(self) -> None:
        """Drop the lines, because the entry has changed."""
        self._laid = None

    def lines(self, page: Page) -> list[Strip]:
        if self._laid is None or self._laid[0] != page or self._laid[1] != self.folded:
            self._laid = page, self.folded, self._lay(page)
        return self._laid[2]

    @property
    @abstractmethod
    def text(self) -> str:
        """The whole text, for copying and searching."""

    @abstractmethod
    def _lay(self, page: Page) -> list[Strip]: ...


class MessageEntry(Entry):
    """A message of the agent, or a prompt."""

    def __init__(self, key: str, message: Message, *, mine: bool, name: str = "") -> None:
        super().__init__(key)
        self.message = message
        self._mine = mine
        self._name = name
        self._prose = MarkdownText()
        self._shown = ""

    @property
    def text(self) -> str:
        return DELETED if self.message.deleted else content_text(self.message.content)

    def _read(self) -> MarkdownText:
        text = self.text
        if not text.startswith(self._shown):
            self._prose, self._shown = MarkdownText(), ""  # the message was replaced
        self._prose.write(text[len(self._shown) :])
        self._shown = text
        return self._prose

    def _said(self, page: Page) -> list[Strip]:
        """Return the content, or that it was deleted, and the reactions and notes."""
        soft = page.palette.soft
        deleted = self.message.deleted
        lines = page.text(DELETED, f"italic {soft}") if deleted else self._read().lines(page)
        if not deleted:
            lines = [*lines, *picture_lines(self.message.content, page)]
        given = annotation_lines(self.message)
        return [*lines, *(strip for line in given for strip in page.text(plain_line(line, limit=4200), soft))]

    def _lay(self, page: Page) -> list[Strip]:
        if self.message.type is not MessageType.USER:
            return self._said(page)
        palette = page.palette
        inner = page.narrower(3)
        lines = self._said(inner)
        if self._name:
            who = Text(self._name, f"bold {palette.accent if self._mine else palette.wait}", no_wrap=True)
            lines = [*inner.strips(who), *lines]
        bar = palette.accent if self._mine else palette.wait
        return [
            _block(line, page.width, bar, palette.tint if self._mine else palette.raised) for line in lines
        ]


def _block(line: Strip, width: int, bar: str, background: str) -> Strip:
    ground = Style(bgcolor=background)
    inner = line.crop(0, width - 3).extend_cell_length(width - 2).apply_style(Style())
    parts = [Segment(text, ground + style if style else ground) for text, style, _ in inner]
    return Strip([Segment("▌", Style(color=bar, bgcolor=background)), Segment(" ", ground), *parts], width)


class ThoughtEntry(MessageEntry):
    """A thought of the agent: one line until it is unfolded."""

    folds = True
    close = True

    def __init__(self, key: str, message: Message) -> None:
        super().__init__(key, message, mine=False)

    def _lay(self, page: Page) -> list[Strip]:
        palette = page.palette
        head = Text.assemble(
            ("▸ " if self.folded else "▾ ", palette.soft), ("Thought", f"italic {palette.soft}")
        )
        if self.folded:
            head.append("  " + plain_line(self.text[-2000:], limit=300), palette.line)
            head.stylize(f"italic {palette.soft}", 0)
            head.truncate(page.width, overflow="ellipsis")
            return page.strips(head)
        inner = page.narrower(2)
        return [
            *page.strips(head),
            *indented(self._read().lines(inner, style=f"italic {palette.soft}"), "  "),
        ]


class NoteEntry(Entry):
    """A note about the session: how a turn ended, or who answered a question."""

    close = True

    def __init__(self, key: str, words: str, *, tone: str = "soft") -> None:
        super().__init__(key)
        self._words = plain(words)
        self._tone = tone

    @property
    def text(self) -> str:
        return self._words

    def stands_close(self, before: Entry | None) -> bool:
        return before is not None and (before.close or before.key.startswith("tool/"))

    def _lay(self, page: Page) -> list[Strip]:
        colour = getattr(page.palette, self._tone)
        return indented(page.narrower(2).text(self._words, colour), "· ", "  ", colour)


def indented(lines: list[Strip], first: str, then: str | None = None, style: str = "") -> list[Strip]:
    """Return lines with a prefix."""
    then = first if then is None else then
    look = Style.parse(style) if style else Style()
    return [Strip([Segment(then if number else first, look), *line]) for number, line in enumerate(lines)]


# --- plans -------------------------------------------------------------------------------------

BOXES = {"completed": "✓", "in_progress": "▸", "cancelled": "⊘"}
MOST = 200


def steps(plan: Any) -> list[tuple[str, str]]:
    """Return status and text of each step."""
    return [(status, plain_line(text)) for status, text in plan_entries(plan, most=MOST)]


def step_text(status: str, words: str, palette: Palette) -> Text:
    mark, look = {
        "completed": (palette.good, palette.soft),
        "in_progress": (palette.accent, f"bold {palette.ink}"),
        "cancelled": (palette.soft, f"strike {palette.soft}"),
    }.get(status, (palette.soft, palette.ink))
    return Text.assemble((f"{BOXES.get(status, '○')} ", mark), (words, look), overflow="fold")


class PlanEntry(Entry):
    def __init__(self, key: str, find: Callable[[], Plan | None]) -> None:
        super().__init__(key)
        self._find = find
        self._known: Plan | None = None

    def _steps(self) -> list[tuple[str, str]]:
        self._known = self._find() or self._known
        return [] if self._known is None else steps(self._known.latest.plan)

    @property
    def text(self) -> str:
        return "\n".join(f"{BOXES.get(status, '○')} {words}" for status, words in self._steps())

    def _lay(self, page: Page) -> list[Strip]:
        inner = page.narrower(2)
        lines: list[Strip] = []
        for status, words in self._steps():
            strips = inner.strips(step_text(status, words, page.palette))
            lines += [strips[0], *indented(strips[1:], "  ")]
        return lines
