"""Service: what a server serves: an agent of this process, or the agents behind a hub."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from antiphon.engine.events import Updated
from antiphon.engine.session import Session
from antiphon.schema import v2
from antiphon.server.authentication import Logins
from antiphon.server.connection import ClientConnection
from antiphon.server.offer import Offer
from antiphon.server.session import ServedSession
from antiphon.server.worker import Worker
from antiphon.stores.base import SessionRecord


class ModelProvider(Protocol):
    """How an agent reaches its models, as far as clients may set it (PROV-01)."""

    @property
    def id(self) -> v2.ProviderId: ...
    @property
    def supported(self) -> Sequence[v2.LlmProtocol]: ...
    @property
    def required(self) -> bool: ...
    @property
    def setting(self) -> tuple[v2.LlmProtocol, str] | None:
        """The protocol and the address that are in use; `None` where it is disabled."""

    async def set(self, api_type: v2.LlmProtocol, base_url: str, headers: dict[str, str]) -> None:
        """Replace what was set before. Raises `InvalidParams`."""

    async def disable(self) -> None:
        """Raises `InvalidParams` where the agent cannot do without it."""


FindSession = Callable[[], ServedSession | None]
"""Returns the session that params name. Raises where the client is not attached to it (RPC-25)."""


class Service(Protocol):
    offer: Offer
    logins: Logins
    believes_relays: bool
    """Whether a client may name another one as the author of an annotation, as a hub does for its clients."""

    @property
    def providers(self) -> Mapping[str, ModelProvider]: ...
    @property
    def may_take_mcp_over_acp(self) -> bool:
        """Whether MCP servers of clients are not refused at once."""

    # --- sessions ----------------------------------------------------------------------------------

    def make_worker(self, session: ServedSession) -> Worker: ...
    async def create(self, params: v2.NewSessionRequest, maker: ClientConnection | None) -> ServedSession:
        """Make a session. `maker` is the client that asked for it."""

    async def fork(
        self, params: v2.ForkSessionRequest, at: str | None, maker: ClientConnection | None
    ) -> ServedSession:
        """Fork a session from where it was last idle, or right after the message `at`."""

    def opening(self) -> AbstractContextManager[None]:
        """Hold a place while a session is opened. Raises `RequestError` where there are too many."""

    async def entered(self, session: ServedSession) -> None:
        """Note a session that was made, or opened from the store, before anything else happens in it."""

    def used(self, session: ServedSession) -> None:
        """Note that a client is about to use a session."""

    def released(self, session: ServedSession) -> None:
        """Note a session that is about to be put away."""

    def changed(self, session_id: str) -> None:
        """Note that the entry of a session in `session/list` may have changed, or is gone."""

    def news(self, fold: Session) -> list[Updated]:
        """Return the updates that a session needs when it is made or opened again."""

    def described(self, record: SessionRecord) -> dict[str, Any]:
        """Return what a list says of a session under our own key, besides its state."""

    # --- extensions --------------------------------------------------------------------------------

    async def call(self, find: FindSession, method: str, params: Any) -> Any:
        """Answer an extension method (EXT-01). Raises `MethodNotFound`."""

    async def notified(self, find: FindSession, method: str, params: Any) -> None:
        """Handle an extension notification; an unknown one is ignored (EXT-02)."""
