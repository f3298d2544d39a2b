"""The options that name a shared store, and those of a hub on it."""

from __future__ import annotations

from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from antiphon.cli.commands.options import Command, HubPlace, StorePlace, hub_options

_FILE = click.Path(exists=True, dir_okay=False)


_STORE = (
    click.option(
        "--store",
        metavar="ADDR[,…]",
        help="Keep the sessions on these NATS servers with JetStream, for several hubs: nats://HOST:PORT or "
        "tls://HOST:PORT. Default: in the data folder, for one hub.",
    ),
    click.option(
        "--store-name",
        metavar="NAME",
        help="The name of the sessions' streams on the NATS servers. Default: antiphon.",
    ),
    click.option("--nats-creds", type=_FILE, metavar="F", help="The credentials file of a NATS account."),
    click.option("--nats-ca", type=_FILE, metavar="F", help="The certificate authority of the NATS servers."),
)
_HUB = (
    click.option(
        "--replicas",
        type=click.IntRange(1, 5),
        metavar="N",
        help="How many NATS servers keep each session, when the streams are made. Default: 1.",
    ),
    click.option(
        "--lease",
        type=click.FloatRange(min=1),
        metavar="SECONDS",
        help="When a hub does not answer for so long, another may take over its sessions. Default: 10.",
    ),
    click.option(
        "--label",
        metavar="NAME",
        help="Where the working directories of this hub are. A hub with the same label may take over its "
        "sessions. Default: the name of this machine.",
    ),
    click.option(
        "--movable",
        is_flag=True,
        help="All hubs on the store see the working directories of this hub: any may take over its sessions.",
    ),
)


def store_options(command: Command) -> Command:
    """Add the options that name a shared store. The command gets them as `store`, `None` without --store."""

    @wraps(command)
    def placed(
        *given: Any,
        store: str | None,
        store_name: str | None,
        nats_creds: str | None,
        nats_ca: str | None,
        **options: Any,
    ) -> Any:
        place = None
        if store is None:
            _refuse({"--store-name": store_name, "--nats-creds": nats_creds, "--nats-ca": nats_ca})
        else:
            place = StorePlace(store, store_name or "antiphon", nats_creds, nats_ca)
        return command(*given, store=place, **options)

    return _with(placed, _STORE)


def hub_store_options(command: Command) -> Command:
    """Add the options of a hub on a shared store: as `store`, `label` and `movable`."""

    @wraps(command)
    def placed(
        *given: Any,
        store: StorePlace | None,
        replicas: int | None,
        lease: float | None,
        label: str | None,
        movable: bool,
        **options: Any,
    ) -> Any:
        if store is None:
            _refuse({"--replicas": replicas, "--lease": lease, "--label": label, "--movable": movable})
        else:
            store = store._replace(replicas=replicas or store.replicas, lease=lease or store.lease)
        return command(*given, store=store, label=label or "", movable=movable, **options)

    return store_options(_with(placed, _HUB))


def place_options(command: Command) -> Command:
    """Add the options that lead to the sessions of a hub or of a shared store. The command gets `place`."""

    @wraps(command)
    def placed(*given: Any, place: HubPlace, store: StorePlace | None, **options: Any) -> Any:
        if store is not None:
            if click.get_current_context().get_parameter_source("hub") is ParameterSource.COMMANDLINE:
                raise click.UsageError("give either --hub or --store")
            place = place._replace(hub=None, store=store)
        return command(*given, place=place, **options)

    return store_options(hub_options(placed))


def _refuse(given: dict[str, Any]) -> None:
    """Raise `click.UsageError` if an option was given that means nothing without a shared store."""
    named = [option for option, value in given.items() if value]
    if named:
        raise click.UsageError(f"{', '.join(named)}: only with --store, which keeps the sessions on NATS")


def _with(command: Command, options: tuple[Any, ...]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
