"""Trouble: an error of an agent or of the connection in words for the user: what happened, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from antiphon.client import advice_sentence, read_failure
from antiphon.errors import AntiphonError, CallFailed, LinkLost
from antiphon.schema import v2
from antiphon.tui.text.plain import plain, plain_line


class AgentWithLogins(Protocol):
    @property
    def auth_methods(self) -> Sequence[v2.AuthMethod]: ...


@dataclass(frozen=True)
class Trouble:
    message: str
    details: str = ""
    """The agent's own words, if the message does not contain them."""
    stderr: str = ""
    """The last lines that the agent wrote on stderr."""
    advice: str = ""
    """What the user can do."""

    def text(self, head: str = "") -> str:
        """Return everything as lines."""
        parts = [f"{head}: {self.message}" if head else self.message, self.details, self.advice]
        if self.stderr:
            parts.insert(2, f"Last output of the agent:\n{self.stderr}")
        return "\n".join(filter(None, parts))


def trouble_of(error: AntiphonError, client: AgentWithLogins | None = None) -> Trouble:
    """Return what an error says, as safe text. `client`: its agent may offer logins."""
    if isinstance(error, CallFailed):
        trouble = trouble_in(error.error.message, error.error.data)
        advice = trouble.advice or (_login(client) if error.needs_login and client is not None else "")
        return Trouble(trouble.message, trouble.details, trouble.stderr, advice)
    if isinstance(error, LinkLost):
        return trouble_in(f"the connection was lost: {error.reason}", {"stderr": list(error.stderr)})
    return Trouble(plain_line(str(error), limit=600))


def trouble_in(message: str, data: Any) -> Trouble:
    """Return what an error with this message and `data` says."""
    failure = read_failure(message, data)
    return Trouble(
        plain_line(failure.title, limit=600),
        plain(failure.details),
        plain("\n".join(failure.stderr)),
        plain(advice_sentence(failure.advice)),
    )


def _login(client: AgentWithLogins) -> str:
    """Name the logins that the agent offers."""
    named = []
    for method in client.auth_methods[:4]:
        name = method.get("name") if isinstance(method, dict) else method.name
        about = method.get("description") if isinstance(method, dict) else method.description
        if isinstance(name, str):
            more = f" ({plain_line(about, limit=200)})" if isinstance(about, str) and about else ""
            named.append(f"{plain_line(name, limit=80)}{more}")
    ways = f": {'; '.join(named)}" if named else ", as its documentation says"
    return f"Log in to the agent{ways}. Then try again."
