"""Conversation: the judge as a client on one initialized connection, in either version."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from antiphon.conformance.link import Condition, Link, NotSeen, Refused
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.rules.rule import agreed_version

AUTH_REQUIRED = -32000
INFO = {"name": "antiphon-judge", "version": "1"}


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


def initialize_params(version: int, capabilities: dict[str, Any]) -> dict[str, Any]:
    """Return the params of `initialize` in the shape of a version."""
    if version == 2:
        return {"protocolVersion": 2, "info": INFO, "capabilities": capabilities}
    return {"protocolVersion": version, "clientInfo": INFO, "clientCapabilities": capabilities}


class Conversation:
    """One connection with an agent. `initialized` is the result of `initialize`."""

    def __init__(self, link: Link, initialized: dict[str, Any], *, cwd: str) -> None:
        self.link = link
        self.initialized = initialized
        self.version = agreed_version(initialized)
        self.cwd = cwd
        link.on_request("session/request_permission", select_first_allow)

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the agent advertised."""
        found = self.initialized.get("capabilities" if self.version == 2 else "agentCapabilities")
        return found if isinstance(found, dict) else {}

    @property
    def introduction(self) -> tuple[RecordedFrame, ...]:
        """The frames of `initialize`: the request and the response."""
        recording = self.link.recording
        request = next(frame for frame in recording.frames if frame.method == "initialize")
        response = recording.response_to(request)
        return (request,) if response is None else (request, response)

    def offers(self, *path: str) -> bool:
        """Whether the agent advertised a capability: `true` or an object at this path."""
        value: Any = self.capabilities
        for key in path:
            if not isinstance(value, dict):
                return False
            value = value.get(key)
        return value is True or isinstance(value, dict)

    # --- sessions ----------------------------------------------------------------------------------

    async def new_session(self, **params: Any) -> str:
        """Make a session and return its id. Raises `NotSeen`."""
        response = await self.created_session(**params)
        return str(response.result["sessionId"])

    async def created_session(self, **params: Any) -> RecordedFrame:
        """Make a session and return the response, which names it. Raises `NotSeen`."""
        request, response = await self.link.exchange("session/new", {**self.setup(), **params})
        if response.error_code == AUTH_REQUIRED:
            raise NotSeen("the agent requires a login before `session/new`")
        if response.error is not UNSET:
            raise Refused(request, response)
        if not isinstance(response.get("result", "sessionId"), str):
            raise NotSeen("the answer to `session/new` has no `sessionId`")
        return response

    def setup(self) -> dict[str, Any]:
        """Return the params that new, load and resume have in common. v1 requires `mcpServers`."""
        return {"cwd": self.cwd, "mcpServers": []} if self.version == 1 else {"cwd": self.cwd}

    def load(self, session: str) -> RecordedFrame:
        """Ask for the whole session: `session/load` in v1, a resume from the start in v2."""
        if self.version == 1:
            return self.link.request("session/load", {"sessionId": session, **self.setup()})
        return self.resume(session, replayFrom={"type": "start"})

    def resume(self, session: str, **params: Any) -> RecordedFrame:
        return self.link.request("session/resume", {"sessionId": session, **self.setup(), **params})

    # --- turns -------------------------------------------------------------------------------------

    def prompt(self, session: str, words: str, **params: Any) -> RecordedFrame:
        """Send a prompt and return the request."""
        return self.link.request("session/prompt", {"sessionId": session, "prompt": [text(words)], **params})

    def cancel(self, session: str) -> RecordedFrame:
        return self.link.notify("session/cancel", {"sessionId": session})

    async def turn_end(self, prompt: RecordedFrame) -> RecordedFrame:
        """Return the frame that ends the turn of a prompt: in v1 its response, in v2 the idle state after it.

        Raises `NotSeen`; in v2 also if the prompt is refused.
        """
        response = await self.link.response(prompt)
        if self.version == 1:
            return response
        if response.error is not UNSET:
            raise Refused(prompt, response)
        session = prompt.session_id
        began = await self.update(session, is_busy, "a running state", after=prompt)
        return await self.update(session, is_idle, "the idle state that ends the work", after=began)

    async def run_turn(self, session: str, words: str) -> tuple[RecordedFrame, RecordedFrame]:
        """Send a prompt and wait for the end of its turn. Return both frames."""
        prompt = self.prompt(session, words)
        return prompt, await self.turn_end(prompt)

    async def update(
        self, session: str, condition: Condition, what: str, *, after: RecordedFrame | None = None
    ) -> RecordedFrame:
        """Wait for an update of a session."""
        return await self.link.wait(
            lambda frame: frame.session_id == session and bool(frame.update) and condition(frame),
            what,
            after=after,
        )

    def updates(self, session: str, *, after: RecordedFrame | None = None) -> list[RecordedFrame]:
        """Return the updates of a session so far."""
        frames = self.link.recording.frames[self.link.first if after is None else after.index + 1 :]
        return [frame for frame in frames if frame.update and frame.session_id == session]


def stop_reason(end: RecordedFrame) -> Any:
    """Return the stop reason of the frame that ended a turn; `None` if it has none."""
    holder = end.update or end.result
    return holder.get("stopReason") if isinstance(holder, dict) else None


def state(frame: RecordedFrame) -> str | None:
    """Return the state of a state update; `None` for any other frame."""
    return frame.update.get("state") if frame.update_kind == "state_update" else None


def is_idle(frame: RecordedFrame) -> bool:
    return state(frame) == "idle"


def is_busy(frame: RecordedFrame) -> bool:
    return state(frame) in ("running", "requires_action")


def is_content(frame: RecordedFrame) -> bool:
    """Whether an update is part of a conversation: of a message, a thought, a tool call or a plan."""
    kind = frame.update_kind or ""
    return kind.endswith(("_message", "_thought", "_chunk")) or kind.startswith(("tool_call", "plan"))


def select_first_allow(link: Link, request: RecordedFrame) -> None:
    """Answer a permission request with its first allowing option, or with `cancelled` if it has none."""
    options = request.get("params", "options")
    for option in options if isinstance(options, list) else []:
        if isinstance(option, dict) and str(option.get("kind")).startswith("allow"):
            link.answer(request, {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}})
            return
    link.answer(request, {"outcome": {"outcome": "cancelled"}})
