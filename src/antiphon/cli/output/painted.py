"""A turn painted on a terminal: complete parts scroll by, the parts at work stay at the bottom.

The bottom has the end of the message that is being written, the running tool calls, the plan, and a line that
says what the command waits for. A part that ends is printed above the bottom, once and in full.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text
from rich.theme import Theme

from antiphon.cli.exit_codes import Exit
from antiphon.cli.output import descriptions as describe
from antiphon.cli.output.console import STYLES, SafeRenderable, rendered, safe_console
from antiphon.cli.output.descriptions import LONGEST_NOTE, joined
from antiphon.cli.output.permissions import COMMAND, PATCH, WORDS, PermissionSubjects, SubjectLine
from antiphon.cli.output.remarks import Remarks
from antiphon.cli.output.screen import FormView
from antiphon.cli.output.word_wrap import WIDEST, wrap_words
from antiphon.client import Client, ClientSession, Permission, SessionEvent, TurnEnd
from antiphon.paths import short_path
from antiphon.schema import v2
from antiphon.text_safety import SafeWriter, safe_line
from antiphon.transcripts import (
    BOXES,
    CALL_MARKS,
    MarkdownStream,
    Piece,
    block_text,
    call_title,
    context_text,
    duration,
    ending_text,
    kind_text,
    option_keys,
    plan_entries,
    tokens_text,
)

FRAMES = 12
"""How often the bottom is painted, per second."""
LIVE_LINES = 6
"""Lines of a tool call's output that are shown while it runs."""
LIVE_TEXT = 4_000
"""Characters that are read for them each time."""
NOTICEABLE = 1.0
"""Seconds from which on the duration of a tool call is shown."""

THEME = Theme(
    {
        **STYLES,
        "ok": "green",
        "bad": "red",
        "stopped": "yellow",
        "faint": "dim",
        "thought": "dim italic",
        "question": "bold yellow",
        "patch.add": "green",
        "patch.remove": "red",
        "patch.place": "cyan dim",
    }
)
_STATUS_STYLE = {"completed": "ok", "failed": "bad", "cancelled": "stopped"}


