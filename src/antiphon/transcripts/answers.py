"""The keys that answer a permission request: the same on the page, in the terminal UI and on the command
line (`web/static/js/views/permission.js`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from antiphon.schema import v2

ANSWER_KEYS = {
    "y": v2.PermissionOptionKind.ALLOW_ONCE,
    "a": v2.PermissionOptionKind.ALLOW_ALWAYS,
    "n": v2.PermissionOptionKind.REJECT_ONCE,
    "N": v2.PermissionOptionKind.REJECT_ALWAYS,
}
"""What each key means, in whatever order the agent lists its options."""

O = TypeVar("O", bound=v2.PermissionOption)  # noqa: E741  # the option


def option_for(key: str, options: Sequence[O]) -> O | None:
    """Return the option that a key chooses: the first one of its kind.

    `n` also chooses to reject always, and `N` to reject once, if nothing else rejects: whoever presses one of
    them means no. `y` never grants more than once.
    """
    kind = ANSWER_KEYS.get(key)
    found = next((option for option in options if option.kind == kind), None)
    if found is None and key in ("n", "N"):
        found = next((option for option in options if str(option.kind).startswith("reject")), None)
    return found


def option_keys(options: Sequence[v2.PermissionOption]) -> list[str]:
    """Return the key of each option, "" for one that has only its number."""
    keys = [""] * len(options)
    for key, kind in ANSWER_KEYS.items():
        at = next((at for at, option in enumerate(options) if option.kind == kind), None)
        if at is not None:
            keys[at] = key
    for at, option in enumerate(options):
        if option.kind == v2.PermissionOptionKind.REJECT_ALWAYS and "n" not in keys:
            keys[at] = "n"
    return keys
