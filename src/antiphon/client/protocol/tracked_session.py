"""TrackedSession: a session whose updates, prompts and turns are tracked, as the parts of a session use it.

`SessionTracker` tracks a session for a client, `UpstreamSession` for a hub.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from msgspec import Raw

from antiphon.bridge.prompts import Repeat
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.client.protocol.turn_tracker import TurnTracker
from antiphon.engine.events import QuestionClosed, QuestionOpened
from antiphon.engine.session import Session
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who


class Prompt(Protocol):
    """A handle of a prompt."""

    message_id: str | None

    @property
    def ended(self) -> bool: ...


P_contra = TypeVar("P_contra", bound=Prompt, contravariant=True)


class TrackedSession(Protocol[P_contra]):
    """Everything is called in lane order."""

    last_activity: float
    """When the agent last sent something, or this side had to act, by `time.monotonic`."""

    @property
    def fold(self) -> Session:
        """The fold that distinguishes turns. A hub keeps nothing else in it."""

    @property
    def turns(self) -> TurnTracker[Any, Any]: ...

    def note_activity(self) -> None:
        """The agent sent something, or this side had to act."""

    def apply(self, update: v2.SessionUpdate, *, cut: TurnEnd | None = None) -> None:
        """Apply an update. `cut`: how a turn ends by it, if the agent did not report that."""

    def prompt_sent(self, prompt: P_contra, request_id: int) -> None: ...

    def prompt_accepted(self, prompt: P_contra, *, joins: bool, repeat: Repeat | None = None) -> None: ...

    def prompt_repeated(self, prompt: P_contra, message_id: str | None) -> None:
        """The agent had run this prompt before, and its turn is over."""

    def prompt_ended(self, prompt: P_contra, end: TurnEnd) -> None: ...

    def prompt_refused(self, prompt: P_contra, end: TurnEnd) -> None:
        """The prompt was never accepted; its turn did not begin."""

    def prompt_too_late(self, prompt: P_contra) -> None:
        """The agent accepted a prompt before it could be withdrawn."""

    def apply_question(self, body: QuestionOpened | QuestionClosed, *, background: bool) -> None:
        """A question was asked or has ended; `background` if it is about background work."""

    def answer_elsewhere(self, question_id: str | None) -> tuple[Raw, Who] | None:
        """The answer of another client to a question, by the agent's id of it, and the client."""


def is_background(fold: Session, tool_call_id: str | None, terminal_id: str | None) -> bool:
    """Whether something is about background work, which belongs to no turn (PROMPT-V2-44, -45)."""
    if (tool_call_id is None and terminal_id is None) or not fold.background:
        return False
    for work in fold.background:
        if isinstance(work, v2.BackgroundToolCall) and work.tool_call_id == tool_call_id:
            return True
        if isinstance(work, v2.BackgroundTerminal) and work.terminal_id == terminal_id:
            return True
    return False


def shows_background_terminal(fold: Session, tool_call_id: str | None) -> bool:
    """Whether a tool call shows a terminal that runs in the background: the call does not end with the turn,
    though its output belongs there (PROMPT-V2-39)."""
    call = None if tool_call_id is None else fold.tools.get(tool_call_id)
    if call is None or not fold.background:
        return False
    shown = [part.terminal_id for part in call.content if isinstance(part, v2.Terminal)]
    return any(is_background(fold, None, terminal_id) for terminal_id in shown)
