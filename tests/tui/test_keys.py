"""The keys as they are bound, in the help, and in the documentation: the same ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding

from antiphon.tui.app import ChatApp
from antiphon.tui.screens.chat import ChatScreen
from antiphon.tui.screens.form import FormScreen
from antiphon.tui.screens.help import KEYS
from antiphon.tui.screens.sessions import SessionList, SessionsScreen
from antiphon.tui.widgets.composer import Composer
from antiphon.tui.widgets.question_card import QuestionCard
from antiphon.tui.widgets.queue_panel import QueuePanel
from antiphon.tui.widgets.transcript import Transcript

DOCS = Path(__file__).parents[2] / "docs" / "chat.md"
WHERE: dict[str, tuple[type[Any], ...]] = {
    "Anywhere": (ChatApp,),
    "Prompt": (Composer, ChatScreen),
    "Questions": (QuestionCard, FormScreen),
    "Transcript": (Transcript, ChatScreen),
    "Queue": (QueuePanel,),
    "Sessions": (SessionsScreen, SessionList),
}
OF_TEXTUAL = {"ctrl+p", "ctrl+q", "up", "down", "tab", "1…9", "enter"}
"""Bound by what ours are made of, or told together."""
NAMES = {"pgup": "pageup", "pgdn": "pagedown", "esc": "escape", "/": "slash", "?": "question_mark"}


def named(shown: str) -> set[str]:
    """As Textual names the keys that the help shows."""
    keys = set()
    for key in shown.split(", "):
        lower = key if len(key) == 1 else key.lower().replace("-", "+")
        keys.add(NAMES.get(lower, lower))
    return keys


def bound(widget: type[Any]) -> Iterator[str]:
    """Yield the keys that a class binds itself, as Textual names them."""
    for binding in widget.__dict__.get("BINDINGS", ()):
        assert isinstance(binding, Binding)
        yield from binding.key.split(",")


@pytest.mark.parametrize("where", KEYS)
def test_what_the_help_names_is_bound(where: str) -> None:
    known = {key for widget in WHERE[where] for key in bound(widget)} | OF_TEXTUAL
    if where == "Prompt":
        known.add("slash")  # it is typed
    for shown, _ in KEYS[where]:
        assert named(shown) <= known, shown


@pytest.mark.parametrize("where", KEYS)
def test_what_is_bound_is_in_the_help(where: str) -> None:
    told = " ".join(f"{keys} {what}" for part in KEYS.values() for keys, what in part).lower()
    for widget in WHERE[where]:
        for key in bound(widget):
            shown = {value: name for name, value in NAMES.items()}.get(key, key.replace("+", "-"))
            alternatives = {"delete", "home", "end", "space", "ctrl-n", "b", "pagedown", "k", "2", "3", "4",
                            "5", "6", "7", "8", "9"}  # fmt: skip
            assert shown.lower() in told or shown in alternatives, key


def test_the_documentation_has_the_same_keys() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    documented = {(keys.replace("`", ""), what) for keys, what in rows}
    for part in KEYS.values():
        for keys, what in part:
            assert (keys, what) in documented, keys
