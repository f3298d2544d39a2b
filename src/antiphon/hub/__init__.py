"""The hub: any agent, many clients, one durable session."""

from typing import TYPE_CHECKING, Any

from antiphon.hub.folder import HubFolder, Running

if TYPE_CHECKING:
    from antiphon.hub.hub import Hub

__all__ = ["Hub", "HubFolder", "Running"]


def __getattr__(name: str) -> Any:
    # Who only looks into a hub's folder (`antiphon token list`, a shell that completes) needs no event loop.
    if name == "Hub":
        from antiphon.hub.hub import Hub

        return Hub
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
