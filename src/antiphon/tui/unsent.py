"""What is said at the end about prompts that were written and not sent."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.tui.text.plain import plain


def farewell(unsent: int, unconfirmed: int, lost: Sequence[str] = ()) -> str | None:
    """Return the message for users who quit, `None` if there is nothing to say.

    unsent: how many prompts and drafts the agent never got
    unconfirmed: how many were sent, and not answered
    lost: the texts that the history could not store, which are shown in full
    """
    parts = []
    if unsent:
        what = "A prompt was" if unsent == 1 else f"{unsent} prompts were"
        parts.append(f"{what} not sent.")
    if unconfirmed:
        what = "A prompt was" if unconfirmed == 1 else f"{unconfirmed} prompts were"
        it = "it" if unconfirmed == 1 else "they"
        parts.append(f"{what} sent but not confirmed: {it} may still arrive.")
    kept = unsent + unconfirmed - len(lost)
    if kept:
        parts.append("In the next antiphon chat, press Up in an empty prompt to get the text back.")
    if lost:
        parts.append("This text could not be stored:")
    return "\n".join([" ".join(parts), *map(plain, lost)]) if parts else None
