"""A turn as plain text: messages on stdout; tool calls, plans and notes on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, TextIO

from antiphon.cli.exit_codes import Exit
from antiphon.cli.output.descriptions import (
    FAILED,
    FINISHED,
    LONGEST_NOTE,
    REFUSED,
    ShownMessages,
    shown_lines,
    stands_apart,
    tool_output,
)
from antiphon.cli.output.permissions import PermissionSubjects, print_question
from antiphon.cli.output.remarks import Remarks
from antiphon.cli.output.screen import FormView, PlainForm
from antiphon.cli.output.streams import safe_stream, write_styled
from antiphon.cli.output.word_wrap import WordWrap, terminal_columns, wrap_words
from antiphon.client import Client, ClientSession, Permission, SessionEvent, TurnEnd
from antiphon.schema import v2
from antiphon.text_safety import SafeWriter, printed_text, safe_line, safe_text
from antiphon.transcripts import (
    BOXES,
    CALL_MARKS,
    block_text,
    call_title,
    context_text,
    kind_text,
    plan_entries,
)

RESET = "\x1b[0m"


class PlainScreen:
    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = safe_stream(out)
        self._err = safe_stream(err)
        self._session: ClientSession | None = None
        self._message: str | None = None
        """The message that was written last."""
        self._shown = ShownMessages()
        self._column = 0
        """1 if the last line on stdout has not ended, otherwise 0."""
        self._asked = False
        """Whether the cursor is after a question."""
        self._wrapping = WordWrap(0)
        self._writer = SafeWriter(printed=True)
        self._thought = ""
        self._calls: dict[str, str] = {}
        self._plan: dict[str, list[tuple[str, str]]] = {}
        self._remarks = Remarks()
        self._subjects = PermissionSubjects()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close_thought()
        if self._column:
            self._say("\n")

    def waiting(self, what: str) -> None:
        pass

    def begin(self, client: Client, session: ClientSession) -> None:
        self._session = session
        self._remarks.begin(session)

    def show(self, event: SessionEvent, *, mine: bool) -> None:
        update = event.update
        if update is None or not (mine or isinstance(update, v2.Notice)):
            return
        if isinstance(update, v2.AgentThoughtChunk):
            self._think(block_text(update.content))
            return
        self._close_thought()
        if isinstance(update, v2.AgentMessageChunk):
            self._write(update.message_id, block_text(update.content), apart=stands_apart(update.content))
        elif isinstance(update, v2.AgentMessage):
            self._replace(update)
        elif isinstance(update, v2.AgentThought):
            self._think("".join(map(block_text, update.content or ())))
            self._close_thought()
        elif isinstance(update, v2.SessionToolCallUpdate):
            self._call(update.tool_call_id, update.status)
        elif isinstance(update, v2.PlanUpdate):
            self._planned(update.plan)
        for remark in self._remarks.of(update):
            self.note(remark)

    def note(self, text: str) -> None:
        self.line(f"antiphon: {safe_line(text, limit=LONGEST_NOTE)}")

    @contextmanager
    def asking(self, permission: Permission) -> Iterator[None]:
        self._close_thought()
        self._break()
        print_question(permission, self._err, self._subjects)
        with self._questioned():
            yield

    @contextmanager
    def filling(self) -> Iterator[FormView]:
        self._close_thought()
        self._break()
        with self._questioned():
            yield PlainForm(self._err)

    @contextmanager
    def _questioned(self) -> Iterator[None]:
        self._asked = True
        yield
        self._asked = False  # Enter was typed

    def end(self, end: TurnEnd, *, seconds: float, code: Exit) -> None:
        self._close_thought()
        for line in (*self._remarks.rest(), self._context(), REFUSED if end.refused else ""):
            if line:
                self.note(line)

    def _context(self) -> str:
        return "" if self._session is None else context_text(self._session.usage)

    def failed(self, line: str, *, code: Exit) -> None:
        pass

    # --- messages ----------------------------------------------------------------------------------

    def _write(self, message_id: str, text: str, *, apart: bool = False) -> None:
        if not text:
            return
        if self._message not in (None, message_id):
            self._say("\n\n" if self._column else "\n")
            self._wrapping = WordWrap(0)
        elif apart and self._column:
            self._say("\n")
        self._message = message_id
        self._shown.add(message_id, text)
        self._say(f"{text}\n" if apart else text)

    def _replace(self, update: v2.AgentMessage) -> None:
        """Write a whole message. If its beginning was written already, write only the rest."""
        change, rest = self._shown.rest(update)
        if change:
            self.line(f"({change})")
            self._message = ""
        for text, apart in rest:
            self._write(update.message_id, text, apart=apart)

    def _say(self, text: str) -> None:
        shown, columns = self._writer.write(text), terminal_columns(self._out)
        if columns is not None:
            self._wrapping.columns = columns
            shown = self._leave_question() + self._wrapping.write(shown)
        self._out.write(shown)
        self._out.flush()
        self._column = 0 if text.endswith("\n") else 1

    # --- thoughts, tool calls and plans ------------------------------------------------------------

    def _think(self, text: str) -> None:
        *lines, self._thought = (self._thought + text).split("\n")
        for line in lines:
            self.line(f"~ {printed_text(line)}".rstrip())

    def _close_thought(self) -> None:
        if self._thought.strip():
            self.line(f"~ {printed_text(self._thought)}")
        self._thought = ""

    def _call(self, call_id: str, status: Any) -> None:
        """Show a tool call at the status of the update: the session may be ahead of what is shown."""
        assert self._session is not None
        call = self._session.fold.tools.get(call_id)
        known = self._calls.get(call_id, "")
        if call is None or known in FINISHED:
            return
        title = call_title(call)
        if status in FINISHED:
            for part in self._subjects.news(call_id, tool_output(self._session, call)):
                for line in shown_lines(call, part):
                    self.line(f"  | {line}")
            how = f" ({status})" if status in FAILED else ""
            self.line(f"{CALL_MARKS[status]} {title}{how}")
        elif not known:
            kind = kind_text(call.kind)
            self.line(f"> {title} ({kind})" if kind else f"> {title}")
        self._calls[call_id] = str(status) if status else known or "pending"

    def _planned(self, plan: Any) -> None:
        plan_id = str(getattr(plan, "plan_id", ""))
        entries = plan_entries(plan)
        before = self._plan.get(plan_id, [])
        for entry in entries:
            if entry not in before:
                self.line(f"{BOXES.get(entry[0], '-')} {entry[1]}")
        self._plan[plan_id] = entries

    def line(self, line: str, *, style: str = "") -> None:
        """Write a line to stderr. `style` is an escape sequence of the command itself."""
        self._break()
        columns, line = terminal_columns(self._err), safe_text(line)
        shown = line if columns is None else wrap_words(line, columns)
        ended = self._leave_question()
        write_styled(self._err, f"{ended}{style}{shown}{RESET if style else ''}\n")

    def _leave_question(self) -> str:
        """Return a line end if the cursor is after a question that another client answered."""
        asked, self._asked = self._asked, False
        return "\n" if asked else ""

    def _break(self) -> None:
        """Begin a new line on stdout if it is a terminal, because stderr writes to the same one."""
        if self._column and self._out.isatty():
            self._say("\n")
