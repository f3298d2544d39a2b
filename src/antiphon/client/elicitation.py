"""Elicitation: a form that an agent asks to be filled in, or an address that it asks to be visited."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from msgspec import UNSET

from antiphon.engine.elicitations import FORM, URL, Elicited, mode_of
from antiphon.engine.forms import Field, Form
from antiphon.engine.tools import ToolCall
from antiphon.errors import FormInvalid, LocalError
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.client.client import Client
    from antiphon.client.session import ClientSession

Reply: TypeAlias = v2.ElicitationAcceptAction | v2.ElicitationDeclineAction | v2.ElicitationCancelAction


class Elicitation:
    """What is asked. A callback returns `accept(…)`, `decline()` or `cancel()`; `None` cancels too.

    Show `agent`, so that the user knows who asks, and let the answers be seen before they are sent. An
    address is shown whole, with its `host`, and opened only once the user agrees, where the agent cannot look
    on; nothing here ever fetches it (ELIC-14).
    """

    def __init__(
        self,
        client: Client,
        request: Elicited,
        *,
        session: ClientSession | None = None,
        question_id: str = "",
    ) -> None:
        self.client = client
        self.session = session
        """The session it belongs to; `None` where it belongs to a request of ours (ELIC-04)."""
        self.question_id = question_id
        self.request = request
        self._form = Form(request.requested_schema) if isinstance(request, v2.ElicitationFormMode) else None
        self._completed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    @property
    def mode(self) -> str:
        """`form` or `url`."""
        return mode_of(self.request)

    @property
    def message(self) -> str:
        return self.request.message

    @property
    def agent(self) -> str:
        """Who asks, as far as it said."""
        return self.client.agent_name if self.session is None else self.session.agent_name

    @property
    def request_id(self) -> v2.RequestId | None:
        """The request of ours that it belongs to, where it belongs to none of our sessions."""
        return None if self.request.request_id is UNSET else self.request.request_id

    @property
    def tool_call(self) -> ToolCall | None:
        """The tool call it belongs to, as far as it is known."""
        call = self.request.tool_call_id
        return None if call is None or self.session is None else self.session.fold.tools.get(call)

    # --- forms -------------------------------------------------------------------------------------

    @property
    def fields(self) -> tuple[Field, ...]:
        """What a form asks for, in its order; an address has none."""
        return () if self._form is None else self._form.fields

    @property
    def defaults(self) -> dict[str, Any]:
        """What a form holds before anybody has changed it (ELIC-17)."""
        return {} if self._form is None else self._form.defaults

    def problems(self, values: Mapping[str, Any]) -> dict[str, str]:
        """What is wrong with these values, by field; nothing, if they can be sent."""
        known = {field.name for field in self.fields}
        unknown = {name: "is not asked for" for name in values if name not in known}
        return (
            unknown
            if self._form is None
            else {**self._form.read(values, accept_unchecked=True).problems, **unknown}
        )

    # --- addresses ---------------------------------------------------------------------------------

    @property
    def url(self) -> str | None:
        """The whole address, for the user to see before agreeing."""
        return self.request.url if isinstance(self.request, v2.ElicitationUrlMode) else None

    @property
    def host(self) -> str | None:
        """Whom the address leads to, in letters that cannot be mistaken for others."""
        try:
            host = None if self.url is None else urlsplit(self.url).hostname
            return None if host is None else host.encode("idna").decode()
        except ValueError:
            return None

    async def completed(self) -> bool:
        """Wait until the agent says that what was to be done at the address is done. False, where it cannot
        say so any more."""
        return await asyncio.shield(self._completed)

    def complete(self, *, done: bool) -> None:
        """`elicitation/complete` came, or never will."""
        if not self._completed.done():
            self._completed.set_result(done)

    # --- answers -----------------------------------------------------------------------------------

    def accept(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> Reply:
        """Answer with these values; what is not given has its default, and `None` leaves a field out. For an
        address, it says that the user agreed to open it. Raises `FormInvalid`."""
        given = {**self.defaults, **(values or {}), **named}
        given = {name: value for name, value in given.items() if value is not None}
        problems = self.problems(given)
        if problems:
            raise FormInvalid(problems)
        if self._form is None:
            return v2.ElicitationAcceptAction()
        return v2.ElicitationAcceptAction(content=self._form.read(given, accept_unchecked=True).values)

    def decline(self) -> Reply:
        """The user does not want to."""
        return v2.ElicitationDeclineAction()

    def cancel(self) -> Reply:
        """The user did not choose."""
        return v2.ElicitationCancelAction()


class Elicits(Protocol):
    """Answers elicitations. What decides on permissions may do this too; then the agent is told so."""

    elicits: Collection[str]
    """The modes that it can show to the user, `form` and `url`; only forms, if it does not say."""

    async def elicit(self, elicitation: Elicitation) -> Reply | None:
        """What to answer; `None` cancels."""


def modes(answers: object) -> frozenset[str]:
    """The modes that can be answered (ELIC-01)."""
    if not callable(getattr(answers, "elicit", None)):
        return frozenset()
    named = frozenset(getattr(answers, "elicits", (FORM,)))
    if not named <= {FORM, URL}:
        raise LocalError(f"there are no elicitations of mode {', '.join(sorted(named - {FORM, URL}))}")
    return named