class PaintedScreen:
    def __init__(self, console: Console | None = None) -> None:
        self._console = console or safe_console(THEME)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._ticking: asyncio.Task[None] | None = None
        self._painting = False
        self._began = time.monotonic()
        self._asked = 0.0
        """Seconds that the user took to answer questions. They do not count as the agent's time."""
        self._subjects = PermissionSubjects()
        self._waiting = "starting"
        """What the command waits for, "" while the agent works."""
        self._spinner = Spinner("dots", style="cyan")
        self._session: ClientSession | None = None
        self._writing: tuple[str, str, MarkdownStream, SafeWriter] | None = None
        """The message that is being written: id, style, text, and the writer that makes it safe."""
        self._shown = describe.ShownMessages()
        self._calls: dict[str, float] = {}
        """The running tool calls, and the time at which each began."""
        self._ended: set[str] = set()
        self._plans: dict[str, Any] = {}
        self._remarks = Remarks()
        self._last: str | None = None
        """The kind of the last print. Prints of different kinds are separated by a blank line."""

    async def __aenter__(self) -> Self:
        self._paint(on=True)
        self._ticking = asyncio.get_running_loop().create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticking
        self._flush()
        for call_id in list(self._calls):
            self._close_call(call_id)
        self._paint(on=False)

    def waiting(self, what: str) -> None:
        self._waiting = what

    def begin(self, client: Client, session: ClientSession) -> None:
        self._session = session
        self._remarks.begin(session)
        info = client.info
        name = "" if info is None else safe_line(f"{info.name} {info.version}")
        where = safe_line(short_path(session.cwd))
        header = Text.assemble(("● ", "cyan"), (name or "agent", "bold"))
        header.append(f" · ACP {client.agreement.version} · {where}", "faint")
        self._waiting = ""
        self._print("header", [header])

    def show(self, event: SessionEvent, *, mine: bool) -> None:
        update = event.update
        if update is None or not (mine or isinstance(update, v2.Notice)):
            return
        if isinstance(update, v2.AgentMessageChunk | v2.AgentThoughtChunk):
            style = "none" if isinstance(update, v2.AgentMessageChunk) else "thought"
            apart = describe.stands_apart(update.content)
            self._write(update.message_id, style, block_text(update.content), apart=apart)
        elif isinstance(update, v2.AgentMessage | v2.AgentThought):
            self._replace(update)
        elif isinstance(update, v2.SessionToolCallUpdate):
            self._call(update.tool_call_id, update.status)
        elif isinstance(update, v2.ToolCallContentChunk):
            self._call(update.tool_call_id, None)
        elif isinstance(update, v2.PlanUpdate):
            self._planned(update.plan)
        elif isinstance(update, v2.PlanRemoved):
            self._plans.pop(update.plan_id, None)
        for remark in self._remarks.of(update):
            self._remark(remark, "stopped" if isinstance(update, v2.Notice) else "faint")

    def note(self, text: str) -> None:
        self._remark(text, "stopped")

    def _remark(self, text: str, style: str) -> None:
        self._flush()
        note = safe_line(text, limit=LONGEST_NOTE)
        self._print("note", [Text(wrap_words(f"– {note}", self._console.width), style)])

    @contextmanager
    def filling(self) -> Iterator[FormView]:
        with self._put_aside():
            yield PaintedForm(self._console, lambda lines: self._print("question", lines))

    @contextmanager
    def _put_aside(self) -> Iterator[None]:
        """Stop painting inside the block: the user has the terminal."""
        self._flush()
        self._paint(on=False)
        began = time.monotonic()
        try:
            yield
        finally:
            self._asked += time.monotonic() - began
            self._paint(on=True)

    @contextmanager
    def asking(self, permission: Permission) -> Iterator[None]:
        with self._put_aside():
            self._put_question(permission)
            yield

    def _put_question(self, permission: Permission) -> None:
        title = Text.assemble(
            ("? ", "question"), ("\n  ".join(describe.question_lines(permission.title)), "bold")
        )
        title.append(f"  {kind_text(permission.kind)}".rstrip(), "faint")
        lines = [title]
        for line in self._subjects.of(permission):
            lines += self._subject_lines(line)
        keys = option_keys(permission.options)
        for number, (key, option) in enumerate(zip(keys, permission.options, strict=True), 1):
            style = "ok" if option.kind.startswith("allow") else "bad"
            lines.append(Text.assemble((f"  {number} {key:1} ", "bold"), (safe_line(option.name), style)))
        self._print("question", lines)
        self._console.print(Text("  › ", "question"), end="")

    def _subject_lines(self, line: SubjectLine) -> Iterator[Text]:
        """Wrap a line, so that nothing the user agrees to is beyond the edge."""
        before, style = {COMMAND: ("  $ ", "bold"), WORDS: ("  ", "faint")}.get(line.what, ("  │ ", "faint"))
        text = Text(line.text, _patch_style(line.text) if line.what == PATCH else style)
        for part in text.wrap(self._console, max(self._console.width - len(before), 10), overflow="fold"):
            yield Text.assemble((before, "faint"), part)
            before = before.replace("$", " ")

    def end(self, end: TurnEnd, *, seconds: float, code: Exit) -> None:
        self._flush()
        for call_id in list(self._calls):
            self._close_call(call_id)
        for plan_id in list(self._plans):
            self._close_plan(plan_id)
        for remark in self._remarks.rest():
            self._remark(remark, "faint")
        self._paint(on=False)
        mark, style = ("✓", "ok") if code is Exit.DONE else ("✗", "bad")
        if code is Exit.CANCELLED:
            mark, style = "⊘", "stopped"
        line = Text.assemble((f"{mark} {ending_text(end.stop_reason, error=end.error)}", style))
        about = [duration(seconds), "" if end.usage is None else tokens_text(end.usage)]
        if self._session is not None:
            about.append(context_text(self._session.usage))
        line.append(f" · {joined(about)}", "faint")
        self._print("end", [line, *([Text(f"– {describe.REFUSED}", "stopped")] if end.refused else ())])

    def failed(self, line: str, *, code: Exit) -> None:
        pass

    # --- messages ----------------------------------------------------------------------------------

    def _write(self, message_id: str, style: str, text: str, *, apart: bool = False) -> None:
        if self._writing is None or self._writing[:2] != (message_id, style):
            self._flush()
            self._writing = (message_id, style, MarkdownStream(), SafeWriter(printed=True))
        self._shown.add(message_id, text)
        _, _, writing, writer = self._writing
        for piece in writing.write(writer.write(f"\n\n{text}\n\n" if apart else text)):
            self._print_piece(piece, style)

    def _replace(self, update: v2.AgentMessage | v2.AgentThought) -> None:
        """Print a whole message. If its beginning was printed already, print only the rest."""
        style = "none" if isinstance(update, v2.AgentMessage) else "thought"
        change, rest = self._shown.rest(update)
        if change:
            self.note(change)
        for text, apart in rest:
            self._write(update.message_id, style, text, apart=apart)

    def _flush(self) -> None:
        """Print the rest of the message that was being written."""
        if self._writing is not None:
            _, style, writing, writer = self._writing
            self._writing = None
            for piece in (*writing.write(writer.finish()), *writing.finish()):
                self._print_piece(piece, style)

    def _print_piece(self, piece: Piece, style: str) -> None:
        lines = rendered(self._console, piece.text, style=style, width=self._width)
        self._print("message" if style == "none" else "thought", lines, part=not piece.joined)

    # --- tool calls and plans ----------------------------------------------------------------------

    def _call(self, call_id: str, status: Any) -> None:
        """Show a tool call at the status of the update: the session may be ahead of what is shown."""
        assert self._session is not None
        call = self._session.fold.tools.get(call_id)
        if call is None or call_id in self._ended:
            return
        if call_id not in self._calls:
            self._flush()
            self._calls[call_id] = time.monotonic() - self._asked
        if status in describe.FINISHED:
            self._close_call(call_id)

    def _close_call(self, call_id: str) -> None:
        took = time.monotonic() - self._asked - self._calls.pop(call_id)
        self._ended.add(call_id)
        self._print("call", self._call_lines(call_id, took))

    def _call_lines(self, call_id: str, took: float | None = None) -> list[Text]:
        assert self._session is not None
        call = self._session.fold.tools.get(call_id)
        assert call is not None
        status = str(call.status)
        mark = (CALL_MARKS.get(status, "◆") + " ", _STATUS_STYLE.get(status, "cyan"))
        title = Text(call_title(call), "bold", no_wrap=True)
        about = [kind_text(call.kind), status if status in ("failed", "cancelled", "paused") else ""]
        if call_id in self._ended and status not in describe.FINISHED:
            about.append("still running")
        if took is not None and took >= NOTICEABLE:
            about.append(duration(took))
        behind = Text(f"  {joined(about)}".rstrip(), "faint")
        title.truncate(max(self._console.width - 3 - behind.cell_len, 10), overflow="ellipsis")
        lines = [Text.assemble(mark, title, behind)]
        parts = describe.tool_output(self._session, call, last=LIVE_TEXT if took is None else None)
        for part in self._subjects.news(call_id, parts):
            shown = part.lines[-LIVE_LINES:] if took is None else describe.shown_lines(call, part)
            lines += [self._output_line(line, patch=part.patch) for line in shown]
        return lines

    def _output_line(self, line: str, *, patch: bool) -> Text:
        style = _patch_style(line) if patch else "faint"
        text = Text.assemble(("  │ ", "faint"), (line, style), no_wrap=True)
        text.truncate(self._console.width - 1, overflow="ellipsis")
        return text

    def _planned(self, plan: Any) -> None:
        plan_id = str(getattr(plan, "plan_id", ""))
        self._flush()
        self._plans[plan_id] = plan
        entries = plan_entries(plan)
        if all(status in ("completed", "cancelled", "") for status, _ in entries):
            self._close_plan(plan_id)

    def _close_plan(self, plan_id: str) -> None:
        self._print("plan", _plan_lines(self._plans.pop(plan_id)))

    # --- painting ----------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return min(self._console.width, WIDEST)

    def _print(self, what: str, lines: Iterable[RenderableType], *, part: bool = True) -> None:
        """Print lines above the bottom."""
        lines = list(lines)
        if not lines:
            return
        alike = what == self._last and what in ("call", "note")
        if self._last is not None and part and not alike:
            lines = [Text(""), *lines]
        self._last = what
        if self._painting:
            self._live.update(self._bottom())  # as it is after these lines
        self._console.print(Group(*lines))  # in one print, because each one paints the bottom again

    def _paint(self, *, on: bool) -> None:
        if on and not self._painting:
            self._live.start()
        elif not on and self._painting:
            self._live.update(Text(""))
            self._live.stop()
        self._painting = on

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1 / FRAMES)
            if self._painting:
                self._live.update(self._bottom(), refresh=True)

    def _bottom(self) -> RenderableType:
        """Return the bottom, no higher than the screen."""
        lines: list[Text] = []
        room = max(self._console.height - 2, 4)
        if self._writing is not None:
            _, style, writing, _ = self._writing
            tail = writing.tail(lines=room, width=self._width)
            lines += [Text(""), *rendered(self._console, tail, style=style, width=self._width)]
        for call_id in self._calls:
            lines += [Text(""), *self._call_lines(call_id)]
        for plan in self._plans.values():
            lines += [Text(""), *_plan_lines(plan)]
        lines = lines[-(room - 2) :]
        took = duration(time.monotonic() - self._began)
        doing = self._waiting or ("working" if self._calls else "writing" if self._writing else "thinking")
        self._spinner.update(text=Text(f"{doing} · {took} · Ctrl-C stops", "faint"))
        return SafeRenderable(Group(*lines, Text(""), self._spinner))


