"""`antiphon chat`: finds what to talk with, and starts the terminal UI over it.

The UI is loaded by its name: it stands beside this package, not below it, and needs what not everybody has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from antiphon.cli.agents import resolve
from antiphon.cli.exits import Exit, Failure
from antiphon.cli.own_command import here
from antiphon.cli.patience import AT_A_HUB, noted_wait
from antiphon.cli.reaching import find_hub, find_session, own_name, run_told
from antiphon.cli.trust import tls_for
from antiphon.client import Client, Reconnect
from antiphon.errors import LinkLost
from antiphon.hub import HubFolder


def run_chat(
    *,
    session: str | None,
    agent: Sequence[str],
    name: str | None,
    hub: str | None,
    token: str | None,
    data: str | None,
) -> Exit:
    code = 0

    async def work() -> None:
        nonlocal code
        _check_terminal(data)
        tui: Any = _load()
        asked = {
            "name": name or own_name(),
            "cwd": os.getcwd(),
            "history": HubFolder(data).path / "prompts.jsonl",
        }
        if agent:
            if session not in (None, "new"):
                raise Failure("SESSION is one of the hub's; an AGENT after -- has its own", Exit.USAGE)
            with noted_wait(f"waiting for {agent[0]} to start") as started:
                chat = tui.Chat(
                    target=resolve(agent), place=agent[0], new=True, on_connected=started, **asked
                )
                code = await _directly(tui, chat)
            return
        found = find_hub(hub, token, data)
        if found is None and session is not None:
            raise Failure(f"no hub runs in {HubFolder(data).path}: start one with `{here('serve', data)}`")
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
                reconnect=Reconnect(find=lambda: find_hub(hub, token, data)),
                session=None if session in (None, "new") else named,
                new=session == "new",
                on_connected=reached,
                **asked,
            )
            code = await tui.run_chat(chat)

    told = run_told(work)
    return told if told is not Exit.DONE else Exit.ERROR if code else Exit.DONE


async def _directly(tui: Any, chat: Any) -> int:
    try:
        code: int = await tui.run_chat(chat)
    except LinkLost as error:
        words = f" (its last words: {error.stderr[-1]})" if error.stderr else ""
        raise Failure(f"{chat.place} ended: {error.reason}{words}") from None
    return code


def _check_terminal(data: str | None) -> None:
    """Raises `Failure`."""
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return
    raise Failure(
        f"there is no terminal to draw on: `{here('attach', data)}` follows a session as plain lines, and "
        f"`{here('prompt')} TEXT` asks once",
        Exit.USAGE,
    )


def _load() -> Any:
    """Raises `Failure`."""
    if find_spec("textual") is None:
        raise Failure("this needs Textual: install it with `pip install 'antiphon[tui]'`", Exit.ERROR)
    return import_module("antiphon.tui")
