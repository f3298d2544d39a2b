"""Failures of `antiphon prompt`: what the agent said, its last lines on stderr, and what to do."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from antiphon.cli.error_lines import agent_failure, error_line, last_stderr_line
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.client import TurnEnd, advice_sentence, read_failure
from antiphon.errors import (
    AntiphonError,
    AuthRequired,
    CallFailed,
    LinkLost,
    LocalError,
    SpawnFailed,
    UnsupportedVersion,
)
from antiphon.hub import CatalogueAgent, start_advice, wants_login
from antiphon.wire import ADDRESSES

KEPT = 10
"""Lines of stderr that are kept."""
ANY_LOGIN = "log in with the agent's own command, then try again"


class PromptFailures:
    """Explains the failures of one agent."""

    def __init__(self, agent: Sequence[str], known: CatalogueAgent | None, version: int | None) -> None:
        self._agent = agent
        self._known = known
        self._version = version
        self._stderr: deque[str] = deque(maxlen=KEPT)

    def note_stderr(self, line: str) -> None:
        """Keep a line that the agent wrote."""
        self._stderr.append(line)

    def explain(self, error: AntiphonError | OSError, name: str, doing: str) -> Failure:
        """Return the failure for an error that came before the end of the turn."""
        if isinstance(error, SpawnFailed):
            return Failure(error.detail, Exit.NOT_FOUND)
        if isinstance(error, LinkLost):
            return self._lost(error, name, doing)
        if isinstance(error, CallFailed):
            code, message, data = error.error.code, error.error.message, error.error.data
            if code == UnsupportedVersion.code:
                return self._versions(name, message)
            about = f"{name} failed while {doing}: "
            return self._said(about, code, message, data, name, f"{self._no_agent(doing)}")
        if doing == "starting" and "version" in str(error):
            return self._versions(name, str(error))
        if isinstance(error, LocalError):
            return Failure(str(error))
        if isinstance(error, OSError):
            return Failure(f"cannot reach {name}: {error.strerror or error}")
        return Failure(f"{name} failed while {doing}: {error}")

    def judge(self, end: TurnEnd, name: str, lost: LinkLost | None) -> Failure | None:
        """Return the failure of a turn, or `None` if its stop reason says everything."""
        if end.cut is not None and not end.cancelled:
            return Failure(f"{name} was interrupted in its turn: {end.cut}{last_stderr_line(lost)}")
        if end.error is not None:
            about = f"{name} failed: "
            return self._said(about, int(end.error.code), end.error.message, end.error.data, name)
        if end.stop_reason == "error":
            return Failure(f"{name} failed without an error message")
        return None

    def _said(self, about: str, code: int, message: str, data: Any, name: str, advice: str = "") -> Failure:
        """Return the failure for an error that the agent answered with."""
        told = agent_failure(message, data, stderr=self._stderr)
        if code == AuthRequired.code:
            more = told.advice or self._login(told.message, needed=True)
            return Failure(
                f"{name} requires a login: {told.message}",
                Exit.LOGIN,
                more=(*told.stderr, advice_sentence(more)),
            )
        more = told.advice or self._login(told.message)
        return Failure(f"{about}{told.message} ({code}){advice}", more=(*told.stderr, advice_sentence(more)))

    def _login(self, said: str, *, needed: bool = False) -> str:
        if not (needed or wants_login(said)):
            return ""
        return ANY_LOGIN if self._known is None else self._known.login_advice()

    def _lost(self, error: LinkLost, name: str, doing: str) -> Failure:
        if name.startswith(ADDRESSES):
            return Failure(error_line(error))
        told = f"{name} ended while {doing}: {error.reason}"
        install = start_advice(self._known, None, error.stderr)
        more = install or self._login("\n".join(error.stderr))
        return Failure(
            f"{told}{last_stderr_line(error)}{'' if more else self._no_agent(doing)}",
            more=(advice_sentence(more),),
        )

    def _no_agent(self, doing: str) -> str:
        """Return advice for a command that exits before it speaks ACP: it may need an option."""
        unknown = self._agent and self._known is None and doing == "starting"
        return "; does it speak ACP? Many agents need an option for that, such as --acp" if unknown else ""

    def _versions(self, name: str, detail: str) -> Failure:
        asked = "ACP 1 or 2" if self._version is None else f"ACP {self._version}"
        advice = "" if self._version is None else f"; try without --version {self._version}"
        return Failure(f"{name} does not speak {asked}: {read_failure(detail).message}{advice}")
