"""Diffs: what is made whole is read back exactly, and nothing else is taken for whole."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.bridge.diffs import COMPARED, Texts, summary, texts_of, whole_diff
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from tests.requirements.marks import requirement

LINES = st.lists(
    st.sampled_from(["a", "b", "", "-x", "+y", "\\ z", "@@ -1 +1 @@", "diff --git q q", "\r"]), max_size=8
)
TEXTS = LINES.map("\n".join)
PATHS = st.sampled_from(["/a.txt", "/with space", '/quo"ted', "/back\\slash", "/ümlaut", "/tab\t"])


@given(PATHS, st.none() | TEXTS, TEXTS)
def test_24_4_both_sides_come_back_exactly(path: str, old: str | None, new: str) -> None:
    assert texts_of(whole_diff(path, old, new)) == [Texts(path, old, new)]


@requirement("DIFF-05")
def test_the_patch_is_git_s_with_absolute_paths() -> None:
    diff = whole_diff("/a", "one\ntwo\n", "one\n2")
    assert diff.patch is not None
    assert diff.patch.text == (
        "diff --git /a /a\n--- /a\n+++ /a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n"
    )
    assert diff.changes == [v2.DiffModify(path="/a", file_type=v2.DiffFileType.TEXT)]


@requirement("DIFF-05")
def test_what_is_the_same_between_two_changes_is_not_shown_as_changed() -> None:
    patch = whole_diff("/a", "one\ntwo\nthree\nfour\n", "1\ntwo\nthree\n4\n").patch
    assert patch is not None
    assert patch.text.partition("@@\n")[2] == "-one\n+1\n two\n three\n-four\n+4\n"


@pytest.mark.parametrize("lines", [COMPARED, COMPARED + 2])
def test_24_4_long_ones_come_back_exactly_too(lines: int) -> None:
    old = "".join(f"{n}\n" for n in range(lines))
    new = "".join(f"{n if n % 2 else -n}\n" for n in range(1, lines))
    assert texts_of(whole_diff("/a", old, new)) == [Texts("/a", old, new)]


@requirement("DIFF-05")
@pytest.mark.parametrize(("old", "new"), [("one\ntwo\n", "one\n2"), ("", "x\n"), ("a\nb\nc", "a\nB\nc\nd\n")])
def test_git_applies_it(tmp_path: Path, old: str, new: str) -> None:
    if shutil.which("git") is None:
        pytest.skip("no git here")
    (tmp_path / "f").write_text(old)
    patch = whole_diff("/f", old, new).patch
    assert patch is not None
    relative = patch.text.replace(" /f", " f")
    subprocess.run(["git", "apply", "-p0", "-"], cwd=tmp_path, input=relative.encode(), check=True)
    assert (tmp_path / "f").read_text() == new


WHOLE = whole_diff("/a", "one\n", "two\n")
ADDED = whole_diff("/a", None, "two\n")


def changed(diff: v2.Diff, old: str, new: str) -> v2.Diff:
    assert diff.patch is not None
    assert old in diff.patch.text
    return msgspec.structs.replace(
        diff, patch=msgspec.structs.replace(diff.patch, text=diff.patch.text.replace(old, new))
    )


@pytest.mark.parametrize(
    "diff",
    [
        v2.Diff(changes=WHOLE.changes),
        v2.Diff(changes=[], patch=WHOLE.patch),
        v2.Diff(changes=[v2.DiffDelete(path="/a")], patch=WHOLE.patch),
        v2.Diff(changes=[Unknown(operation="_x", path="/a")], patch=WHOLE.patch),
        v2.Diff(changes=[v2.DiffAdd(path="/a", file_type=v2.DiffFileType.BINARY)], patch=ADDED.patch),
        v2.Diff(changes=[v2.DiffModify(path="/other")], patch=WHOLE.patch),
        changed(WHOLE, "@@ -1,1", "@@ -7,1"),
        changed(WHOLE, "@@ -1,1", "@@ -1,2"),
        changed(WHOLE, "+two\n", "+two\n@@ -9 +9 @@\n-x\n+y\n"),
        changed(WHOLE, "@@ -1,1 +1,1 @@", "@@ odd"),
        changed(ADDED, "@@ -0,0", f"@@ -0,{'0' * 5000}"),  # Python reads no number with so many digits
        changed(ADDED, "new file mode 100644", "new file mode 120000"),
        changed(ADDED, "+two\n", " two\n"),
        changed(WHOLE, "diff --git", "From: me\ndiff --git"),
    ],
)
def test_24_4_nothing_else_is_taken_for_whole(diff: v2.Diff) -> None:
    assert texts_of(diff) is None
    assert isinstance(summary(diff), str)


def test_24_4_a_patch_that_does_not_say_it_is_whole_is_not() -> None:
    assert WHOLE.patch is not None
    for meta in (None, {"antiphon": {"whole": "yes"}}, {"antiphon": True}):
        patch = msgspec.structs.replace(WHOLE.patch, meta=meta)
        assert texts_of(v2.Diff(changes=WHOLE.changes, patch=patch)) is None


def test_several_files_in_one_diff() -> None:
    assert WHOLE.patch is not None
    assert ADDED.patch is not None
    other = whole_diff("/b", None, "new")
    assert other.patch is not None
    patch = msgspec.structs.replace(WHOLE.patch, text=WHOLE.patch.text + other.patch.text)
    diff = v2.Diff(changes=[*WHOLE.changes, *other.changes], patch=patch)
    assert texts_of(diff) == [Texts("/a", "one\n", "two\n"), Texts("/b", None, "new")]
