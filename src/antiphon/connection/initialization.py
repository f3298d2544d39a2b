"""Initialization: what two peers agree on in `initialize`, and which frames an agent accepts before it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Raw

from antiphon.errors import InvalidParams, InvalidRequest, LocalError, RemoteError
from antiphon.jsonrpc.peer import Inbound, Peer
from antiphon.schema.codec import Codec, codec
from antiphon.schema.handshake import Handshake, Input, Verdict
from antiphon.schema.updates import UpdateReader
from antiphon.schema.version import V2, Agreement, Offer, read_answer, read_offer

INITIALIZE = "initialize"
LARGEST = 256 * 1024
"""Bytes of the params of `initialize`. A server keeps some of them for as long as the connection."""

InitializeHandler = Callable[[Offer, Any], Awaitable[tuple[Agreement, Any]]]


class Role(StrEnum):
    """Which of the two roles this side has."""

    AGENT = "agent"
    CLIENT = "client"


class Initialization:
    """The state of `initialize` on one connection, for an agent or a client."""

    def __init__(
        self, peer: Peer, *, supported: Sequence[int], on_initialize: InitializeHandler | None
    ) -> None:
        self.agreement: Agreement | None = None
        self.codec: Codec | None = None
        """The codec of the agreed version."""
        self.updates: UpdateReader | None = None
        """The fast reader of updates, if this side handles them."""
        self._peer = peer
        self._supported = tuple(supported)
        self._on_initialize = on_initialize
        self.handshake = Handshake()

    def agreed(self) -> Codec:
        if self.codec is None:
            raise LocalError("the connection is not initialized: call `initialize` before other methods")
        return self.codec

    def prepare_soon(self, *, updates: bool) -> None:
        """Load the types of updates after the response to `initialize`, which they would delay. `updates`:
        whether this side handles updates."""

        def prepare(codec: Codec) -> None:
            reader = codec.updates
            if updates:
                self.updates = reader

        asyncio.get_running_loop().call_soon(prepare, self.agreed())

    def _agree(self, agreement: Agreement) -> None:
        self.agreement = agreement
        self.codec = codec(agreement.version)
        self._peer.strict_ids = agreement.version >= V2  # RPC-03

    # --- as a client -------------------------------------------------------------------------------

    def answered(self, result: Raw) -> RemoteError | None:
        """Read the result of this client's `initialize`. Return what is wrong with it, if anything.

        It is called while reading, because the frames after the response are in the agreed version.
        """
        try:
            self._agree(read_answer(_json(result), supported=self._supported))
        except RemoteError as error:
            return error
        return None

    # --- as an agent -------------------------------------------------------------------------------

    def admit_initialize(self) -> None:
        self._admit(Input.INITIALIZE, "this connection is already initialized")

    def admit_request(self) -> None:
        self._admit(Input.REQUEST, "the connection is not initialized")

    def admits_notification(self) -> bool:
        return self.handshake.step(Input.NOTIFICATION) is Verdict.SERVE

    def _admit(self, input: Input, otherwise: str) -> None:
        if self.handshake.step(input) is not Verdict.SERVE:
            raise InvalidRequest(otherwise)

    async def answer(self, _: None, inbound: Inbound) -> bytes:
        """Respond to an admitted `initialize`, and use the agreed version from then on."""
        try:
            if self._on_initialize is None:
                raise LocalError("on_initialize is None; the connection of an agent needs a handler")
            if inbound.size > LARGEST:
                raise InvalidParams(f"initialize may have {LARGEST} bytes of params, got {inbound.size}")
            selected = self.agreement.version if self.agreement else None
            offer = read_offer(_json(inbound.params), supported=self._supported, selected=selected)
            chosen = codec(offer.version)
            params = chosen.initialize_params(offer.params, exact=offer.exact)
            agreement, result = await self._on_initialize(offer, params)
            answer = chosen.encode(result)
        except BaseException:
            self.handshake.step(Input.FAILED)
            raise
        self.handshake.step(Input.SUCCEEDED)
        self._agree(agreement)
        self.prepare_soon(updates=False)
        return answer


def _json(raw: Raw | None) -> Any:
    """Decode params or a result as plain values. Raises `InvalidParams`: a number may be out of range."""
    try:
        return {} if raw is None else msgspec.json.decode(raw)
    except msgspec.MsgspecError as error:
        raise InvalidParams(str(error)) from None
