"""Permissions as text: what the agent wants to do, shown before the user answers and not again afterwards."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TextIO

from antiphon.cli.output.descriptions import OutputPart, question_lines, tool_output
from antiphon.client import Permission
from antiphon.schema import Unknown, v2
from antiphon.text_safety import safe_line, safe_text
from antiphon.transcripts import kind_text, option_keys, relative_path

MOST = 40
"""Lines that are shown of what a permission is about; the rest is counted."""
WIDEST = 400
"""Characters of a line that are shown."""

WORDS, COMMAND, OUTPUT, PATCH = "words", "command", "output", "patch"
PREFIX = {WORDS: "", COMMAND: "$ ", OUTPUT: "| ", PATCH: "| "}


class SubjectLine(NamedTuple):
    text: str
    what: str
    """One of `WORDS`, `COMMAND`, `OUTPUT` and `PATCH`."""


class PermissionSubjects:
    """Remembers what questions have shown."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._parts: dict[str, list[OutputPart]] = {}

    def of(self, permission: Permission) -> list[SubjectLine]:
        """Return what the user has to know to answer. Return nothing for a question that is asked again."""
        if permission.question_id in self._asked:
            return []
        self._asked.add(permission.question_id)
        call = permission.tool_call
        parts = [] if call is None else tool_output(permission.session, call, exact=True)
        if call is not None:
            known, self._parts[call.id] = self._parts.get(call.id, []), parts
            parts = _after(known, parts)
        return _bounded(list(_lines(permission, parts)))

    def news(self, call_id: str, parts: list[OutputPart]) -> list[OutputPart]:
        """Return the parts of a tool call that no question has shown."""
        return _after(self._parts.get(call_id, []), parts)


def print_question(permission: Permission, out: TextIO, subjects: PermissionSubjects) -> None:
    """Print a permission as plain text, and leave the cursor where the answer goes."""
    title = "\n  ".join(question_lines(permission.title))
    kind = kind_text(permission.kind)
    out.write(f"? {title}{f' ({kind})' if kind else ''}\n")
    for line in subjects.of(permission):
        out.write(f"  {PREFIX[line.what]}{line.text}".rstrip() + "\n")
    keys = option_keys(permission.options)
    for number, (key, option) in enumerate(zip(keys, permission.options, strict=True), 1):
        out.write(f"  {number} {key:1}  {safe_line(option.name)}\n")
    print("  > ", end="", file=out, flush=True)


def _after(known: list[OutputPart], parts: list[OutputPart]) -> list[OutputPart]:
    """Return the parts after the known ones, or all of them if the known ones have changed."""
    return parts[len(known) :] if parts[: len(known)] == known else parts


def _lines(permission: Permission, parts: Sequence[OutputPart]) -> Iterator[SubjectLine]:
    request, call = permission.request, permission.tool_call
    title = safe_text(permission.title)
    shown = [title, title.strip("` ")]
    """Texts that are on the screen already."""
    if request.description and safe_text(request.description) not in shown:
        shown.append(safe_text(request.description))
        yield from (SubjectLine(line, WORDS) for line in question_lines(request.description))
    subject = request.subject
    if isinstance(subject, v2.CommandPermissionSubject):
        yield from (SubjectLine(line, COMMAND) for line in safe_text(subject.command).splitlines())
        if subject.cwd != permission.session.cwd:
            yield SubjectLine(f"in {safe_line(subject.cwd)}", WORDS)
        return
    if isinstance(subject, Unknown):
        yield from _fields(subject, shown)
    if call is None:
        return
    raw = call.raw_input if isinstance(call.raw_input, dict) else {}
    command = _command(raw)
    if command and command not in shown:
        shown.append(command)
        yield from (SubjectLine(line, COMMAND) for line in command.splitlines())
    for part in parts:
        shown += part.lines
        yield from (SubjectLine(line, PATCH if part.patch else OUTPUT) for line in part.lines)
    if not parts:
        yield from _fields({key: value for key, value in raw.items() if key != "command"}, shown)
    for location in call.locations:
        path = safe_line(relative_path(location.path, permission.session.cwd))
        if not any(path in line for line in shown):
            yield SubjectLine(f"in {path}" + (f", line {location.line}" if location.line else ""), WORDS)


def _command(raw: dict[str, Any]) -> str:
    """Return the command that a tool call would run, if its input names one in the usual place."""
    command = raw.get("command")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return safe_text(shlex.join(command))
    return safe_text(command) if isinstance(command, str) else ""


def _fields(raw: dict[str, Any], shown: list[str]) -> Iterator[SubjectLine]:
    """Yield the fields of a tool's input that are not on the screen already."""
    for key, value in raw.items():
        text = safe_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if not text.strip() or text in shown:
            continue
        shown.append(text)
        head, *rest = text.expandtabs(4).strip("\n").splitlines()
        yield SubjectLine(f"{safe_line(key)}: {head}", OUTPUT)
        yield from (SubjectLine(f"  {line}", OUTPUT) for line in rest)


def _bounded(lines: list[SubjectLine]) -> list[SubjectLine]:
    shown = [line if len(line.text) <= WIDEST else _cut(line) for line in lines[:MOST]]
    hidden = len(lines) - len(shown)
    if hidden:
        shown.append(SubjectLine(f"⋮ {hidden} more line{'s' if hidden > 1 else ''}", OUTPUT))
    return shown


def _cut(line: SubjectLine) -> SubjectLine:
    return line._replace(text=f"{line.text[:WIDEST]}… {len(line.text) - WIDEST:,} more characters")
