"""Good clients of other manners: what they do not do, the judge does not hold against them."""

from __future__ import annotations

from typing import Any

from tests.conformance.good.client import GoodClient, main


class V1Client(GoodClient):
    """Speaks version 1 alone."""

    def initialize_params(self) -> dict[str, Any]:
        return {"protocolVersion": 1, "clientInfo": {"name": "v1-client", "version": "1"}}


class V2Client(GoodClient):
    """Speaks version 2 alone."""

    def agree(self, result: dict[str, Any]) -> int:
        return super().agree({} if result["protocolVersion"] == 1 else result)


class SilentClient(GoodClient):
    """Prints nothing."""

    def output(self) -> str:
        return ""


class LingeringClient(GoodClient):
    """Waits for its user after the turn."""

    def end_turn(self) -> None:
        """Go on."""


class SecondTryClient(GoodClient):
    """Starts the agent again when it dies."""

    def on_death(self) -> None:
        main(GoodClient)
