"""Diffs: v1 has two texts, v2 has changes and a patch (DIFF).

A patch cannot be converted to two texts, because it rarely shows a whole file. A patch that does has the mark
`_meta["antiphon"].whole`; `whole_diff` makes such patches, and `texts_of` reads them back exactly. The patch
of an added file needs no mark: it is the content of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from antiphon.schema import v2
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import PatchMeta
from antiphon.schema.version import META_KEY

WHOLE = "whole"
COMPARED = 500
"""Lines between the first and the last change, on either side, up to which common lines are looked for: that
takes quadratic time."""
_NO_NEWLINE = "\\ No newline at end of file\n"
_SECTION = re.compile(r"^diff --git ", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPED = re.compile(r"\\([0-7]{3}|.)")


class Texts(NamedTuple):
    """A file before and after; `old` is `None` if there was none."""

    path: str
    old: str | None
    new: str


def whole_diff(path: str, old: str | None, new: str) -> v2.Diff:
    """Return the diff of a file both sides of which are known, as a patch that shows all of it."""
    change = v2.DiffAdd if old is None else v2.DiffModify
    name = _quoted(path)
    patch = [f"diff --git {name} {name}\n"]
    if old is None:
        patch.append("new file mode 100644\n")
    before, after = _lines(old or ""), _lines(new)
    if before or after:
        patch.append(f"--- {'/dev/null' if old is None else name}\n+++ {name}\n")
        patch.append(f"@@ -{_span(before)} +{_span(after)} @@\n")
        patch += _body(before, after)
    return v2.Diff(
        changes=[change(path=path, file_type=v2.DiffFileType.TEXT)],
        patch=v2.DiffPatch(
            format=v2.DiffPatchFormat.GIT_PATCH, text="".join(patch), meta={META_KEY: {WHOLE: True}}
        ),
    )


def texts_of(diff: v2.Diff) -> list[Texts] | None:
    """Return both sides of every file of a diff, or `None` if one of them is not known exactly."""
    patch = diff.patch
    if patch is None or patch.format != v2.DiffPatchFormat.GIT_PATCH:
        return None
    start, *sections = _SECTION.split(patch.text)
    if start or len(sections) != len(diff.changes) or not sections:
        return None
    whole = read_meta(PatchMeta, patch.meta).whole
    found = []
    for change, section in zip(diff.changes, sections, strict=True):
        added = isinstance(change, v2.DiffAdd)
        if not added and not (whole and isinstance(change, v2.DiffModify)):
            return None
        assert isinstance(change, v2.DiffAdd | v2.DiffModify)
        texts = _read(change.path, section, added=added)
        if texts is None or change.file_type not in (None, v2.DiffFileType.TEXT):
            return None
        found.append(texts)
    return found


def summary(diff: v2.Diff) -> str:
    """Return a diff as text: a line for each change, and the patch."""
    lines = []
    for change in diff.changes:
        match change:
            case v2.DiffAdd() | v2.DiffDelete() | v2.DiffModify():
                lines.append(f"{change.__struct_config__.tag} {change.path}")
            case v2.DiffMove() | v2.DiffCopy():
                lines.append(f"{change.__struct_config__.tag} {change.old_path} -> {change.path}")
            case _:
                lines.append(" ".join(str(change[key]) for key in ("operation", "path") if key in change))
    listed = "\n".join(lines)
    return f"{listed}\n\n{diff.patch.text}" if diff.patch is not None else listed


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    complete = [f"{line}\n" for line in lines[:-1]]
    return [*complete, lines[-1]] if lines[-1] else complete


def _span(lines: Sequence[str]) -> str:
    return f"1,{len(lines)}" if lines else "0,0"


def _body(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """One hunk: the common beginning, the change, the common end."""
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    most -= head
    tail = next((at for at in range(most) if before[-1 - at] != after[-1 - at]), most)
    marked = [(" ", line) for line in before[:head]]
    marked += _changed(before[head : len(before) - tail], after[head : len(after) - tail])
    marked += [(" ", line) for line in before[len(before) - tail :]]
    return [
        f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{_NO_NEWLINE}" for sign, line in marked
    ]


def _changed(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    if max(len(before), len(after)) > COMPARED:
        parts: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(before), 0, len(after))]
    else:
        parts = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for kind, start, end, new_start, new_end in parts:
        if kind == "equal":
            yield from ((" ", line) for line in before[start:end])
        else:
            yield from (("-", line) for line in before[start:end])
            yield from (("+", line) for line in after[new_start:new_end])


def _read(path: str, section: str, *, added: bool) -> Texts | None:
    """Return the two sides of one file's section of a patch that shows all of it."""
    header, *lines = section.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    at = 0
    while at < len(lines) and not lines[at].startswith("@@"):
        line = lines[at]
        if line.startswith(("Binary files ", "GIT binary patch", "new file mode 12", "new file mode 16")):
            return None
        if line.startswith("+++ ") and _unquoted(line[4:].rstrip("\t")) != path:
            return None
        at += 1
    if at == len(lines):
        named = _quoted(path) in header or path in header
        return Texts(path, None if added else "", "") if named else None
    span = _HUNK.match(lines[at])
    if span is None:
        return None
    old_start, old_count, new_start, new_count = (1 if part is None else int(part) for part in span.groups())
    sides = _sides(lines[at + 1 :])
    if sides is None:
        return None
    old, new = sides
    if len(old) != old_count or len(new) != new_count or old_start > 1 or new_start > 1 or (added and old):
        return None
    return Texts(path, None if added else "".join(old), "".join(new))


def _sides(lines: Sequence[str]) -> tuple[list[str], list[str]] | None:
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    for line in lines:
        sign, text = line[:1], f"{line[1:]}\n"
        if sign == "\\":
            for side in last:
                side[-1] = side[-1][:-1]
            continue
        sides = {" ": (old, new), "-": (old,), "+": (new,)}.get(sign)
        if sides is None:  # also a second hunk: the lines between the two are not in the patch
            return None
        for side in sides:
            side.append(text)
        last = sides
    return old, new


def _quoted(path: str) -> str:
    """Return a path as Git writes it (DIFF-05)."""
    if path.isascii() and path.isprintable() and '"' not in path and "\\" not in path:
        return path
    named = {code: letter for letter, code in _ESCAPES.items()}
    made = []
    for byte in path.encode("utf-8", "surrogatepass"):
        if byte in named:
            made.append(f"\\{named[byte]}")
        else:
            made.append(chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
    return f'"{"".join(made)}"'


def _unquoted(name: str) -> str:
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    raw = _ESCAPED.sub(
        lambda found: (
            chr(int(found[1], 8) & 0xFF) if len(found[1]) == 3 else chr(_ESCAPES.get(found[1], ord(found[1])))
        ),
        name[1:-1],
    )
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")
