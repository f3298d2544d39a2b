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
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub_client import (
    AT_A_HUB,
    find_hub,
    find_session,
    no_hub,
    noted_wait,
    run_reporting,
    tls_for,
    user_name,
)
from antiphon.cli.program import command_line
from antiphon.client import Client, Reconnect
from antiphon.errors import LinkLost
from antiphon.hub import HubFolder


def run_chat(
    *,
    session: str | None,
    agent: Sequence[str],
    name: str | None,
    place: HubPlace,
) -> Exit:
    code = 0

    async def work() -> None:
        nonlocal code
        _check_terminal(place.data)
        tui: Any = _load()
        asked = {
            "name": name or user_name(),
            "cwd": os.getcwd(),
            "history": HubFolder(place.data).path / "prompts.jsonl",
        }
        if agent:
            if session not in (None, "new"):
                raise Failure(
                    "give either SESSION, which is a session of the hub, or an AGENT after --", Exit.USAGE
                )
            with noted_wait(f"waiting for {agent[0]} to start") as started:
                chat = tui.Chat(
                    target=resolve(agent), place=agent[0], new=True, on_connected=started, **asked
                )
                code = await _directly(tui, chat)
            return
        found = find_hub(place)
        if found is None and session is not None:
            raise no_hub(place)
        if found is None:
            from antiphon.rehearsal import make_agent

            code = await tui.run_chat(
                tui.Chat(target=make_agent(), place="the built-in agent", new=True, **asked)
            )
            return

        async def named(client: Client) -> tuple[str, str]:
            info = await find_session(client, str(session))
            return info.session_id, info.cwd

        address, secret = found
        with noted_wait(AT_A_HUB) as reached:
            chat = tui.Chat(
                target=address,
                token=secret,
                tls=tls_for(address),
                version=2,
                place=address,
                reconnect=Reconnect(find=lambda: find_hub(place)),
                session=None if session in (None, "new") else named,
                new=session == "new",
                on_connected=reached,
                **asked,
            )
            code = await tui.run_chat(chat)

    reported = run_reporting(work)
    return reported if reported is not Exit.DONE else Exit.ERROR if code else Exit.DONE


async def _directly(tui: Any, chat: Any) -> int:
    try:
        code: int = await tui.run_chat(chat)
    except LinkLost as error:
        words = f" (last line on stderr: {error.stderr[-1]})" if error.stderr else ""
        raise Failure(f"{chat.place} ended: {error.reason}{words}") from None
    return code


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
