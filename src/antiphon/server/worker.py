"""Worker: does the work of one served session. The only seam between serving a session and working on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from antiphon.engine.annotations import Annotation
from antiphon.engine.configuration import Value
from antiphon.engine.events import QuestionClosed, QuestionOpened, Updated
from antiphon.engine.prompts import Entry
from antiphon.schema.antiphon.prompts import Delivery


class Worker(Protocol):
    """What a served session asks of its worker. What a worker does comes back as events: `session.emit`."""

    # --- what it is --------------------------------------------------------------------------------

    @property
    def accepted(self) -> tuple[type, ...]:
        """The types of content that prompts may hold."""

    @property
    def inserts(self) -> bool:
        """Whether a prompt may be handed over while the worker works, which then decides what it does."""

    @property
    def is_set_up(self) -> bool:
        """Whether the roots and MCP servers of the session cannot be changed any more by a resume."""

    @property
    def introduction(self) -> dict[str, Any]:
        """Goes under our own key of the answer to a client that begins or joins the session."""

    # --- the start ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Prepare: the session was made, or opened from the store, and nothing else has happened in it."""

    def news(self) -> Sequence[Updated]:
        """Return the updates that the session needs when it is made or opened again."""

    def begin(self) -> None:
        """Start: the client that began the session has been answered."""

    # --- prompts -----------------------------------------------------------------------------------

    def admit(self, delivery: Delivery) -> Delivery:
        """Return how a prompt will be delivered. Raises where no prompt is taken."""

    def queued(self, entry: Entry) -> None:
        """Note a prompt that the last event has queued."""

    def advance(self) -> None:
        """Take the next prompt, if one may be taken now."""

    def take_back(self, message_id: str, *, cancel_turn: bool = False) -> asyncio.Future[None] | None:
        """Ask for a prompt back that was sent elsewhere; done once that is answered. `None` where no one else
        has it. With `cancel_turn`, its turn is cancelled if it is taken all the same."""

    # --- control -----------------------------------------------------------------------------------

    def cancel(self, *, message_id: str | None = None, meta: dict[str, Any] | None = None) -> None:
        """Cancel the open turn or, with a message id, only the turn that took that prompt. `meta` is the
        `_meta` of the request."""

    def cancel_tool_call(self, id: str) -> bool:
        """Cancel one tool call; return whether it could be."""

    def cancel_terminal(self, id: str) -> bool:
        """Cancel one terminal; return whether it could be."""

    async def configure(self, id: str, value: Value, meta: dict[str, Any] | None) -> None:
        """Set a config option to a value that it offers. Raises `InvalidParams` to refuse."""

    # --- what happened -----------------------------------------------------------------------------

    def questions_changed(self, bodies: Sequence[QuestionOpened | QuestionClosed]) -> None:
        """Note that questions were opened or closed."""

    def used(self) -> None:
        """Note that a client is about to use the session."""

    def client_left(self) -> None:
        """Note that a client is about to be detached, which may have been asked something."""

    def annotated(self, annotation: Annotation, *, removed: bool) -> None:
        """Note an annotation that a client added or removed."""

    # --- the end -----------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Cut short what is at work: the process is about to end. Does not wait."""

    async def close(self) -> None:
        """End what is at work, as cancelled, and wait for its last updates."""

    async def stop(self) -> None:
        """End what is at work, as interrupted: the session is put away."""
