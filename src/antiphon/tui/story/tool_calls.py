"""Tool calls in the transcript: title, status, and the part of the output that is worth showing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from antiphon.client import ClientSession
from antiphon.engine import Terminal, ToolCall
from antiphon.schema import v2
from antiphon.transcripts import (
    CALL_MARKS,
    READING,
    call_parts,
    call_title,
    change_text,
    content_text,
    exit_text,
    kind_text,
)
from antiphon.tui.story.entries import Entry, indented
from antiphon.tui.text.markdown import Page
from antiphon.tui.text.patches import patch_lines
from antiphon.tui.text.pictures import picture_lines
from antiphon.tui.text.plain import plain_line, plain_output
from antiphon.tui.text.terminal_colours import coloured

LONGEST_OUTPUT = 256 * 1024
"""Characters of a terminal's output that are read, from its end."""
GLIMPSE = 6
"""Lines of a part that are shown while it is folded."""
MOST = 1_000
"""Lines of a part that are shown while it is not."""
ALL_MARKS = {**CALL_MARKS, "pending": "○", "in_progress": "●", "paused": "‖"}


class CallEntry(Entry):
    folds = True

    def __init__(self, key: str, find: Callable[[], ToolCall | None], session: ClientSession) -> None:
        super().__init__(key)
        self._find = find
        self._session = session
        self._known: ToolCall | None = None

    @property
    def call(self) -> ToolCall | None:
        self._known = self._find() or self._known
        return self._known

    @property
    def close(self) -> bool:  # type: ignore[override]  # a property over an attribute, because it changes
        call = self.call
        return self.folded and call is not None and not any(self._parts(call))

    @property
    def text(self) -> str:
        call = self.call
        if call is None:
            return ""
        parts = [call_title(call)]
        for part in call_parts(call, self._session.fold):
            if isinstance(part, v2.Diff):
                parts.append("" if part.patch is None else part.patch.text)
            elif isinstance(part, Terminal):
                parts.append(plain_output(_tail(part)))
            else:
                parts.append(content_text([part]))
        return "\n".join(filter(None, parts))

    def _lay(self, page: Page) -> list[Strip]:
        call = self.call
        if call is None:
            return []
        lines = page.strips(self._head(call, page))
        inner = page.narrower(4)
        for part in self._parts(call):
            lines += indented(part(inner), "  │ ", style=page.palette.line)
        return lines

    def _head(self, call: ToolCall, page: Page) -> Text:
        palette = page.palette
        status = str(call.status)
        colour = {"completed": palette.good, "failed": palette.bad, "cancelled": palette.wait}.get(
            status, palette.accent
        )
        about = [kind_text(call.kind)]
        if status in ("failed", "cancelled", "paused", "pending"):
            about.append(status)
        behind = "  " + " · ".join(word for word in about if word)
        look = palette.ink if call.final else f"bold {palette.ink}"
        title = Text(plain_line(call_title(call)), look, no_wrap=True)
        title.truncate(max(page.width - 2 - len(behind), 8), overflow="ellipsis")
        return Text.assemble(
            (f"{ALL_MARKS.get(status, '●')} ", colour), title, (behind.rstrip(), palette.soft)
        )

    def _parts(self, call: ToolCall) -> Iterator[Callable[[Page], list[Strip]]]:
        """Yield what makes the lines of each part of the output."""
        quiet = self.folded and str(call.kind) in READING and str(call.status) != "failed"
        text: list[object] = []
        shown: list[Callable[[Page], list[Strip]]] = []
        for part in call_parts(call, self._session.fold):
            if isinstance(part, v2.Diff):
                shown.append(partial(self._diff, part))
            elif isinstance(part, Terminal):
                shown.append(partial(self._terminal, part))
            else:
                text.append(part)
        if text and not quiet:
            yield lambda page: [*self._written(text, page), *picture_lines(text, page)]
        yield from shown

    def _written(self, blocks: list[object], page: Page) -> list[Strip]:
        text = content_text(blocks)
        looked = text[: MOST * page.width].strip("\n")
        # The output of a tool is shown as it is: most of it is not Markdown.
        if self.folded:
            looked = "\n".join(looked.split("\n", 4 * GLIMPSE)[: 4 * GLIMPSE])[: 400 * GLIMPSE]
        lines = page.text(plain_output(looked), page.palette.soft) if looked else []
        return self._cut(lines, text.count("\n") + 1, page, beyond=len(looked) < len(text.strip("\n")))

    def _diff(self, diff: v2.Diff, page: Page) -> list[Strip]:
        if diff.patch is None:
            return [
                line
                for change in diff.changes[:MOST]
                for line in page.text(plain_line(change_text(change, self._session.cwd)), page.palette.soft)
            ]
        limit = 4 * GLIMPSE if self.folded else MOST
        return patch_lines(diff.patch.text, self._session.cwd, page, limit=limit)

    def _terminal(self, terminal: Terminal, page: Page) -> list[Strip]:
        palette = page.palette
        ground = Style(color=palette.term_ink, bgcolor=palette.term)
        most = 2 * GLIMPSE if self.folded else MOST
        output = _tail(terminal).strip("\n").split("\n")
        lines: list[Text] = []
        if terminal.command and not self.folded:
            lines.append(Text(f"$ {plain_line(terminal.command)}", f"bold {palette.term_ink}"))
        # Colours may be set further above, so 50 more lines are read.
        all_lines = coloured("\n".join(output[-most - 50 :]), palette.ansi)
        while all_lines and not all_lines[-1].plain.strip():
            all_lines.pop()
        hidden = (terminal.output or b"").count(b"\n") - most
        if len(output) > most:
            lines.append(Text(f"⋮ {hidden:,} earlier lines", palette.ansi[8]))
            all_lines = all_lines[-most:]
        lines += all_lines
        ending = exit_text(terminal)
        if ending and ending != "still running":
            lines.append(Text(ending, palette.ansi[1]))
        made = []
        for line in lines:
            fits = line.cell_len <= page.width - 2
            for part in [line] if fits else line.wrap(page.console, max(page.width - 2, 8), overflow="fold"):
                padding = " " * max(page.width - 1 - part.cell_len, 0)
                segments = [Segment(" "), *part.render(page.console), Segment(padding)]
                strip = Strip([Segment(text, ground + (style or Style())) for text, style, _ in segments])
                made.append(strip.crop(0, page.width))
        return made

    def _cut(self, lines: list[Strip], total: int, page: Page, *, beyond: bool) -> list[Strip]:
        most = GLIMPSE if self.folded else MOST
        if len(lines) <= most and not beyond:
            return lines
        shown = lines[:most]
        rest = max(total - len(shown), 1)
        more = f"⋮ {rest:,} more {'line' if rest == 1 else 'lines'}"
        return [*shown, *page.text(more, page.palette.soft)]


def _tail(terminal: Terminal) -> str:
    """Return the end of an output, without a character that was cut in two."""
    return (terminal.output or b"")[-LONGEST_OUTPUT:].decode(errors="ignore")
