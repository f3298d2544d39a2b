"""`antiphon cluster status`: the hubs on a shared store, as the store has them."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from antiphon.cli.commands.options import StorePlace
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub_client import reporting
from antiphon.cli.shared_store import make_store
from antiphon.hub import HubAbout
from antiphon.stores import Peer, StreamStatus
from antiphon.text_safety import safe_json, safe_line

if TYPE_CHECKING:
    from antiphon.stores import JetStreamStore

SHOWN = 20
"""Sessions without a hub that are named."""
_UNITS = ("B", "KiB", "MiB", "GiB")


class HubStatus(Struct, frozen=True, kw_only=True):
    id: str
    label: str
    address: str
    version: str
    sessions: int
    """Sessions that it runs."""
    clients: int
    uptime: float | None
    """Seconds; `None` if it does not say."""


class Orphan(Struct, frozen=True, kw_only=True):
    """A session whose hub is gone."""

    session: str
    host: str
    pid: int


class ClusterStatus(Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    servers: str
    hubs: list[HubStatus]
    orphans: list[Orphan]
    streams: list[StreamStatus]


@reporting
async def run_status(*, json: bool, store: StorePlace | None) -> None:
    if store is None:
        raise Failure("name the NATS servers with --store, as in --store nats://127.0.0.1:4222", Exit.USAGE)
    async with make_store(store) as opened:
        found = await _read(opened)
    if json:
        sys.stdout.write(safe_json(msgspec.json.encode(found).decode()) + "\n")
    else:
        sys.stdout.write(_text(found))


async def _read(store: JetStreamStore) -> ClusterStatus:
    claims = await store.owners()
    owned = Counter(claim.owner.store_id for claim in claims)
    hubs = [_hub(peer, owned[peer.store_id]) for peer in await store.peers()]
    return ClusterStatus(
        servers=store.servers,
        hubs=sorted(hubs, key=lambda hub: (hub.label, hub.address)),
        orphans=[
            Orphan(session=claim.session_id, host=claim.owner.host, pid=claim.owner.pid)
            for claim in claims
            if not claim.alive
        ],
        streams=await store.status(),
    )


def _hub(peer: Peer, sessions: int) -> HubStatus:
    about = HubAbout.read(peer.about)
    return HubStatus(
        id=peer.store_id,
        label=about.label,
        address=about.address,
        version=about.version,
        sessions=sessions,
        clients=about.clients,
        uptime=max(0.0, time.time() - about.started_at) if about.started_at else None,
    )


def _text(found: ClusterStatus) -> str:
    hubs = [
        (
            hub.label or "?",
            hub.address or "?",
            hub.version or "?",
            hub.sessions,
            hub.clients,
            _span(hub.uptime),
        )
        for hub in found.hubs
    ]
    streams = [
        (each.name, each.messages, _size(each.bytes), each.replicas, each.leader or "-", each.lag)
        for each in found.streams
    ]
    lines = [f"NATS at {found.servers}", ""]
    if hubs:
        lines += _table(("HUB", "ADDRESS", "VERSION", "SESSIONS", "CLIENTS", "UP"), hubs)
    else:
        lines.append("No hub runs on this store.")
    if found.orphans:
        lines += ["", f"Sessions whose hub is gone: {len(found.orphans)}"]
        lines += [
            f"  {safe_line(each.session)}  (process {each.pid} on {safe_line(each.host, limit=64)})"
            for each in found.orphans[:SHOWN]
        ]
        if len(found.orphans) > SHOWN:
            lines.append(f"  and {len(found.orphans) - SHOWN} more: --json lists all")
    lines += ["", *_table(("STREAM", "MESSAGES", "SIZE", "REPLICAS", "LEADER", "LAG"), streams)]
    return "".join(f"{line}\n" for line in lines)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return lines with columns. Numbers are aligned to the right."""
    texts = [[safe_line(str(cell), limit=200) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[n]) for row in texts)) for n, name in enumerate(head)]
    right = [isinstance(cell, int) for cell in rows[0]]

    def line(cells: Sequence[str]) -> str:
        each = zip(cells, widths, right, strict=True)
        return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in each).rstrip()

    return [line(head), *map(line, texts)]


def _size(count: int) -> str:
    power = min(max(0, count.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{count / 1024**power:.{min(power, 1)}f} {_UNITS[power]}"


def _span(seconds: float | None) -> str:
    """Return a time span in its two largest units."""
    if seconds is None:
        return "?"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [f"{n}{unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")) if n]
    return " ".join(units[:2]) or "0s"
