"""`antiphon token`: create, list and revoke the tokens of a hub."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from antiphon.cli.error_lines import print_error
from antiphon.cli.exit_codes import Exit
from antiphon.errors import LocalError
from antiphon.hub import Audit, HubFolder, Role, create_token, read_tokens, revoke_token

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def read_span(given: str) -> float | None:
    """Return the seconds of a time span such as `8h`, or `None` for other text."""
    found = _SPAN.fullmatch(given.strip())
    return None if found is None else float(found[1]) * UNITS[found[2]]


def run_create(
    *, name: str, role: str, sessions: Sequence[str], expires: float | None, data: str | None
) -> Exit:
    def work(folder: HubFolder) -> None:
        folder.make()
        secret = create_token(folder.tokens, name, Role(role), sessions=sessions or None, seconds=expires)
        _audit(folder, "create", name)
        print(secret)
        sys.stderr.write("The secret is shown only once. Its user sets it as ANTIPHON_TOKEN.\n")

    return _run(work, data)


def run_list(*, data: str | None) -> Exit:
    def work(folder: HubFolder) -> None:
        for token in read_tokens(folder.tokens):
            sessions = ",".join(token.sessions or ["all sessions"])
            print(f"{token.name}\t{token.role}\t{sessions}\t{_end(token.expires)}".rstrip())

    return _run(work, data)


def run_revoke(*, name: str, data: str | None) -> Exit:
    def work(folder: HubFolder) -> None:
        revoke_token(folder.tokens, name)
        _audit(folder, "revoke", name)

    return _run(work, data)


def _end(expires: float | None) -> str:
    if expires is None:
        return ""
    return "expired" if expires <= time.time() else f"until {datetime.fromtimestamp(expires):%Y-%m-%d %H:%M}"


def _audit(folder: HubFolder, act: str, name: str) -> None:
    audit = Audit(folder.audit)
    audit.note(f"token {act}", "done", about=name)
    audit.close()


def _run(work: Callable[[HubFolder], None], data: str | None) -> Exit:
    try:
        work(HubFolder(data))
    except (LocalError, OSError) as error:
        return print_error(error)
    return Exit.DONE
