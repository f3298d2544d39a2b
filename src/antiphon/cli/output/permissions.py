"""What a permission is about: shown before the user answers, and not again after the answer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TextIO

from antiphon.cli.output.descriptions import OutputPart, kind_text, question_lines, tool_output
from antiphon.client import Permission
from antiphon.schema import Unknown, v2
from antiphon.text_safety import safe_line, safe_text

MOST = 40
"""Lines of a subject that are shown; the rest is counted."""
WIDEST = 400
"""Characters of a line that are shown."""

WORDS, COMMAND, OUTPUT, PATCH = "words", "command", "output", "patch"


class SubjectLine(NamedTuple):
    """A line of a subject, and what it is: a word about it, of a command, of an output or of a patch."""

    text: str
    what: str


class PermissionSubjects:
    """Remembers what questions have shown."""

    def __init__(self) -> None:
        self._put: set[str] = set()
        self._parts: dict[str, list[OutputPart]] = {}

    def of(self, permission: Permission) -> list[SubjectLine]:
        """What one has to know to answer; nothing, where the same question is put again."""
        if permission.question_id in self._put:
            return []
        self._put.add(permission.question_id)
        call = permission.tool_call
        parts = [] if call is None else tool_output(permission.session, call, exact=True)
        if call is not None:
            known, self._parts[call.id] = self._parts.get(call.id, []), parts
            parts = _behind(known, parts)
        return _bounded(list(_lines(permission, parts)))

    def news(self, call_id: str, parts: list[OutputPart]) -> list[OutputPart]:
        """What of a tool call no question has shown."""
        return _behind(self._parts.get(call_id, []), parts)


def print_question(permission: Permission, out: TextIO, subjects: PermissionSubjects) -> None:
    """As plain text, with the cursor where the answer goes."""
    title = "\n  ".join(question_lines(permission.title))
    kind = kind_text(permission.kind)
    out.write(f"? {title}{f' ({kind})' if kind else ''}\n")
    for line in subjects.of(permission):
        out.write(f"  {PREFIX[line.what]}{line.text}".rstrip() + "\n")
    for number, option in enumerate(permission.options, 1):
        out.write(f"  {number}  {safe_line(option.name)}\n")
    out.write("  > ")
    out.flush()


PREFIX = {WORDS: "", COMMAND: "$ ", OUTPUT: "| ", PATCH: "| "}


def _behind(known: Sequence[OutputPart], parts: list[OutputPart]) -> list[OutputPart]:
    """What follows those that are known; all, where they are not as they were."""
    same = [(part.lines, part.patch) for part in parts[: len(known)]] == [(k.lines, k.patch) for k in known]
    return parts[len(known) :] if same else parts


def _lines(permission: Permission, parts: Sequence[OutputPart]) -> Iterator[SubjectLine]:
    request, call = permission.request, permission.tool_call
    title = safe_text(permission.title)
    told = [title, title.strip("` ")]
    """What was said, which need not be said again."""
    if request.description and safe_text(request.description) not in told:
        told.append(safe_text(request.description))
        yield from (SubjectLine(line, WORDS) for line in question_lines(request.description))
    subject = request.subject
    if isinstance(subject, v2.CommandPermissionSubject):
        yield from (SubjectLine(line, COMMAND) for line in safe_text(subject.command).splitlines())
        if subject.cwd != permission.session.cwd:
            yield SubjectLine(f"in {safe_line(subject.cwd)}", WORDS)
        return
    if isinstance(subject, Unknown):
        yield from _fields(subject, told)
    if call is None:
        return
    raw = call.raw_input if isinstance(call.raw_input, dict) else {}
    command = _command(raw)
    if command and command not in told:
        told.append(command)
        yield from (SubjectLine(line, COMMAND) for line in command.splitlines())
    for part in parts:
        told += part.lines
        yield from (SubjectLine(line, PATCH if part.patch else OUTPUT) for line in part.lines)
    if not parts:
        yield from _fields({key: value for key, value in raw.items() if key != "command"}, told)
    inside = permission.session.cwd.rstrip("/") + "/"
    for location in call.locations:
        path = safe_line(location.path.removeprefix(inside))
        if not any(path in line for line in told):
            yield SubjectLine(f"in {path}" + (f", line {location.line}" if location.line else ""), WORDS)


def _command(raw: dict[str, Any]) -> str:
    """What would be run, where a tool call says so in the usual place."""
    command = raw.get("command")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return safe_text(shlex.join(command))
    return safe_text(command) if isinstance(command, str) else ""


def _fields(raw: dict[str, Any], told: list[str]) -> Iterator[SubjectLine]:
    """What a tool is called with, beside what was said of it."""
    for key, value in raw.items():
        text = safe_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if not text.strip() or text in told:
            continue
        told.append(text)
        head, *rest = text.expandtabs(4).strip("\n").splitlines()
        yield SubjectLine(f"{safe_line(key)}: {head}", OUTPUT)
        yield from (SubjectLine(f"  {line}", OUTPUT) for line in rest)


def _bounded(lines: list[SubjectLine]) -> list[SubjectLine]:
    shown = [line if len(line.text) <= WIDEST else _cut(line) for line in lines[:MOST]]
    hidden = len(lines) - len(shown)
    return (
        [*shown, SubjectLine(f"⋮ {hidden} more line{'s' if hidden > 1 else ''}", OUTPUT)] if hidden else shown
    )


def _cut(line: SubjectLine) -> SubjectLine:
    return line._replace(text=f"{line.text[:WIDEST]}… {len(line.text) - WIDEST:,} more characters")
