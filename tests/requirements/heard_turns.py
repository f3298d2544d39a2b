"""What a client heard of a turn, and how it ended, in short."""

from __future__ import annotations

from antiphon.client import ClientTurn, TurnEnd
from antiphon.schema import v2

END = TurnEnd(stop_reason=v2.StopReason.END_TURN)


async def kinds(turn: ClientTurn) -> list[str]:
    """What a turn was told, in short; it has to have ended."""
    told = []
    async for update in turn.updates():
        tag = update["sessionUpdate"] if isinstance(update, dict) else update.__struct_config__.tag
        state = getattr(update, "state", None)
        told.append(f"{tag} {state}" if state is not None else str(tag))
    return told
