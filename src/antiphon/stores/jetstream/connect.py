"""Connects to NATS servers: TLS, credentials, and errors that say what to do."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import nats.errors
from nats.aio.client import Client

from antiphon.errors import StoreError
from antiphon.stores.jetstream.addresses import shown_servers
from antiphon.stores.jetstream.layout import OLDEST_SERVER, JetStreamOptions

CLOSING = 2.0
"""Seconds that closing a connection may take."""
logger = logging.getLogger("antiphon.stores")


class TlsClient(Client):
    """A client that sends its credentials over TLS only.

    The client of nats-py goes on in plain text with a server that does not ask for TLS, whatever the address
    says: so anybody between the two could have read the password.
    """

    def _connect_command(self) -> bytes:
        if not self._server_info.get("tls_required"):
            raise nats.errors.Error("the server does not use TLS, which the address or the CA file asks for")
        return super()._connect_command()


async def connect(
    servers: list[str], options: JetStreamOptions, *, disconnected: Callable[[], Awaitable[None]]
) -> Client:
    """Connect to one of the servers, and stay connected to any of them.

    The first address may have the user for all of them. `disconnected` is called whenever the
    connection is lost. Raises `StoreError`.
    """
    addresses, where = list(servers), shown_servers(servers)
    is_tls = options.ca is not None or servers[0].startswith("tls:")
    settings: dict[str, Any] = {
        **_user(addresses[0]),
        **_credentials(options.credentials),
        "tls": _tls(options.ca) if is_tls else None,
        "disconnected_cb": disconnected,
    }
    random.shuffle(addresses)
    failures: dict[str, None] = {}

    async def note(error: Exception) -> None:
        reason = _reason(error, options)
        failures[reason] = None
        logger.info("NATS connection: %s", reason)

    for _ in range(len(addresses)):
        client = TlsClient() if is_tls else Client()
        try:
            await client.connect(
                servers=addresses,
                name="antiphon",
                error_cb=note,
                connect_timeout=5,
                dont_randomize=True,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                **settings,
            )
        except (nats.errors.Error, OSError, TimeoutError) as error:
            if not isinstance(error, nats.errors.NoServersError):
                await note(error)
            await disconnect(client)
            addresses.append(addresses.pop(0))
        else:
            break
    else:
        raise StoreError(f"cannot connect to NATS at {where}: {'; '.join(failures)}")
    # Now that it was connected, for ever.
    client.options.update(allow_reconnect=True, max_reconnect_attempts=-1, reconnect_time_wait=1)
    found = client.connected_server_version
    if (found.major, found.minor) < OLDEST_SERVER:
        await disconnect(client)
        raise StoreError(
            f"NATS server {found.major}.{found.minor} at {where} is too old: "
            f"{'.'.join(map(str, OLDEST_SERVER))} or newer is needed"
        )
    return client


async def disconnect(client: Client) -> None:
    """Close a connection. nats-py waits for ever for one whose TLS handshake failed, and raises if the server
    is gone."""
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(CLOSING):
            await client.close()


def _tls(ca: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except ssl.SSLError as error:
        raise StoreError(f"the CA file {ca} has no certificate in PEM format: {_said(error)}") from error
    except OSError as error:
        raise StoreError(f"cannot read the CA file {ca}: {_said(error)}") from error


def _user(address: str) -> dict[str, str]:
    """Return the user of an address, for all servers, also those that the cluster names later."""
    parts = urlsplit(address)
    if parts.password:
        return {"user": unquote(parts.username or ""), "password": unquote(parts.password)}
    return {"token": unquote(parts.username)} if parts.username else {}


def _credentials(path: str | None) -> dict[str, str]:
    """Return a file as credentials with a JWT, or as the seed of an NKEY, whichever it is."""
    if path is None:
        return {}
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read the credentials file {path}: {_said(error)}") from error
    seed = re.search(r"^SU[A-Z2-7]{56}\s*$", text, re.MULTILINE)
    if seed and "BEGIN NATS USER JWT" in text:
        return {"user_credentials": path}
    if seed and seed[0].strip() == text.strip():
        return {"nkeys_seed": path}
    raise StoreError(
        f"{path} is not a NATS credentials file: "
        "expected a user JWT with its NKEY seed, as `nsc generate creds` writes it, or an NKEY seed alone"
    )


def _said(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _reason(error: Exception, options: JetStreamOptions) -> str:
    """Return why a connection failed, and what to do about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = f"check the CA file {options.ca}" if options.ca else "give the CA file of the servers"
        return f"the certificate of the server was refused ({error.verify_message}): {advice}"
    if "authorization" in str(error).lower():
        given = f"the credentials file {options.credentials}" if options.credentials else "user and password"
        return f"the server refused {given}: check that they belong to an account of these servers"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: no server listens there"
    return _said(error)
