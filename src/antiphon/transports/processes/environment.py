"""The environment that a child process inherits: that of this process, without Antiphon's variables.

`ANTIPHON_TOKEN` gives access to a hub. Agents, terminals and MCP servers do not need it, and may pass their
environment on. So a child inherits only the variables with the prefix that are listed here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

PREFIX = "ANTIPHON_"
INHERITED = frozenset({"ANTIPHON_HUB_MARK", "ANTIPHON_REHEARSAL_PACE", "ANTIPHON_WEB_RELOAD"})
"""Variables that are not secret and that children need: the mark by which a hub finds orphans, and settings
of the built-in agent and of the page."""


def child_environment(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a child process: the inherited variables and those that the caller `added`.

    Added variables are passed on whatever their names are.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(PREFIX) or name in INHERITED
    }
    return {**inherited, **(added or {})}
