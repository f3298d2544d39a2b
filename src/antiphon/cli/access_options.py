"""Who may reach a hub, and how much of it: the options of `antiphon serve` for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]
_FILE = click.Path(exists=True, dir_okay=False)

_OPTIONS = (
    click.option("--tls-cert", type=_FILE, metavar="F", help="Serve over TLS, with this certificate."),
    click.option("--tls-key", type=_FILE, metavar="F", help="Its key, where that is not in the same file."),
    click.option(
        "--insecure-bind",
        is_flag=True,
        help="Listen without TLS where others than this machine can reach it: they can read everything.",
    ),
    click.option(
        "--allow-host", "hosts", multiple=True, metavar="NAME", help="A name by which clients reach it."
    ),
    click.option(
        "--allow-origin", "origins", multiple=True, metavar="URL", help="A page elsewhere that may reach it."
    ),
    click.option(
        "--public-url", metavar="URL", help="Where browsers reach it: the address of the proxy before it."
    ),
    click.option(
        "--trusted-proxy",
        "trusted_proxies",
        multiple=True,
        metavar="ADDRESS[,…]",
        help="A proxy, or a CIDR block of them, that says who its clients are; nobody, unless said.",
    ),
    click.option(
        "--questions",
        type=click.Choice(["first", "owner", "designated"]),
        default="first",
        show_default=True,
        help="Who answers agents: the first of all, an owner, or the client that sent the prompt.",
    ),
    click.option(
        "--question-expiry",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="A question without an answer ends after this; never, unless said.",
    ),
    click.option(
        "--max-frame", type=click.IntRange(1024), metavar="BYTES", help="The largest message of a client."
    ),
    click.option("--max-connections", type=click.IntRange(1), metavar="N", help="Of all clients together."),
    click.option(
        "--max-connections-per-token", type=click.IntRange(1), metavar="N", help="Of those with one token."
    ),
    click.option("--max-sessions", type=click.IntRange(1), metavar="N", help="That are open at a time."),
    click.option(
        "--prompts-per-minute", type=click.IntRange(1), metavar="N", help="Of all clients with one token."
    ),
)


def access_options(command: Command) -> Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
