"""The keys, as people look them up: for the help screen, and for the documentation, which a test compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from textual.binding import Binding

KEYS: dict[str, list[tuple[str, str]]] = {
    "Anywhere": [
        ("F1", "this help; ? too, outside of text"),
        ("Ctrl-P", "all commands, by name"),
        ("Ctrl-C", "stop the turn; again: quit"),
        ("Ctrl-Q", "quit; the session goes on at the hub"),
        ("Ctrl-T", "light or dark"),
        ("Tab", "to the answers, the queue, the transcript, and back"),
    ],
    "Writing": [
        ("Enter", "send; while the agent works: into the queue"),
        ("Ctrl-J", "a new line; Alt-Enter and Shift-Enter too, where the terminal tells them apart"),
        ("Ctrl-S", "steer: into the turn that is at work"),
        ("Ctrl-G", "interrupt: instead of the turn that is at work"),
        ("Esc", "stop the turn"),
        ("/", "commands of the agent; Tab completes"),
        ("Up, Down", "prompts of before"),
        ("PgUp, PgDn", "scroll the transcript"),
        ("Ctrl-F", "search"),
        ("Ctrl-B", "sidebar"),
        ("Ctrl-O", "options and modes"),
        ("Ctrl-L", "sessions"),
        ("Ctrl-N", "a new session"),
        ("Ctrl-R", "rename the session"),
    ],
    "Answering": [
        ("1…9", "choose; y and n allow once and reject"),
        ("Up, Down, Enter", "the same, by pointing"),
        ("PgUp, PgDn", "read what is asked, where it is long"),
        ("Ctrl-S", "send a form; Esc leaves it for later"),
    ],
    "Transcript": [
        ("Up, Down", "from one part to the next; k and j too"),
        ("Enter", "unfold; e unfolds all"),
        ("y", "copy; text that was marked with the mouse: Ctrl-C"),
        ("f", "fork the session after this message"),
        ("/", "search; n upwards, N downwards"),
        ("g, G", "to the beginning, to the end"),
        ("Esc", "back to writing"),
    ],
    "Queue": [
        ("e", "edit; Enter puts it back"),
        ("Alt-Up, Alt-Down", "move; K and J too"),
        ("d", "withdraw"),
        ("r", "go on, after a stop"),
    ],
    "Sessions": [
        ("Enter", "open"),
        ("n", "new"),
        ("r", "rename"),
        ("f", "fork"),
        ("d", "delete, once you agree"),
        ("q", "quit"),
    ],
}


def bound(widget: type[Any]) -> Iterator[str]:
    """The keys that a class of ours binds, as Textual names them."""
    for binding in widget.__dict__.get("BINDINGS", ()):
        assert isinstance(binding, Binding)
        yield from binding.key.split(",")
