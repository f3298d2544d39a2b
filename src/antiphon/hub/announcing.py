"""What a hub says that it can do: what its first agent can do and the hub passes on, and what the hub does
itself. Never what attached clients can: that changes, and nobody is told again (invariant 10, PROXY-09)."""

from __future__ import annotations

from antiphon.client.protocol.abilities import Abilities
from antiphon.engine.events import Delivery
from antiphon.server.offer import CONTENT, Offer


def announce(offer: Offer, able: Abilities, *, inserts: bool) -> None:
    """`inserts`: the agent takes prompts while it works."""
    accepts = [name for name in CONTENT if getattr(able, name)]
    offer.accepts = frozenset(accepts)
    offer.mcp_kinds = able.mcp - {"acp"}
    offer.mcp_over_acp = "acp" in able.mcp
    offer.takes_directories = able.additional_directories
    offer.announces = dict(able.announces)
    decides = [Delivery.AGENT] if offer.busy is Delivery.AGENT and inserts else []
    steers = [Delivery.STEER] if "steer" in able.delivery or decides else []
    # The hub has the queue, and cancels what is interrupted; only the agent takes anything into an open turn.
    delivery = [Delivery.QUEUE, *steers, Delivery.INTERRUPT, *decides]
    offer.ours |= {"delivery": delivery, "inject": {"modes": [Delivery.QUEUE, *steers, *decides]}}
    offer.ours |= {"busy": offer.busy if offer.busy in delivery else Delivery.QUEUE}
