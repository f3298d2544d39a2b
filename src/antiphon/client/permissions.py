"""Permissions: decides on the permission requests of an agent.

A request that nobody approves is rejected by default. Options are chosen by their ids: a request often has
two options of one kind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from antiphon.client.protocol.questions import first_option, tool_kind
from antiphon.client.session.session import ClientSession
from antiphon.engine.tools import ToolCall
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.v2.permissions import PermissionOption, PermissionOptionKind

ALL = "all"


class Permission:
    """A permission request. A callback returns one of its options or the id of one, `allow()` or `reject()`,
    or None to cancel."""

    def __init__(
        self, session: ClientSession, question_id: str, request: v2.RequestPermissionRequest
    ) -> None:
        self.session = session
        self.question_id = question_id
        self.request = request
        self.title = request.title
        self.options = request.options
        self.meta: dict[str, Any] | None = None
        """The `_meta` of the answer."""

    @property
    def tool_call(self) -> ToolCall | None:
        """The tool call that it is about, as far as it is known."""
        subject = self.request.subject
        if not isinstance(subject, v2.ToolCallPermissionSubject):
            return None
        return self.session.fold.tools.get(subject.tool_call.tool_call_id)

    @property
    def kind(self) -> str:
        """The kind of tool that it is about: `read`, `edit`, `execute`, …"""
        return tool_kind(self.request, self.session.fold)

    def find_option(self, choice: PermissionOption | str | None) -> PermissionOption | None:
        """The offered option for a choice, by its id. Raises `LocalError` if it is not offered."""
        if choice is None:
            return None
        option_id = choice.option_id if isinstance(choice, PermissionOption) else choice
        for option in self.options:
            if option.option_id == option_id:
                return option
        offered = ", ".join(repr(str(option.option_id)) for option in self.options)
        raise LocalError(f"{option_id!r} is not an offered option; the options are {offered}")

    def option(self, *kinds: str) -> PermissionOption | None:
        """The first option of the first of these kinds that is offered."""
        return first_option(self.request, *kinds)

    def allow(self) -> PermissionOption | None:
        """Allow it once; always only if nothing less is offered."""
        return self.option(PermissionOptionKind.ALLOW_ONCE, PermissionOptionKind.ALLOW_ALWAYS)

    def reject(self) -> PermissionOption | None:
        """Reject it once; always only if nothing less is offered."""
        return self.option(PermissionOptionKind.REJECT_ONCE, PermissionOptionKind.REJECT_ALWAYS)


Choice = PermissionOption | str | None
Ask = Callable[[Permission], Awaitable[Choice]]
"""Asks the user about a permission request."""


class PermissionDecider(Protocol):
    """Answers permission requests; `Permissions` is one."""

    async def decide(self, permission: Permission) -> Choice:
        """The option to answer with, or its id. None answers `cancelled`."""


class Permissions:
    """Allows requests of allowed kinds once, and asks about the others or rejects them."""

    def __init__(
        self, *, allow: Collection[str] | str = (), ask: Ask | None = None, remember: bool = True
    ) -> None:
        """allow: kinds of tools (`read`, `edit`, `execute`, …), or `all`.
        ask: decides on the rest. Without it they are rejected.
        remember: an "always" that `ask` chose also answers the same question about the same subject later in
            the session, if the agent asks again all the same. Whether "always" covers more is decided by the
            agent, which then does not ask.
        """
        self._allow = frozenset([allow] if isinstance(allow, str) else allow)
        self._ask = ask
        self._remember = remember
        self._always: dict[tuple[str, ...], PermissionOptionKind] = {}

    async def decide(self, permission: Permission) -> PermissionOption | None:
        """The option to answer with. None answers `cancelled`."""
        if ALL in self._allow or permission.kind in self._allow:
            return permission.allow() or permission.reject()
        about = (permission.session.id, permission.kind, permission.title, _subject(permission))
        remembered = self._always.get(about)
        again = None if remembered is None else permission.option(remembered)
        if again is not None:
            return again  # with the option id of this request
        if self._ask is None:
            return permission.reject()
        chosen = permission.find_option(await self._ask(permission))
        if chosen is not None and self._remember and chosen.kind.endswith("_always"):
            self._always[about] = chosen.kind
        return chosen


def _subject(permission: Permission) -> str:
    """The exact subject, which the title need not contain: a command, a tool call."""
    subject, call = permission.request.subject, permission.tool_call
    if isinstance(subject, v2.CommandPermissionSubject):
        return subject.command
    return "" if call is None else call.title or ""
