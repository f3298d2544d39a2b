"""ClientConnection: one client's connection to a server, from `initialize` to its end."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import structs

from antiphon.bridge.authentication import status_v1
from antiphon.bridge.dialects import MESSAGE_DELETED, writer
from antiphon.bridge.losses import LossCounter
from antiphon.bridge.questions import modes
from antiphon.connection import Connection, ConnectionOptions, Role
from antiphon.connection.handlers import NotificationHandler, RequestHandler
from antiphon.engine.annotations import ANNOTATION_UPDATES
from antiphon.engine.questions import Question
from antiphon.engine.who import UNNAMED, clean_name
from antiphon.errors import LinkLost
from antiphon.live.attachment_writer import AttachmentWriter, ClientProfile
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.clients import InitializeMeta, Who
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import ClientDetails
from antiphon.schema.version import V1, Agreement, Extras, with_ours
from antiphon.schema.version import Offer as ClientOffer
from antiphon.server.access import AccessPolicy
from antiphon.server.authentication import Authentication, Logins
from antiphon.server.ids import new_id
from antiphon.server.mcp_calls import McpCalls
from antiphon.server.offer import Offer
from antiphon.transports.base import Transport

VERSION_LIMIT = 32


class ClientInfo(NamedTuple):
    who: Who
    version: str | None = None

    @property
    def client_id(self) -> str:
        return self.who.client_id


def read_client_info(offer: ClientOffer, params: Any, before: ClientInfo | None) -> ClientInfo:
    """Read the params of `initialize`. An invalid id is ignored: it is no reason to refuse a client. A second
    `initialize` keeps the id of the first."""
    info = getattr(params, "info", None) or getattr(params, "client_info", None)
    given = read_meta(InitializeMeta, offer.params.get("_meta")).client_id
    client_id = given or (new_id("client") if before is None else before.client_id)
    return _info(client_id, getattr(info, "name", None), getattr(info, "version", None))


def renamed(before: ClientInfo, client_id: str | None, info: ClientDetails | None) -> ClientInfo:
    """Return the info of a client that gives more, or other, information as it attaches."""
    given = info or ClientDetails()
    return _info(
        client_id or before.client_id,
        given.name or before.who.name,
        given.version or before.version,
    )


def _info(client_id: str, name: Any, version: Any) -> ClientInfo:
    who = Who(client_id=client_id, name=clean_name(name) or UNNAMED)
    return ClientInfo(who, clean_name(version, limit=VERSION_LIMIT))


_serials = itertools.count()


class MethodHandlers(NamedTuple):
    """What handles the requests and notifications of one client."""

    requests: Mapping[str, RequestHandler]
    notifications: Mapping[str, NotificationHandler]
    options: ConnectionOptions
    """What handles extension methods, and in which lane each method runs."""


class ClientConnection:
    def __init__(
        self,
        transport: Transport,
        policy: AccessPolicy,
        *,
        offer: Offer,
        logins: Logins,
        handlers: Callable[[ClientConnection], MethodHandlers],
        losses: LossCounter,
    ) -> None:
        self.policy = policy
        self._offer = offer
        self.losses = losses
        """Counts what v1 cannot express."""
        self.serial = next(_serials)
        """Connections that came first have the lower ones."""
        self.voices: dict[str, AttachmentWriter] = {}
        """The attachments of this client, by the ids of their sessions."""
        self.moving = asyncio.Lock()
        """Held while an attachment replaces another: of two that do, the later one stays."""
        self.v1_client: v1.ClientCapabilities | None = None
        self.v2_client: v2.ClientCapabilities | None = None
        """What the client said it can do, in the version it speaks."""
        self._info: ClientInfo | None = None
        self.authentication = Authentication(logins)
        self.mcp = McpCalls(lambda: self.wire)
        """The MCP servers that this client offers."""
        handled = handlers(self)
        self.wire = Connection(
            transport,
            role=Role.AGENT,
            on_initialize=self._initialize,
            **handled._asdict(),
        )

    async def _initialize(self, offer: ClientOffer, params: Any) -> tuple[Agreement, Any]:
        if offer.version == V1:
            client = self.v1_client = params.client_capabilities or v1.ClientCapabilities()
        else:
            client = self.v2_client = params.capabilities or v2.ClientCapabilities()
        self._info = read_client_info(offer, params, self._info)
        agreement, result = self._offer.answer(offer)
        ours = dict(self.policy.introduction)
        if agreement.extras.presence:
            ours["clientId"] = self.client_id
        if ours:
            result = structs.replace(result, meta=with_ours(result.meta, **ours))
        return agreement, self.authentication.offer(result, client)

    @property
    def info(self) -> ClientInfo:
        """The client, as others see it."""
        assert self._info is not None
        return self._info

    @property
    def client_id(self) -> str:
        return self.info.client_id

    @property
    def v1(self) -> bool:
        assert self.wire.agreement is not None
        return self.wire.agreement.version == V1

    @property
    def types(self) -> Any:
        """The module with the types of the version that the client speaks."""
        return v1 if self.v1 else v2

    @property
    def extras(self) -> Extras:
        """What the client asked for beyond its version, and gets; nothing before `initialize`."""
        return Extras() if self.wire.agreement is None else self.wire.agreement.extras

    @property
    def modes(self) -> frozenset[str]:
        """The modes of elicitations that the client takes."""
        return modes(self.v1_client or self.v2_client)

    def follows(self, session_id: str) -> bool:
        return session_id in self.voices

    def new_voice(
        self,
        session_id: str,
        info: ClientInfo | None,
        *,
        answers: Callable[[Question], bool],
        on_failed: Callable[[], None],
    ) -> AttachmentWriter:
        """Return an attachment that is not pinned yet.

        answers: says which questions are put to it
        on_failed: called when an update cannot be written for the client
        """
        info = info or self.info
        agreement = self.wire.agreement
        assert agreement is not None
        speaks = writer(
            agreement,
            capabilities=self.v1_client,
            extensions=_extensions(agreement.extras),
            report=self.losses,
        )
        profile = ClientProfile(
            who=info.who,
            version=info.version,
            modes=self.modes,
            answers=answers,
            counts=self.policy.is_valid,
            credential=self.policy.credential,
        )
        return AttachmentWriter(
            session_id, self.wire, speaks, profile, extras=agreement.extras, on_failed=on_failed
        )

    async def ask(self, method: str, params: Any) -> Any:
        """Call the client. Raises `LinkLost` also where the client is about to be cut off: its answer does
        not count."""
        result = await self.wire.call(method, params)
        if not self.policy.is_valid():
            raise LinkLost("its client may not answer any more")
        return result

    async def report_auth(self) -> None:
        """Send the auth status to a client that asked for it before, where it has changed (AUTH-25)."""
        now = await self.authentication.changed()
        if now is None:
            return
        status: Any = status_v1(now) if self.v1 else now
        update = self.types.AuthStatusUpdateNotification(
            state=status.state, accounts=status.accounts, meta=status.meta
        )
        await self.wire.notify("auth/status_update", update)


def _extensions(extras: Extras) -> frozenset[str]:
    """Return the updates of our own protocol in the journal that a client asked for."""
    asked = ANNOTATION_UPDATES if extras.annotations else frozenset()
    return asked | {MESSAGE_DELETED} if extras.message_deleted else asked
