"""The environment that a child process inherits: ours, without what belongs to Antiphon itself.

`ANTIPHON_TOKEN` lets its holder into a hub. An agent, a terminal or an MCP server has no use for it, and may
hand its environment on to anything. So no variable of the prefix is inherited but those listed here: a new
secret is left out until somebody lists it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

PREFIX = "ANTIPHON_"
INHERITED = frozenset({"ANTIPHON_HUB_MARK", "ANTIPHON_REHEARSAL_PACE", "ANTIPHON_WEB_RELOAD"})
"""Variables of ours that are no secret and that children need: the mark by which orphans are found, and
settings of the built-in agent and of the page."""


def child_environment(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a child process: what it inherits, and what its caller `added` for it.

    A variable that the caller names is passed on, whatever it is called.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(PREFIX) or name in INHERITED
    }
    return {**inherited, **(added or {})}
