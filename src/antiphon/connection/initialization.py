"""Initialization: what the two peers agree on in `initialize`, and what an agent lets through before."""

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
from antiphon.schema.opening import Input, Opening, Verdict
from antiphon.schema.updates import UpdateReader
from antiphon.schema.version import V2, Agreement, Offer, read_answer, read_offer

INITIALIZE = "initialize"

InitializeHandler = Callable[[Offer, Any], Awaitable[tuple[Agreement, Any]]]


class Role(StrEnum):
    """Which of the two roles this side has."""

    AGENT = "agent"
    CLIENT = "client"


class Initialization:
    """An agent's is told what comes in, a client's what was answered."""

    def __init__(
        self, peer: Peer, *, supported: Sequence[int], on_initialize: InitializeHandler | None
    ) -> None:
        self.agreement: Agreement | None = None
        self.codec: Codec | None = None
        """That of the version agreed on."""
        self.updates: UpdateReader | None = None
        """The quick way to read updates, for one that expects them."""
        self._peer = peer
        self._supported = tuple(supported)
        self._on_initialize = on_initialize
        self.opening = Opening()

    def agreed(self) -> Codec:
        if self.codec is None:
            raise LocalError("nothing can be sent before `initialize` has succeeded")
        return self.codec

    def prepare_soon(self, *, updates: bool) -> None:
        """Load the many types of an update once nobody waits for the answer to `initialize` any more;
        `updates` come to this side."""

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
        """An `initialize` of ours was answered; what is wrong with that. Called while reading: the frames
        behind this answer are already in its version."""
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
        return self.opening.step(Input.NOTIFICATION) is Verdict.SERVE

    def _admit(self, input: Input, otherwise: str) -> None:
        if self.opening.step(input) is not Verdict.SERVE:
            raise InvalidRequest(otherwise)

    async def answer(self, _: None, inbound: Inbound) -> bytes:
        """Answer an `initialize` that was admitted, and speak as agreed from there on."""
        try:
            if self._on_initialize is None:
                raise LocalError("an agent's connection needs `on_initialize`")
            selected = self.agreement.version if self.agreement else None
            offer = read_offer(_json(inbound.params), supported=self._supported, selected=selected)
            chosen = codec(offer.version)
            params = chosen.opening_params(offer.params, exact=offer.exact)
            agreement, result = await self._on_initialize(offer, params)
            answer = chosen.encode(result)
        except BaseException:
            self.opening.step(Input.FAILED)
            raise
        self.opening.step(Input.SUCCEEDED)
        self._agree(agreement)
        self.prepare_soon(updates=False)
        return answer


def _json(raw: Raw | None) -> Any:
    """Params or a result as plain values. Raises `InvalidParams`: a number may be out of range."""
    try:
        return {} if raw is None else msgspec.json.decode(raw)
    except msgspec.MsgspecError as error:
        raise InvalidParams(str(error)) from None
