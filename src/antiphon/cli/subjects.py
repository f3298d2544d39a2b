"""Subjects: what a permission is about, shown before anybody answers, and not again behind the answer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TextIO

from antiphon.cli.describing import Lines, kind_text, question_lines, tool_output
from antiphon.client import Permission
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from antiphon.text_safety import safe_line, safe_text

MOST = 40
"""Lines of a subject that are shown; of the rest it is said how much it is."""
WIDEST = 400
"""Characters of a line that are shown."""

WORDS, COMMAND, OUTPUT, PATCH = "words", "command", "output", "patch"


class Shown(NamedTuple):
    """A line of a subject, and what it is: a word about it, of a command, of an output or of a patch."""

    text: str
    what: str


class Subjects:
    """Remembers what questions have shown."""

    def __init__(self) -> None:
        self._put: set[str] = set()
        self._parts: dict[str, list[Lines]] = {}

    def of(self, permission: Permission) -> list[Shown]:
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

    def news(self, call_id: str, parts: list[Lines]) -> list[Lines]:
        """What of a tool call no question has shown."""
        return _behind(self._parts.get(call_id, []), parts)


def put_question(permission: Permission, out: TextIO, subjects: Subjects) -> None:
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


def _behind(known: Sequence[Lines], parts: list[Lines]) -> list[Lines]:
    """What follows those that are known; all, where they are not as they were."""
    same = [(part.lines, part.patch) for part in parts[: len(known)]] == [(k.lines, k.patch) for k in known]
    return parts[len(known) :] if same else parts


def _lines(permission: Permission, parts: Sequence[Lines]) -> Iterator[Shown]:
    request, call = permission.request, permission.tool_call
    title = safe_text(permission.title)
    told = [title, title.strip("` ")]
    """What was said, which need not be said again."""
    if request.description and safe_text(request.description) not in told:
        told.append(safe_text(request.description))
        yield from (Shown(line, WORDS) for line in question_lines(request.description))
    subject = request.subject
    if isinstance(subject, v2.CommandPermissionSubject):
        yield from (Shown(line, COMMAND) for line in safe_text(subject.command).splitlines())
        if subject.cwd != permission.session.cwd:
            yield Shown(f"in {safe_line(subject.cwd)}", WORDS)
        return
    if isinstance(subject, Unknown):
        yield from _fields(subject, told)
    if call is None:
        return
    raw = call.raw_input if isinstance(call.raw_input, dict) else {}
    command = _command(raw)
    if command and command not in told:
        told.append(command)
        yield from (Shown(line, COMMAND) for line in command.splitlines())
    for part in parts:
        told += part.lines
        yield from (Shown(line, PATCH if part.patch else OUTPUT) for line in part.lines)
    if not parts:
        yield from _fields({key: value for key, value in raw.items() if key != "command"}, told)
    inside = permission.session.cwd.rstrip("/") + "/"
    for location in call.locations:
        path = safe_line(location.path.removeprefix(inside))
        if not any(path in line for line in told):
            yield Shown(f"in {path}" + (f", line {location.line}" if location.line else ""), WORDS)


def _command(raw: dict[str, Any]) -> str:
    """What would be run, where a tool call says so in the usual place."""
    command = raw.get("command")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return safe_text(shlex.join(command))
    return safe_text(command) if isinstance(command, str) else ""


def _fields(raw: dict[str, Any], told: list[str]) -> Iterator[Shown]:
    """What a tool is called with, beside what was said of it."""
    for key, value in raw.items():
        text = safe_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if not text.strip() or text in told:
            continue
        told.append(text)
        head, *rest = text.expandtabs(4).strip("\n").splitlines()
        yield Shown(f"{safe_line(key)}: {head}", OUTPUT)
        yield from (Shown(f"  {line}", OUTPUT) for line in rest)


def _bounded(lines: list[Shown]) -> list[Shown]:
    shown = [line if len(line.text) <= WIDEST else _cut(line) for line in lines[:MOST]]
    hidden = len(lines) - len(shown)
    return [*shown, Shown(f"⋮ {hidden} more line{'s' if hidden > 1 else ''}", OUTPUT)] if hidden else shown


def _cut(line: Shown) -> Shown:
    return line._replace(text=f"{line.text[:WIDEST]}… {len(line.text) - WIDEST:,} more characters")
