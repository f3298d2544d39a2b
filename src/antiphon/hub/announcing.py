"""What a hub says that it can do: what its first agent can do and the hub passes on, and what the hub does
itself. Never what attached clients can: that changes, and nobody is told again (invariant 10, PROXY-09)."""

from __future__ import annotations

from antiphon.agent import Agent
from antiphon.agent.agent import ALWAYS, CONTENT
from antiphon.client.protocol.abilities import Abilities
from antiphon.engine.events import Delivery


def announce(hub: Agent, able: Abilities, *, inserts: bool) -> None:
    """`inserts`: the agent takes prompts while it works."""
    accepts = [name for name in CONTENT if getattr(able, name)]
    hub.accepts = frozenset(accepts)
    hub.accepted = (*ALWAYS, *(CONTENT[name] for name in accepts))
    hub.mcp_kinds = able.mcp - {"acp"}
    hub.mcp_over_acp = "acp" in able.mcp
    hub.takes_directories = able.additional_directories
    hub.announces = dict(able.announces)
    decides = [Delivery.AGENT] if hub.busy is Delivery.AGENT and inserts else []
    steers = [Delivery.STEER] if "steer" in able.delivery or decides else []
    # The hub has the queue, and cancels what is interrupted; only the agent takes anything into an open turn.
    delivery = [Delivery.QUEUE, *steers, Delivery.INTERRUPT, *decides]
    hub.offers |= {"delivery": delivery, "inject": {"modes": [Delivery.QUEUE, *steers, *decides]}}
    hub.offers |= {"busy": hub.busy if hub.busy in delivery else Delivery.QUEUE}
