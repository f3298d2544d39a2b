"""`antiphon link`, and links to the page of a hub."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

from antiphon.cli.commands.options import HubPlace
from antiphon.cli.exit_codes import Failure
from antiphon.cli.hub_client import find_hub, open_client, reporting, user_name
from antiphon.cli.output.qr_code import QUIET, encode, render
from antiphon.cli.output.streams import write_styled
from antiphon.cli.program import print_note
from antiphon.client import Client
from antiphon.hub import is_loopback, read_public_url
from antiphon.schema.antiphon.hub import ClientRole, LinkRequest, LinkResponse


@reporting
async def run_link(*, role: str, sessions: Sequence[str], qr: bool, place: HubPlace) -> None:
    async with open_client(place) as client:
        link = await make_link(client, place, role=role, sessions=sessions)
    print(link)
    if qr:
        _print_code(link)


async def make_link(
    client: Client, place: HubPlace, *, role: str = "owner", sessions: Sequence[str] = ()
) -> str:
    """Return a link to the page of a hub that lets one browser in."""
    own = role == ClientRole.OWNER and not sessions  # other links are for other people
    name = user_name() if own else None
    asked = LinkRequest(role=ClientRole(role), sessions=list(sessions) or None, name=name)
    found = find_hub(place)
    made: LinkResponse = await client.connection.call("_antiphon/link", asked)
    opened = f"&session={quote(sessions[0], safe='')}" if len(sessions) == 1 else ""
    page = _page("" if found is None else found[0])
    if made.url is not None:  # checked, because it is text from the hub
        page = f"{read_public_url(made.url)}/"
    return f"{page}#login={made.code}{opened}"


def _page(address: str) -> str:
    """Return the address of the page for the WebSocket address of a hub."""
    parts = urlsplit(address)
    return f"http{'s' if parts.scheme == 'wss' else ''}://{parts.netloc}/"


def _print_code(link: str) -> None:
    try:
        modules = encode(link)
    except ValueError as error:
        raise Failure(str(error)) from None
    if is_loopback(urlsplit(link).hostname or ""):
        print_note(
            "this address works on this machine only: for a phone, start the hub with --host and --tls-cert, "
            "or with --public-url"
        )
    widest = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else None
    if widest is not None and len(modules) + 2 * QUIET > widest:
        needed = len(modules) + 2 * QUIET
        raise Failure(f"the code needs {needed} columns, but the terminal has {widest}: make it wider")
    write_styled(sys.stdout, f"\n{render(modules)}")
