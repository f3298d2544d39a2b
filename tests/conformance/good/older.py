"""Good agents of older revisions of the v2 draft: they lack what came later, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.conformance.good import params as check
from tests.conformance.good.agent import SUPPORTED, GoodAgent
from tests.conformance.good.peer import INVALID_PARAMS, INVALID_REQUEST, Json, Refused, Request
from tests.conformance.good.session import Prompt, Session, Turn


class AlphaTenAgent(GoodAgent):
    """An agent of alpha.10: no background list, no cancel of one tool call, and other rules for closing."""

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        methods = super().requests()
        for later in ("tool_call/cancel", "terminal/cancel"):
            methods.pop(later, None)
        return methods

    def receive_array(self, frames: list[Any]) -> None:
        """Answer a batch with one array (RPC-15)."""
        if not frames:
            return super().receive_array(frames)
        write, answers = self.write, list[Json]()
        self.write = answers.append
        for frame in frames:
            self.receive(frame)
        self.write = write
        if answers:
            write(answers)  # type: ignore[arg-type]
        return None

    def background(self, session: Session) -> Json:
        return {}

    def unknown_session(self, id: str) -> Refused:
        return Refused(INVALID_PARAMS, "the session does not exist or is not open")

    def close_session(self, request: Request) -> Json | None:
        self.opened_session(request)
        return super().close_session(request)

    async def stop_then_answer(
        self, request: Request, session: Session, finish: Callable[[Session], None]
    ) -> None:
        await super().stop_then_answer(request, session, finish)
        self.report_usage(session)

    def cancel_turn(self, turn: Turn) -> None:
        """Wait for the client, which answers the questions of cancelled work by itself."""
        if turn.questions:
            turn.cancelled = True
        else:
            super().cancel_turn(turn)
        self.stop_background(turn.session)

    async def ask_permission(self, turn: Turn, call: str, title: str) -> bool:
        allowed = await super().ask_permission(turn, call, title)
        if turn.cancelled:
            raise asyncio.CancelledError
        return allowed


class AlphaFiveAgent(AlphaTenAgent):
    """An agent of alpha.5: five stop reasons, lenient requests, no state on resume, no held prompts."""

    def choose_version(self, requested: int) -> int:
        return requested if requested in SUPPORTED else SUPPORTED[-1]

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        methods = super().requests()
        if self.version == 2:
            del methods["session/list"]
        return methods

    def setup(self, session: Session) -> Json:
        return {key: value for key, value in super().setup(session).items() if key != "availableCommands"}

    def commands(self) -> list[Json]:
        return [
            {key: value for key, value in command.items() if key != "type"} for command in super().commands()
        ]

    def resume_session(self, request: Request) -> Json | None:
        session = self.saved_session(request)
        if request.params.get("replayFrom") == {"type": "start"}:
            self.replay(session)
        self.open_session(request, session)
        return None

    def prompt_content(self, request: Request) -> list[Json]:
        blocks = [block for block in request.params["prompt"] if block["type"] in check.BLOCKS]
        return check.content({"prompt": blocks}, self.version)

    def hold(self, prompt: Prompt) -> None:
        self.refuse(prompt.request_id, INVALID_REQUEST, "the session works")

    def end_failed(self, turn: Turn) -> None:
        if self.version == 1:
            super().end_failed(turn)
        else:
            self.report_end(turn, "refusal")

    def state_update(self, session: Session, state: str, **fields: Any) -> None:
        if (session.state, state) != ("requires_action", "running"):
            super().state_update(session, state, **fields)
        session.state = state
