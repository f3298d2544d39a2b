"""Signals that end a command."""

from __future__ import annotations

import signal


def accept_stop_signals() -> None:
    """Let SIGINT and SIGTERM end this process although it was started with them ignored.

    A shell without job control starts its background commands with SIGINT ignored. SIGHUP stays ignored
    where it was: `nohup` asks for that.
    """
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
