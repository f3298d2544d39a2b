"""Answers: who decides on an agent's permission requests, and how.

A request that nobody approves is not approved: the default rejects. Options are chosen by their id: two of
one kind in a request are usual.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol

from antiphon.engine.tools import ToolCall
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.v2.permissions import PermissionOption, PermissionOptionKind

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession

ALL = "all"


class Permission:
    """What is asked. A callback returns one of its options or the id of one, `allow()` or `reject()`, or
    `None` to cancel."""

    def __init__(
        self, session: ClientSession, question_id: str, request: v2.RequestPermissionRequest
    ) -> None:
        self.session = session
        self.question_id = question_id
        self.request = request
        self.meta: dict[str, Any] | None = None
        """What goes beside the chosen option, as it is."""

    @property
    def title(self) -> str:
        return self.request.title

    @property
    def options(self) -> list[PermissionOption]:
        return self.request.options

    @property
    def tool_call(self) -> ToolCall | None:
        """The tool call it is about, as far as it is known."""
        subject = self.request.subject
        if not isinstance(subject, v2.ToolCallPermissionSubject):
            return None
        return self.session.fold.tools.get(subject.tool_call.tool_call_id)

    @property
    def kind(self) -> str:
        """What kind of tool it is about: `read`, `edit`, `execute`, …"""
        if isinstance(self.request.subject, v2.CommandPermissionSubject):
            return "execute"
        return "other" if self.tool_call is None else str(self.tool_call.kind)

    def chosen(self, choice: PermissionOption | str | None) -> PermissionOption | None:
        """The option that was chosen, by itself or by its id. Raises `LocalError` if it is not offered."""
        if choice is None:
            return None
        option_id = choice.option_id if isinstance(choice, PermissionOption) else choice
        for option in self.options:
            if option.option_id == option_id:
                return option
        raise LocalError(f"{option_id!r} is none of the options offered")

    def option(self, *kinds: str) -> PermissionOption | None:
        """The first option of the first of these kinds that is offered."""
        for kind in kinds:
            for option in self.options:
                if option.kind == kind:
                    return option
        return None

    def allow(self) -> PermissionOption | None:
        """Allow it this once; for always only where nothing less is offered."""
        return self.option(PermissionOptionKind.ALLOW_ONCE, PermissionOptionKind.ALLOW_ALWAYS)

    def reject(self) -> PermissionOption | None:
        return self.option(PermissionOptionKind.REJECT_ONCE, PermissionOptionKind.REJECT_ALWAYS)


Choice = PermissionOption | str | None
Ask = Callable[[Permission], Awaitable[Choice]]


class Decides(Protocol):
    """Answers permission requests; `Permissions` is one."""

    async def decide(self, permission: Permission) -> Choice:
        """The option to answer with, or its id; `None` answers `cancelled`."""


class Permissions:
    """Decides: what is of an allowed kind is allowed once, the rest is asked or rejected."""

    def __init__(
        self, *, allow: Collection[str] | str = (), ask: Ask | None = None, remember: bool = True
    ) -> None:
        """`allow` names kinds of tools (`read`, `edit`, `execute`, …) or is `all`. `ask` decides on the rest;
        without it they are rejected. With `remember`, an "always" that `ask` chose answers the same question
        about the same thing again: for as long as this lives, in the same session, if the agent asks again
        all the same. Whether it stands for more than that is the agent's to decide, which then asks no more.
        """
        self._allow = frozenset([allow] if isinstance(allow, str) else allow)
        self._ask = ask
        self._remember = remember
        self._always: dict[tuple[str, ...], PermissionOptionKind] = {}

    async def decide(self, permission: Permission) -> PermissionOption | None:
        """The option to answer with; `None` answers `cancelled`."""
        if ALL in self._allow or permission.kind in self._allow:
            return permission.allow() or permission.reject()
        about = (permission.session.id, permission.kind, permission.title, _what(permission))
        remembered = self._always.get(about)
        again = None if remembered is None else permission.option(remembered)
        if again is not None:
            return again  # by the id that this request gave it
        if self._ask is None:
            return permission.reject()
        chosen = permission.chosen(await self._ask(permission))
        if chosen is not None and self._remember and chosen.kind.endswith("_always"):
            self._always[about] = chosen.kind
        return chosen


def _what(permission: Permission) -> str:
    """What exactly is to be allowed, where the question alone need not tell: a command, a tool call."""
    subject, call = permission.request.subject, permission.tool_call
    if isinstance(subject, v2.CommandPermissionSubject):
        return subject.command
    return "" if call is None else call.title or ""
