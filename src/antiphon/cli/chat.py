"""`antiphon chat`: find a hub or an agent, and start the terminal UI.

The UI is imported by name, because it needs Textual, which is an extra.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from antiphon.cli.agents import resolve
from antiphon.cli.commands.options import HubPlace
from antiphon.cli.error_lines import last_stderr_line
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub_client import (
    AT_A_HUB,
    find_hub,
    find_session,
    no_hub,
    noted_wait,
    reporting,
    tls_for,
    user_name,
)
from antiphon.cli.program import command_line
from antiphon.client import Client, Reconnect
from antiphon.errors import LinkLost
from antiphon.hub import HubFolder


@reporting
async def run_chat(*, session: str | None, agent: Sequence[str], name: str | None, place: HubPlace) -> Exit:
    async def named(client: Client) -> tuple[str, str]:
        info = await find_session(client, str(session))
        return info.session_id, info.cwd

    _check_terminal(place.data)
    tui: Any = _load()
    if agent and session not in (None, "new"):
        raise Failure("give either SESSION, which is a session of the hub, or an AGENT after --", Exit.USAGE)
    found = None if agent else find_hub(place)
    target: dict[str, Any]
    if found is not None:
        address, token = found
        target = {
            "target": address,
            "place": address,
            "token": token,
            "tls": tls_for(address),
            "version": 2,
            "reconnect": Reconnect(find=lambda: find_hub(place)),
            "session": None if session in (None, "new") else named,
            "new": session == "new",
        }
    elif agent:
        target = {"target": resolve(agent), "place": agent[0], "new": True}
    elif session is not None:
        raise no_hub(place)
    else:
        from antiphon.rehearsal import make_agent

        target = {"target": make_agent(), "place": "the built-in agent", "new": True}
    waiting = f"waiting for {target['place']} to start" if found is None else AT_A_HUB
    with noted_wait(waiting) as connected:
        chat = tui.Chat(
            name=name or user_name(),
            cwd=os.getcwd(),
            history=HubFolder(place.data).path / "prompts.jsonl",
            on_connected=connected,
            **target,
        )
        try:
            return Exit.ERROR if await tui.run_chat(chat) else Exit.DONE
        except LinkLost as lost:
            if not agent:
                raise
            raise Failure(f"{agent[0]} ended: {lost.reason}{last_stderr_line(lost)}") from None


def _check_terminal(data: str | None) -> None:
    """Raises `Failure` if stdin or stdout is not a terminal."""
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return
    raise Failure(
        f"antiphon chat needs a terminal: `{command_line('attach', data)}` follows a session as plain text, "
        f"and `{command_line('prompt')} TEXT` sends one prompt",
        Exit.USAGE,
    )


def _load() -> Any:
    """Import the terminal UI. Raises `Failure`."""
    if find_spec("textual") is None:
        raise Failure(
            "antiphon chat needs Textual: install it with `pip install 'antiphon[tui]'`", Exit.ERROR
        )
    return import_module("antiphon.tui")
