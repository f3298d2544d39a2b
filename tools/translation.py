"""Writes docs/translation.md from the table of losses: `python -m tools.translation`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from antiphon.bridge.losses import LOSSES, Announced

PAGE = Path(__file__).parents[1] / "docs" / "translation.md"

HEAD = """\
# Between v1 and v2

Inside, sessions speak v2. A v1 agent is lifted to it and a v1 client gets it lowered, so every pair works;
what both versions can say comes back as it was. This page is what cannot cross, what is done instead, and
how that is announced. It is made of the table in `antiphon/bridge/losses.py` (`python -m
tools.translation`); a branch of the bridge that loses something without naming a row fails the tests.

* **meta**: the original stands under `acp.bridge/original` in the `_meta` of what is sent instead;
* **reported**: nothing is sent that could carry it; whoever runs the bridge is told (`report`);
* **refused**: the request is answered with `-32602`, and `data.reason` names the row.

**A v1 client of a v1 agent** loses none of what the agent sends, also behind a hub: what the agent wrote is
kept beside what it was lifted to wherever lowering would not give it back (fields and kinds that nobody
here knows, `null` for absent, modes). What the client did not ask for (notices, compactions, plans by id,
switches) is lowered all the same, and so is a tool call that shows a terminal that the hub ran. A session
that is loaded is told as it is now: each item once, whole, lowered; updates that nobody knows, the last 256
of them, as they were written.

**Turns.** v1 has no word for the session's state. A v1 agent's turn opens with a prompt and ends with its
answer; what it sends outside of one belongs to the session. A v1 client gets the answer to its prompt when
the turn ends, what others prompt as user message chunks, and what the agent starts by itself as updates
between turns.
"""


def page() -> str:
    parts = [HEAD]
    for topic, rows in groupby(LOSSES.values(), key=lambda loss: loss.topic):
        parts.append(
            f"\n## {topic}\n\n| Row | What does not cross | Instead | Announced |\n|---|---|---|---|\n"
        )
        parts += [f"| `{row.name}` | {row.lost} | {row.instead} | {row.announced} |\n" for row in rows]
    assert all(announced in HEAD for announced in Announced)
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
