"""Writes docs/translation.md from the table of losses: `python -m tools.translation`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from antiphon.bridge.losses import LOSSES, Announced

PAGE = Path(__file__).parents[1] / "docs" / "translation.md"

HEAD = """\
# Between v1 and v2

Sessions are kept in v2. The bridge upgrades what a v1 agent sends and downgrades what a v1 client gets,
so every pair works, and what both versions can express is preserved. This page lists what cannot cross,
what is sent instead, and how the loss is announced. It is made from the table in
`antiphon/bridge/losses.py` (`python -m tools.translation`); a branch of the bridge that loses something
without naming a row fails the tests.

* **meta**: the original is under `acp.bridge/original` in the `_meta` of the replacement;
* **reported**: nothing is sent that could carry it;
* **refused**: the request is answered with `-32602`, and `data.reason` names the row.

Losses of the first two kinds are logged at DEBUG by `antiphon.bridge`, and a hub counts them by row: the
metric is `antiphon_bridge_losses_total`.

**A v1 client of a v1 agent** loses nothing of what the agent sends, also behind a hub: the journal keeps
the agent's own update wherever a downgrade would not restore it (unknown fields and kinds, `null` for
absent, modes). What the client did not ask for (notices, compactions, plans by id, switches) is
downgraded all the same, and so is a tool call that shows a terminal of the hub. A loaded session is sent
in its present state: each item once, whole and downgraded; of unknown updates the last 256, as they were
written.

**Turns.** v1 has no session state. A v1 agent's turn opens with a prompt and ends with its response;
updates outside a turn belong to the session. A v1 client gets the response to its prompt when the turn
ends, prompts of other clients as user message chunks, and the agent's own work as updates between turns.
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
