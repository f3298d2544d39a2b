"""The work of the good agent: what the text of a prompt makes it do, and what it asks the user.

Every method is one decision, so that a broken agent overrides one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any

from tests.conformance.good.peer import Json
from tests.conformance.good.session import Session, Turn
from tests.conformance.good.turns import Turns

OPTIONS = (
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
)


class WorkFailed(Exception):
    """The work of a turn failed, as a model does that cannot be reached."""


class Worker(Turns):
    pace = 0.005
    """Seconds between two steps of slow work."""
    steps = 1000
    """How many steps slow work has."""

    # --- questions ---

    async def ask_permission(self, turn: Turn, call: str, title: str) -> bool:
        """Ask the user, and return whether an offered option allows it. v2 shows that the turn waits."""
        turn.questions += 1
        if turn.questions == 1:
            self.state_update(turn.session, "requires_action")
        try:
            response = await self.ask("session/request_permission", self.permission(turn, call, title))
        finally:
            turn.questions -= 1
        if not turn.questions:
            self.state_update(turn.session, "running")  # PROMPT-V2-24, PROMPT-V2-25
        return self.allows(response.get("result"))

    def permission(self, turn: Turn, call: str, title: str) -> Json:
        params: Json = {"sessionId": turn.session.id, "options": list(OPTIONS)}
        if self.version == 1:
            return params | {"toolCall": {"toolCallId": call, "title": title}}
        return params | {"title": title, "subject": {"type": "tool_call", "toolCall": {"toolCallId": call}}}

    def allows(self, result: Any) -> bool:
        """Read anything but a selected allow option as no (PERM-V2-06 to PERM-V2-08)."""
        outcome = result.get("outcome") if isinstance(result, dict) else None
        if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
            return False
        return any(
            option["optionId"] == outcome.get("optionId") and option["kind"].startswith("allow")
            for option in OPTIONS
        )

    # --- what a prompt makes the agent do ---

    def work(self, turn: Turn) -> Coroutine[Any, Any, None]:
        """Choose the work by the text of the prompt."""
        works = {
            "Raise when cancelled": self.raise_when_cancelled,
            "Count slowly": self.count_slowly,
            "Read the file": self.read_file,
            "Ask twice": self.ask_twice,
            "Ask for permission": self.run_command,
            "Work in background": self.work_in_background if self.version == 2 else self.reply,
            "sleep": self.sleep,
            "Plan": self.plan,
            "Fail": self.fail,
            "/echo": self.echo,
        }
        for text, work in works.items():
            if text in turn.prompt.text:
                return work(turn)
        return self.reply(turn)

    async def reply(self, turn: Turn) -> None:
        await self.think(turn, "The user wants ", "a short answer.")
        await self.say(turn, "Here ", "is ", "one sentence.")
        self.report_title(turn.session, turn.prompt.text)
        self.report_usage(turn.session)

    async def echo(self, turn: Turn) -> None:
        """The slash command: its input is the text after the name and whitespace (CMD-03)."""
        await self.say(turn, turn.prompt.text.partition("/echo")[2].strip() or "(nothing)")

    async def count_slowly(self, turn: Turn) -> None:
        id = self.next_message_id(turn.session)
        for number in range(1, self.steps + 1):
            block = {"type": "text", "text": f"{number}\n"}
            turn.session.add_block("agent_message", id, block)
            self.send_chunk(turn.session, "agent_message", id, block)
            await asyncio.sleep(self.pace)

    async def raise_when_cancelled(self, turn: Turn) -> None:
        try:
            await self.count_slowly(turn)
        except asyncio.CancelledError:
            raise RuntimeError("the library was aborted") from None

    async def read_file(self, turn: Turn) -> None:
        """Read a file with a tool; `slowly` keeps the tool busy until the turn is cancelled."""
        session = turn.session
        await self.think(turn, "The file will tell.")
        path = os.path.join(session.cwd, "README.md")
        fields = {"name": "read_file", "locations": [{"path": path}], "rawInput": {"path": "README.md"}}
        call = self.new_tool_call(session, "Read README.md", "read", **fields)
        self.update_tool_call(session, call, status="in_progress")
        if "slowly" in turn.prompt.text:
            await self.read_slowly(session, call)
        content = [{"type": "content", "content": {"type": "text", "text": self.read_text(path)}}]
        self.update_tool_call(session, call, status="completed", content=content)
        await self.say(turn, "I have read ", "the file.")

    async def sleep(self, turn: Turn) -> None:
        """Run a tool that is busy until the turn is cancelled."""
        call = self.new_tool_call(turn.session, "sleep 60", "execute", name="shell")
        self.update_tool_call(turn.session, call, status="in_progress")
        await self.read_slowly(turn.session, call)
        self.update_tool_call(turn.session, call, status="completed")

    def read_text(self, path: str) -> str:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(1000) or "(empty)"
        except OSError:
            return "The file does not exist."

    async def read_slowly(self, session: Session, call: str) -> None:
        for number in range(self.steps):
            self.add_tool_output(session, call, f"line {number}\n")
            await asyncio.sleep(self.pace)

    async def run_command(self, turn: Turn) -> None:
        call = self.new_tool_call(turn.session, "echo antiphon", "execute", name="shell")
        allowed = await self.ask_permission(turn, call, "Run `echo antiphon`?")
        await self.use_answer(turn, call, allowed=allowed)

    async def ask_twice(self, turn: Turn) -> None:
        """Ask two questions at once, and go on when both are answered."""
        titles = ("echo one", "echo two")
        calls = [self.new_tool_call(turn.session, title, "execute", name="shell") for title in titles]
        questions = [self.ask_permission(turn, call, "Run `echo`?") for call in calls]
        for call, allowed in zip(calls, await asyncio.gather(*questions), strict=True):
            await self.use_answer(turn, call, allowed=allowed)

    async def use_answer(self, turn: Turn, call: str, *, allowed: bool) -> None:
        if allowed:
            await self.proceed(turn, call)
        else:
            await self.give_up(turn, call)

    async def proceed(self, turn: Turn, call: str) -> None:
        self.update_tool_call(turn.session, call, status="in_progress")
        self.add_tool_output(turn.session, call, "antiphon\n")
        self.update_tool_call(turn.session, call, status="completed", rawOutput={"exitCode": 0})
        await self.say(turn, "The command ", "has run.")

    async def give_up(self, turn: Turn, call: str) -> None:
        self.update_tool_call(turn.session, call, status="failed")
        await self.say(turn, "The command ", "was not run.")

    async def plan(self, turn: Turn) -> None:
        """Report a plan, whole each time (PLAN-V1-02, PLAN-V2-02)."""
        texts = ("Look", "Think", "Answer")
        for done in range(len(texts) + 1):
            entries = [
                {"content": text, "priority": "medium", "status": self.plan_status(index, done)}
                for index, text in enumerate(texts)
            ]
            self.send_plan(turn.session, "plan", entries)
            await asyncio.sleep(0)
        await self.say(turn, "The plan ", "is done.")

    def plan_status(self, index: int, done: int) -> str:
        if index < done:
            return "completed"
        return "in_progress" if index == done else "pending"

    async def fail(self, turn: Turn) -> None:
        await self.say(turn, "I will ", "try.")
        raise WorkFailed

    # --- background work, v2 ---

    async def work_in_background(self, turn: Turn) -> None:
        """Start a tool call that outlives the turn, and that the user can cancel."""
        session = turn.session
        call = self.new_tool_call(session, "Watch the build", "execute", name="watch")
        self.update_tool_call(session, call, status="in_progress", capabilities={"cancel": {}})
        session.watched[call] = self.spawn(self.read_slowly(session, call))
        session.background[call] = self.spawn(self.supervise_background(session, call))
        await self.say(turn, "The build ", "is watched.")

    async def supervise_background(self, session: Session, call: str) -> None:
        """Report the end of background work, then the state without it (PROMPT-V2-46)."""
        work = session.watched[call]
        await asyncio.wait([work])
        self.end_background(session, call, "cancelled" if work.cancelled() else "completed")

    def end_background(self, session: Session, call: str, status: str) -> None:
        self.update_tool_call(session, call, status=status, capabilities=None)  # TOOL-V2-11
        del session.background[call], session.watched[call]
        self.state_update(session, session.state)