class PaintedForm:
    """A `FormView` on a console; `put` prints its head."""

    def __init__(self, console: Console, put: Callable[[list[Text]], None]) -> None:
        self._print = console.print
        self._put = put

    def head(self, lines: Iterable[str]) -> None:
        self._put([Text.assemble(("? ", "question"), ("\n  ".join(lines), "bold"))])

    def ask(self, question: str, hint: str = "", choices: Iterable[str] = ()) -> None:
        self._print(Text.assemble(f"  {question}", (f"  {hint}" if hint else "", "faint")))
        for number, choice in enumerate(choices, 1):
            self._print(Text.assemble((f"  {number} ", "bold"), choice))
        self._print(Text("  › ", "question"), end="")

    def remark(self, line: str) -> None:
        self._print(Text(f"  {line}", "bad"))


_PATCH = (
    ("+++", "patch.place"),
    ("---", "patch.place"),
    ("@@", "patch.place"),
    ("+", "patch.add"),
    ("-", "patch.remove"),
)


def _patch_style(line: str) -> str:
    return next((style for start, style in _PATCH if line.startswith(start)), "faint")


def _plan_lines(plan: Any) -> list[Text]:
    lines = []
    for status, text in plan_entries(plan):
        style = {"completed": "ok", "in_progress": "bold", "cancelled": "faint strike"}.get(status, "faint")
        lines.append(Text.assemble((f"{BOXES.get(status, '·')} ", style), (text, style)))
    return lines
