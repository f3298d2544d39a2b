"""The shared store that the options name. NATS is imported here, when one is named."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from antiphon.cli.commands.options import StorePlace
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.errors import LocalError

if TYPE_CHECKING:
    from antiphon.stores import JetStreamStore


def make_store(place: StorePlace, *, create: bool = False) -> JetStreamStore:
    """Return the store, not connected yet. Raises `Failure`.

    create: make the streams if they are missing. Only a hub does that: its options say how they are made.
    """
    if find_spec("nats") is None:
        raise Failure("--store needs the NATS client: install it with `pip install 'antiphon[nats]'`")
    from antiphon.stores import JetStreamOptions, JetStreamStore

    try:
        options = JetStreamOptions(
            name=place.name,
            replicas=place.replicas,
            lease=place.lease,
            credentials=place.credentials,
            ca=place.ca,
            create=create,
        )
        return JetStreamStore(place.servers, options)
    except LocalError as error:
        raise Failure(f"cannot use --store: {error}", Exit.USAGE) from None
