"""A session whose agent sends no title is listed under its first prompt; clients get what the agent sent."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.hub.doors import DEADLINE, doors


async def test_a_session_is_listed_under_its_first_prompt_until_somebody_names_it(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]

        async def title(id: str) -> str | None:
            [info] = (await owner.call(id, "session/list"))["sessions"]
            found: str | None = info.get("title")
            return found

        assert await title("l1") is None
        for number, text in enumerate(("setup", "setup again")):
            owner.prompt(f"p{number}", session, text)
            await owner.update("state_update", state="idle")
            assert await title(f"l2-{number}") == "setup"
        assert "session_info_update" not in str(owner.updates())
        await owner.call("t", "session/set_title", sessionId=session, title="A better name")
        assert await title("l3") == "A better name"
