"""Lines are broken between words, however the text comes."""

from __future__ import annotations

import pytest

from antiphon.cli.output.word_wrap import WordWrap, wrap_words

TEXT = """\
An antiphon is sung by two choirs.

> One of them begins, and the other answers.

- a point that is longer than a line of twenty
10. so is this one, which has a number

| a table | keeps | its lines |
```
code keeps its lines, too, to the end
```
 名前は吾輩は猫である。名前 name
a-word-that-is-longer-than-any-line of words
"""
WRAPPED = """\
An antiphon is sung
by two choirs.

> One of them
> begins, and the
> other answers.

- a point that is
  longer than a line
  of twenty
10. so is this one,
    which has a
    number

| a table | keeps | its lines |
```
code keeps its lines, too, to the end
```
 名前は吾輩は猫であ
 る。名前 name
a-word-that-is-longer-than-any-line
of words
"""


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_however_it_comes_it_is_broken_the_same(size: int) -> None:
    wrapping = WordWrap(20)
    shown = "".join(wrapping.write(TEXT[at : at + size]) for at in range(0, len(TEXT), size))
    assert shown + wrapping.finish() == WRAPPED


def test_every_word_but_the_last_is_shown_at_once() -> None:
    wrapping = WordWrap(20)
    assert wrapping.write("one two thr") == "one two"
    assert wrapping.write("ee ") == " three"
    assert wrapping.finish() == ""
    assert wrapping.write("\n猫で") == "\n猫で"  # no spaces are waited for where there are none
    assert wrapping.write("x" * 2000) == "\n" + "x" * 2000


def test_colours_take_no_room() -> None:
    assert wrap_words("\x1b[2m· one two three\x1b[0m", 15) == "\x1b[2m· one two three\x1b[0m"
    assert wrap_words("\x1b[2m· one two three\x1b[0m", 14) == "\x1b[2m· one two\n  three\x1b[0m"
