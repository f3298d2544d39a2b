"""Elicitation: a form that an agent asks to be filled in, or an address that it asks to be visited."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from msgspec import UNSET

from antiphon.client.session.session import ClientSession
from antiphon.engine.forms.form import Field, Form
from antiphon.engine.questions import FORM, URL, Elicited, mode_of
from antiphon.engine.tools import ToolCall
from antiphon.errors import FormInvalid, LocalError
from antiphon.schema import v2

Reply: TypeAlias = v2.ElicitationAcceptAction | v2.ElicitationDeclineAction | v2.ElicitationCancelAction
"""The answer to an elicitation."""


class Elicitation:
    """A form or an address. A callback returns `accept(…)`, `decline()` or `cancel()`; None cancels too.

    Show `agent`, so that the user knows which agent asks, and show the answers before they are sent. Show an
    address whole, with its `host`, and open it only once the user agrees, where the agent cannot observe it.
    Nothing here fetches it (ELIC-14).
    """

    def __init__(
        self,
        agent: str,
        request: Elicited,
        *,
        session: ClientSession | None = None,
        question_id: str = "",
    ) -> None:
        self.agent = agent
        """The name of the agent that asks."""
        self.session = session
        """The session it belongs to; None if it belongs to a request of this client (ELIC-04)."""
        self.question_id = question_id
        self.request = request
        self.mode = mode_of(request)
        """`form` or `url`."""
        self.message = request.message
        self._form = Form(request.requested_schema) if isinstance(request, v2.ElicitationFormMode) else None
        self._completed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    @property
    def request_id(self) -> v2.RequestId | None:
        """The request of this client that it belongs to; None if it belongs to a session."""
        return None if self.request.request_id is UNSET else self.request.request_id

    @property
    def tool_call(self) -> ToolCall | None:
        """The tool call that it belongs to, as far as it is known."""
        call = self.request.tool_call_id
        return None if call is None or self.session is None else self.session.fold.tools.get(call)

    # --- forms -------------------------------------------------------------------------------------

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a form, in its order; empty for an address."""
        return () if self._form is None else self._form.fields

    @property
    def defaults(self) -> dict[str, Any]:
        """The default values of a form (ELIC-17)."""
        return {} if self._form is None else self._form.defaults

    def problems(self, values: Mapping[str, Any]) -> dict[str, str]:
        """The problems of these values by field; empty if they can be sent."""
        known = {field.name for field in self.fields}
        unknown = {name: "is not a field of this form" for name in values if name not in known}
        if self._form is None:
            return unknown
        return {**self._form.read(values, accept_unchecked=True).problems, **unknown}

    # --- addresses ---------------------------------------------------------------------------------

    @property
    def url(self) -> str | None:
        """The whole address, to show before the user agrees."""
        return self.request.url if isinstance(self.request, v2.ElicitationUrlMode) else None

    @property
    def host(self) -> str | None:
        """The host of the address, in letters that cannot be mistaken for others."""
        try:
            host = None if self.url is None else urlsplit(self.url).hostname
            return None if host is None else host.encode("idna").decode()
        except ValueError:
            return None

    async def completed(self) -> bool:
        """Wait until the agent reports that the user is done at the address. False if it cannot report that
        any more."""
        return await asyncio.shield(self._completed)

    def _complete(self, *, done: bool) -> None:
        """`elicitation/complete` came, or will never come."""
        if not self._completed.done():
            self._completed.set_result(done)

    # --- answers -----------------------------------------------------------------------------------

    def accept(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> Reply:
        """Answer with these values. A field that is not given has its default; None leaves a field out. For
        an address it says that the user agreed to open it. Raises `FormInvalid`."""
        given = {**self.defaults, **(values or {}), **named}
        given = {name: value for name, value in given.items() if value is not None}
        problems = self.problems(given)
        if problems:
            raise FormInvalid(problems)
        if self._form is None:
            return v2.ElicitationAcceptAction()
        return v2.ElicitationAcceptAction(content=self._form.read(given, accept_unchecked=True).values)

    def decline(self) -> Reply:
        """The user declines."""
        return v2.ElicitationDeclineAction()

    def cancel(self) -> Reply:
        """The user did not decide."""
        return v2.ElicitationCancelAction()


class ElicitationDecider(Protocol):
    """Answers elicitations. A decider on permissions may have these too: the agent then learns that
    elicitations are supported."""

    elicits: Collection[str]
    """The modes that it can show to the user: `form`, `url`. Without this attribute only forms."""

    async def elicit(self, elicitation: Elicitation) -> Reply | None:
        """The answer. None cancels."""


def elicitation_modes(decider: object) -> frozenset[str]:
    """The elicitation modes that a decider can answer (ELIC-01)."""
    if not callable(getattr(decider, "elicit", None)):
        return frozenset()
    named = frozenset(getattr(decider, "elicits", (FORM,)))
    if not named <= {FORM, URL}:
        raise LocalError(f"elicitation modes are {FORM!r} and {URL!r}, got {sorted(named)}")
    return named
