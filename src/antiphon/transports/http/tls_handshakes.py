"""TlsHandshakes: the sockets of a TLS port from when they are accepted to the end of their handshake.

An event loop that accepts TLS sockets reports a socket when its handshake is complete. Until then nothing
could refuse it, and clients that never finish a handshake would take all file descriptors. Here a socket is
accepted, and refused, like one without TLS, and then given back to the event loop for its handshake.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import cast

from antiphon.transports.guarded_socket import GuardedSocket
from antiphon.transports.http.socket import HttpRequests

ALPN = ["http/1.1"]
TLS_SECONDS = 10.0
"""Seconds for a TLS handshake, and for the goodbye of TLS."""


class TlsHandshakes(asyncio.Protocol):
    """The protocol of every socket of a port from when it is accepted to the beginning of its handshake."""

    def __init__(
        self, context: ssl.SSLContext, requests: HttpRequests, secured: Callable[[], GuardedSocket]
    ) -> None:
        """`secured` returns the protocol of a socket whose handshake is complete."""
        context.set_alpn_protocols(ALPN)
        self._context = context
        self._requests = requests
        self._secured = secured
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket from its transport, before anything is read."""
        guarded = cast(GuardedSocket, transport)
        handle = socket.socket(fileno=os.dup(guarded.get_extra_info("socket").fileno()))
        guarded.abort()  # closes the first descriptor of the socket, and not the socket
        if not self._requests.has_descriptors(handle, guarded.peer):
            handle.close()
            return
        task = asyncio.get_running_loop().create_task(self._shake(handle, guarded.peer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shake(self, handle: socket.socket, peer: str) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._secured,
                handle,
                ssl=self._context,
                ssl_handshake_timeout=TLS_SECONDS,
                ssl_shutdown_timeout=TLS_SECONDS,
            )
        except OSError:  # the peer is late, left, or does not speak TLS
            self._requests.faults.total += 1
        except Exception as error:
            self._requests.faults.note(error, f"TLS handshake of {peer}")

    async def aclose(self) -> None:
        """End the sockets whose handshake is not complete."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
