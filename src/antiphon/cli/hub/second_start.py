"""A second `antiphon serve` on a folder: how to use the hub that runs there."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from antiphon.cli.commands.options import HubPlace
from antiphon.cli.exit_codes import Exit
from antiphon.cli.hub.banner import Banner
from antiphon.cli.hub.links import make_link
from antiphon.cli.hub_client import open_client, run_reporting
from antiphon.cli.output.streams import plain_without_colours, write_styled
from antiphon.hub import HubFolder, Running


def show_running(running: Running, data: str | None, *, agents: Mapping[str, Sequence[str]]) -> Exit:
    """Print a fresh link to a running hub. `agents` are those that were asked for; the exit code is that of
    an error if the hub does not have them all."""

    async def show() -> Exit:
        place = HubPlace(data=data)
        async with open_client(place) as client:
            link = await make_link(client, place)
            served = client.agents
        missing = {name: words for name, words in agents.items() if name not in served}
        known = Running(
            url=running.url, acp=running.acp, token="", pid=running.pid, agents=served, store=running.store
        )
        banner = Banner(known, HubFolder(data), default=data is None, link=link)
        write_styled(sys.stderr, plain_without_colours(banner.runs_already(missing)))
        return Exit.ERROR if missing else Exit.DONE

    return run_reporting(show())
