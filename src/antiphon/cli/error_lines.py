"""Errors as one line each, with advice: the same text in every command. A failed agent's words come below."""

from __future__ import annotations

import errno
import re
import shutil
import socket
import ssl
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.program import command_line
from antiphon.client import FailureText, advice_sentence, is_generic, read_failure
from antiphon.errors import (
    CallFailed,
    Forbidden,
    LinkLost,
    LinkRefused,
    SessionClaimed,
    StoreCorrupt,
    StoreFull,
    StoreTooNew,
)
from antiphon.text_safety import safe_line

REFUSED = {
    401: "the hub rejected the token (401): it is unknown, expired or revoked; "
    "`antiphon token create NAME`, on the hub's machine, creates another",
    403: "the hub does not accept this host name (403): use another name for it, or start it with "
    "--allow-host NAME",
    404: "there is no hub at this address (404): `antiphon serve` prints the address of its hub",
    429: "too many connections use this token (429): close one, or start the hub with a "
    "higher --max-connections-per-token",
    503: "the hub has too many connections, or is shutting down (503): try again later",
}
_CANNOT_LISTEN = {
    errno.EADDRINUSE: "the port is in use; --port 0 picks a free one, and so does the hub without --port",
    errno.EACCES: "you may not use this port; give another one with --port",
    errno.EADDRNOTAVAIL: "this machine does not have this address; give another one with --host",
}
LONGEST = 600
"""Characters of a line."""
AGENT = "agent"
"""The `data.reason` of an error that the hub's agent caused."""

_PLACE = re.compile(r"cannot reach (\S+): ")
_NODE_TRAILER = re.compile(r"Node\.js v\d")
_STATUS = re.compile(r"\bHTTP (\d{3})\b")


def print_error(error: BaseException) -> Exit:
    """Print the line for an error on stderr, and return the exit code."""
    failure = error if isinstance(error, Failure) else _failure(error)
    lines = [f"antiphon: {safe_line(str(failure), limit=LONGEST)}"]
    lines += (f"  {safe_line(line, limit=LONGEST)}" for line in failure.more)
    print("\n".join(map(_wrapped, lines)), file=sys.stderr, flush=True)
    return failure.code


def _failure(error: BaseException) -> Failure:
    """Return the failure for an error that is none yet: its line, and what an agent said and what to do."""
    if isinstance(error, CallFailed) and error.error.code != Forbidden.code:
        told = read_failure(error.error.message, error.error.data)
        return Failure(error_line(error), more=(*told.stderr, advice_sentence(told.advice)))
    return Failure(error_line(error))


def agent_failure(message: str, data: Any, *, stderr: Iterable[str] = ()) -> FailureText:
    """Read the failure that an agent answered with. Its `stderr` is told if it said nothing else."""
    told = read_failure(message, data)
    if is_generic(told.message) and not told.stderr:
        told = read_failure(message, {"stderr": list(stderr)})
    return told


def _wrapped(line: str) -> str:
    """Break a line at words to fit the terminal, if it goes to one."""
    if not sys.stderr.isatty():
        return line
    width, indent = max(shutil.get_terminal_size().columns - 1, 30), len(line) - len(line.lstrip()) + 2
    wrapped = textwrap.wrap(
        line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrapped)


def error_line(error: BaseException) -> str:
    """Return the line for an error."""
    if isinstance(error, LinkRefused):
        return REFUSED.get(error.status, f"the hub refused the connection ({error.status}): {error.reason}")
    if isinstance(error, LinkLost):
        return _lost(error)
    if isinstance(error, CallFailed):
        return _refused(error)
    if isinstance(error, StoreTooNew):
        return f"{error}: update Antiphon, or give another folder with --data DIR"
    if isinstance(error, StoreCorrupt):
        return (
            f"{error}. Nothing was changed. `{command_line('sessions list')}` and "
            f"`{command_line('sessions export')} ID` read what is left of it; then move the file away, and "
            "import what was exported"
        )
    if isinstance(error, StoreFull):
        return f"{error}: free some disk space, and try again"
    if isinstance(error, SessionClaimed):
        return f"{error}: end that process, or attach to the session there"
    return _listening(error) or str(error)


def last_stderr_line(lost: LinkLost | None) -> str:
    """Return the last line that a lost agent wrote to stderr, in brackets."""
    lines = [line for line in (lost.stderr if lost else ()) if not _NODE_TRAILER.match(line)]
    return f" (last line on stderr: {safe_line(lines[-1])})" if lines else ""


def _listening(error: BaseException) -> str | None:
    """Return the line for a hub that cannot listen at its address."""
    if not str(error).startswith("cannot listen at "):
        return None
    causes = (each.errno for each in _causes(error) if isinstance(each, OSError))
    known = _CANNOT_LISTEN.get(next(filter(None, causes), 0))
    return None if known is None else f"{str(error).partition(': ')[0]}: {known}"


def _lost(error: LinkLost) -> str:
    """Return the line for a connection that failed or was lost."""
    place = _PLACE.match(error.reason)
    known = next(filter(None, map(_reason, _causes(error))), None)
    where = f"the hub at {place[1]}" if place else "the hub"
    return f"cannot reach {where}: {known or error.reason}"


def _reason(cause: BaseException) -> str | None:
    status = _STATUS.search(str(cause))
    if status and int(status[1]) in REFUSED:
        return REFUSED[int(status[1])]
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({cause.verify_message}); give a file of trusted certificates "
            "with --ca FILE, or ANTIPHON_CA"
        )
    if isinstance(cause, ssl.SSLError):
        return "it does not speak TLS; try ws://HOST:PORT"
    if "valid HTTP response" in str(cause):
        return "it does not speak HTTP, but may speak TLS; try wss://HOST:PORT"
    if isinstance(cause, socket.gaierror):
        return "the host name is unknown"
    if isinstance(cause, ConnectionRefusedError):
        return f"the connection was refused; `{command_line('serve')}` starts a hub on this machine"
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    return None


def _refused(error: CallFailed) -> str:
    """Return the line for a request that the hub refused."""
    data = error.error.data
    if error.error.code == Forbidden.code:
        return "this token does not permit that: `antiphon token list`, on the hub's machine, lists the roles"
    told = read_failure(error.error.message, data)
    if isinstance(data, dict) and data.get("reason") == AGENT:
        advice = "" if told.advice else "; to see why, run the agent's command by hand, or the hub with -v"
        return f"{told.message}{advice}"
    if isinstance(data, dict) and not {"advice", "details"}.isdisjoint(data):
        return f"the agent failed: {told.message}"
    return f"the hub refused: {told.message}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    found: BaseException | None = error
    while found is not None:
        yield found
        if isinstance(found, BaseExceptionGroup):
            for each in found.exceptions:
                yield from _causes(each)
        found = found.__cause__ or found.__context__
