"""What went wrong, in one line, and what to do about it: the same words in every command."""

from __future__ import annotations

import errno
import re
import socket
import ssl
import sys
from collections.abc import Iterator

from antiphon.cli.exits import Exit, Failure
from antiphon.cli.own_command import here
from antiphon.errors import (
    CallFailed,
    Forbidden,
    LinkLost,
    LinkRefused,
    SessionClaimed,
    SessionDamaged,
    SessionTooNew,
    StoreCorrupt,
    StoreFull,
    StoreTooNew,
)
from antiphon.text_safety import safe_line

REFUSED = {
    401: "the hub does not know this token (401): it is another hub's, or has ended or been revoked; "
    "`antiphon token create NAME`, where the hub runs, makes another",
    403: "the hub is not known by this name (403): reach it by one that it knows, or have it started with "
    "--allow-host NAME",
    404: "there is something else than a hub (404): `antiphon serve` prints the address of one",
    429: "it has as many connections with this token as it takes (429): close one, or have it started with a "
    "higher --max-connections-per-token",
    503: "it has as many connections as it takes, or is about to end (503): try again later",
}
_CANNOT_LISTEN = {
    errno.EADDRINUSE: "somebody has this port; --port 0 picks a free one, and so does the hub without --port",
    errno.EACCES: "this port is not for everybody; name another with --port",
    errno.EADDRNOTAVAIL: "this machine has no such address; name another with --host",
}
AGENT = "agent"
"""The `data.reason` by which a hub says that its agent is at fault."""

_PLACE = re.compile(r"cannot reach (\S+): ")
_STATUS = re.compile(r"\bHTTP (\d{3})\b")


def tell(error: BaseException) -> Exit:
    """Say it on stderr; the code to end with."""
    print(f"antiphon: {safe_line(advice(error), limit=600)}", file=sys.stderr)
    return error.code if isinstance(error, Failure) else Exit.ERROR


def advice(error: BaseException) -> str:
    """The line for an error."""
    if isinstance(error, Failure):
        return str(error)
    if isinstance(error, LinkRefused):
        return REFUSED.get(error.status, f"the hub refuses ({error.status}): {error.reason}")
    if isinstance(error, LinkLost):
        return _lost(error)
    if isinstance(error, CallFailed):
        return _refused(error)
    if isinstance(error, SessionDamaged | SessionTooNew):
        return str(error)
    if isinstance(error, StoreTooNew):
        return f"{error}: update Antiphon, or name another folder with --data DIR"
    if isinstance(error, StoreCorrupt):
        return (
            f"{error}. Nothing was changed. `{here('sessions list')}` and `{here('sessions export')} ID` "
            "read what is left of it; then move the file away, and import what was exported"
        )
    if isinstance(error, StoreFull):
        return f"{error}: make room, and try again"
    if isinstance(error, SessionClaimed):
        return f"{error}: end that, or follow the session there"
    return _listening(error) or str(error)


def _listening(error: BaseException) -> str | None:
    """Where a hub could not listen: at which address, and why."""
    if not str(error).startswith("cannot listen at "):
        return None
    causes = (each.errno for each in _causes(error) if isinstance(each, OSError))
    known = _CANNOT_LISTEN.get(next(filter(None, causes), 0))
    return None if known is None else f"{str(error).partition(': ')[0]}: {known}"


def _lost(error: LinkLost) -> str:
    """Why a link came about never, or was lost."""
    place = _PLACE.match(error.reason)
    known = next(filter(None, map(_told, _causes(error))), None)
    where = f"the hub at {place[1]}" if place else "the hub"
    return f"{where} cannot be reached: {known or error.reason}"


def _told(cause: BaseException) -> str | None:
    status = _STATUS.search(str(cause))
    if status and int(status[1]) in REFUSED:
        return REFUSED[int(status[1])]
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({cause.verify_message}); name a file that it is trusted by "
            "with --ca FILE, or ANTIPHON_CA"
        )
    if isinstance(cause, ssl.SSLError):
        return "it does not speak TLS; try it as ws://HOST:PORT"
    if "valid HTTP response" in str(cause):
        return "it does not speak HTTP; it may speak TLS: try it as wss://HOST:PORT"
    if isinstance(cause, socket.gaierror):
        return "there is no host of this name"
    if isinstance(cause, ConnectionRefusedError):
        return f"nobody listens there; `{here('serve')}` starts a hub on this machine"
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    return None


def _refused(error: CallFailed) -> str:
    data = error.error.data
    if error.error.code == Forbidden.code:
        return "this token may not do that: `antiphon token list`, where the hub runs, says what it may"
    if isinstance(data, dict) and data.get("reason") == AGENT:
        return f"{error.error.message}; run its command by hand to see why, or the hub with -v"
    return f"the hub refused: {error.error.message}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """It, and what brought it about."""
    found: BaseException | None = error
    while found is not None:
        yield found
        if isinstance(found, BaseExceptionGroup):
            for each in found.exceptions:
                yield from _causes(each)
        found = found.__cause__ or found.__context__
