"""Broken clients: frames, ids and malformed input."""

from __future__ import annotations

from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good.client import METHOD_NOT_FOUND, ClientFailed, GoodClient, RequestRefused

defects = Defects()


@defects.add("EXT-01", versions=(1,))
class IgnoresCustomRequests(GoodClient):
    """It does not answer custom methods that it does not know."""

    def on_unknown_request(self, id: Any, method: str) -> None:
        if not method.startswith("_"):
            super().on_unknown_request(id, method)


@defects.add("RPC-18", versions=(2,))
class RefusesUnknownMethodsAsInternalErrors(GoodClient):
    """It refuses an unknown method with an internal error."""

    def on_unknown_request(self, id: Any, method: str) -> None:
        self.refuse(id, METHOD_NOT_FOUND if method.startswith("_") else -32603, "No")


@defects.add("RPC-05", versions=(1,))
class ReadsIdsAsIntegers(GoodClient):
    """It answers a request with the id `"7"` under the id 7."""

    def refuse(self, id: Any, code: int, message: str) -> None:
        super().refuse(int(id) if isinstance(id, str) and id.isdigit() else id, code, message)


@defects.add("RPC-07", versions=(2,))
class HasOneSpaceOfIds(GoodClient):
    """It takes a request of the agent with the id of its prompt as the answer to its prompt."""

    def receive_request(self, id: Any, method: str, params: dict[str, Any]) -> None:
        super().receive_request(id, method, params)
        if id in self.pending and isinstance(id, int):
            self.pending.pop(id)
            self.end_turn()


@defects.add("RPC-19", versions=(1,))
class FailsOnUnknownNotifications(GoodClient):
    """It fails on a notification that it does not know."""

    def on_unknown_notification(self, method: str) -> None:
        if not method.startswith(("_", "elicitation/")):
            raise ClientFailed("an unknown notification")


@defects.add("RPC-08", versions=(2,), also=("RPC-19",))
class AnswersUnknownNotifications(GoodClient):
    """It answers a notification that it does not know."""

    def on_unknown_notification(self, method: str) -> None:
        if not method.startswith(("_", "elicitation/")):
            self.refuse(None, METHOD_NOT_FOUND, "Method not found")


@defects.add("EXT-02", versions=(1,))
class FailsOnCustomNotifications(GoodClient):
    """It fails on a custom notification that it does not know."""

    def on_unknown_notification(self, method: str) -> None:
        if method.startswith("_"):
            raise ClientFailed("an unknown notification")


@defects.add("RPC-12", versions=(1,))
class AnswersResponses(GoodClient):
    """It answers a response that it did not ask for."""

    def on_unmatched(self, frame: dict[str, Any]) -> None:
        self.refuse(frame.get("id"), -32600, "Invalid request")


@defects.add("RPC-10", versions=(1,))
class FailsOnGarbage(GoodClient):
    """It ends the connection when the agent prints a line that is no JSON."""

    def on_unparsed(self, line: bytes) -> None:
        raise ClientFailed("no JSON")


@defects.add("RPC-11", versions=(1,))
class IgnoresInvalidMessages(GoodClient):
    """It says nothing to a JSON value that is no message."""

    def on_invalid(self, value: Any) -> None:
        if isinstance(value, list):
            super().on_invalid(value)


@defects.add("RPC-14", versions=(2,))
class RunsBatches(GoodClient):
    """It runs the entries of an array."""

    def on_invalid(self, value: Any) -> None:
        if isinstance(value, list):
            for frame in value:
                self.receive_call(frame)
        else:
            super().on_invalid(value)


@defects.add("RPC-04", versions=(2,))
class TakesAnyId(GoodClient):
    """It runs a request whose id is a fraction."""

    def is_usable(self, id: Any) -> bool:
        return True


@defects.add("RPC-20", versions=(1,))
class FailsOnMalformedParams(GoodClient):
    """It ends the connection when the params of a request are malformed."""

    def receive_request(self, id: Any, method: str, params: dict[str, Any]) -> None:
        try:
            super().receive_request(id, method, params)
        except RequestRefused as refused:
            if refused.code == -32602 and method == "session/request_permission":
                self.refuse(id, refused.code, str(refused))
                raise ClientFailed("malformed params") from None
            raise


@defects.add("TRANS-07", versions=(1,))
class FailsOnBlankLines(GoodClient):
    """It fails on a blank line."""

    def receive_line(self, line: bytes) -> None:
        if not line.strip():
            raise ClientFailed("a blank line")
        super().receive_line(line)


@defects.add("RPC-38", versions=(1,))
class ReadsShortLinesOnly(GoodClient):
    """It fails on a line over 64 KiB, as some readers do by default."""

    def receive_line(self, line: bytes) -> None:
        if len(line) > 65536:
            raise ClientFailed("the line is too long")
        super().receive_line(line)
