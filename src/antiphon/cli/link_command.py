"""`antiphon link`: another link to the hub's page, for another browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import click

from antiphon.cli import completing
from antiphon.cli.exits import Exit
from antiphon.cli.explaining import Explained
from antiphon.cli.options import reaching_options

LINK = """\
Print a link that lets a browser into the hub: once, within five minutes.

Whoever opens it can do what its role may, from this browser, for a week: an owner everything, a controller
prompt and answer, an observer look on. `antiphon token list` names the browsers that are in, and
`antiphon token revoke` sends one away.

\b
Examples:
  antiphon link                                     for a browser of your own
  antiphon link --role observer --session sess_42   for somebody who is to look on
"""


@click.command(cls=Explained, help=LINK, short_help="Print a link that lets a browser into the hub, once.")
@click.option(
    "--role",
    type=click.Choice(["observer", "controller", "owner"]),
    default="owner",
    show_default=True,
    help="What whoever opens it may do.",
)
@click.option(
    "--session",
    "sessions",
    multiple=True,
    metavar="ID",
    help="In this session only; may be repeated.",
    shell_complete=completing.sessions,
)
@reaching_options
@click.pass_context
def link(ctx: click.Context, /, **given: Any) -> None:
    ctx.exit(run_link(**given))


def run_link(
    *, role: str, sessions: Sequence[str], hub: str | None, token: str | None, data: str | None
) -> Exit:
    from antiphon.cli.reaching import find_hub, reached, run_told
    from antiphon.hub.access.origins import read_public_url

    async def work() -> None:
        asked: dict[str, Any] = {"role": role, **({"sessions": list(sessions)} if sessions else {})}
        async with reached(hub, token, data) as client:
            found = find_hub(hub, token, data)
            made = await client.connection.call("_antiphon/link", asked)
        opened = f"&session={quote(sessions[0], safe='')}" if len(sessions) == 1 else ""
        page = _page("" if found is None else found[0])
        if "url" in made:  # checked: it is text of the other side
            page = f"{read_public_url(made['url'])}/"
        click.echo(f"{page}#login={made['code']}{opened}")

    return run_told(work)


def _page(address: str) -> str:
    """Where the page is of a hub that is reached at a WebSocket address."""
    parts = urlsplit(address)
    return f"http{'s' if parts.scheme == 'wss' else ''}://{parts.netloc}/"
