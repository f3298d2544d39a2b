"""Places: where the judged hub is, and what the judge may do with it."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from typing import Protocol, Self

from antiphon.conformance.hub.upstream import Upstream
from antiphon.conformance.link import STARTING, NotSeen
from antiphon.conformance.targets import AddressTarget
from antiphon.errors import LinkLost
from antiphon.transports.base import Transport
from antiphon.transports.processes.groups import signal_group, start_process, watch_exit

RETRY_SECONDS = 0.02
"""Between two attempts to connect to a hub that starts."""
END_SECONDS = 5.0


class Place(Protocol):
    """A hub that accepts connections of the judge."""

    @property
    def name(self) -> str:
        """The command line or the address, for the report."""

    @property
    def address(self) -> str: ...

    @property
    def token(self) -> str:
        """The token of the judge; empty if it has none."""

    @property
    def upstream(self) -> Upstream | None:
        """The agents behind the hub, if the judge plays them."""

    async def open(
        self, *, at: str = "", token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Transport:
        """Make a connection, as the judge or with another token; `at` is the address of a proxy."""

    async def start_another(self) -> StartedHub:
        """Start a hub like this one, which the scenario may kill. Raises `NotSeen`."""


class HubAt:
    """A hub that somebody else started. `upstream` are its agents, if the judge plays them."""

    def __init__(self, address: str, *, token: str = "", upstream: Upstream | None = None) -> None:
        self.name = address
        self.address = address
        self.token = token
        self.upstream = upstream

    async def open(
        self, *, at: str = "", token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Transport:
        used = self.token if token is None else token
        return await AddressTarget(at or self.address, token=used, headers=headers).open()

    async def start_another(self) -> StartedHub:
        raise NotSeen("the judge restarts only a hub that it has started: give its command after --")


class StartedHub(HubAt):
    """A hub that the judge starts by a command, in which these words are replaced:

    `{port}` by a free port, `{agent}` by the command line of the agent that the judge plays (an argument that
    is nothing else becomes several arguments), `{folder}` by the path of a folder that does not exist yet,
    and `{token}` by a token that the hub should require.
    """

    def __init__(self, command: Sequence[str], address: str, folder: Path, upstream: Upstream) -> None:
        self._command = command
        self._address = address
        self._folder = folder
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._exited = asyncio.Event()
        self._timeout = upstream.timeout
        token = token_urlsafe(24) if any("{token}" in argument for argument in command) else ""
        super().__init__(address.replace("{port}", str(self._port)), token=token, upstream=upstream)
        self.name = shlex.join(command)
        self.agents = upstream

    @classmethod
    async def start(cls, command: Sequence[str], address: str, *, version: int, timeout: float) -> Self:
        """Start a hub whose agents speak `version`. Raises `SpawnFailed`, or `NotSeen` if nothing listens."""
        upstream = await Upstream.listen(version=version, timeout=timeout)
        self = cls(command, address, Path(tempfile.mkdtemp(prefix="judge-hub-")), upstream)
        try:
            await self.run()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def start_another(self) -> StartedHub:
        version = self.agents.version
        return await StartedHub.start(self._command, self._address, version=version, timeout=self._timeout)

    async def run(self) -> None:
        """Start the process, and wait until it accepts connections."""
        process = self._start()
        self._process = process
        self._exited.clear()
        watch_exit(process, self._exited.set)
        try:
            async with asyncio.timeout(self._timeout * STARTING):
                while True:
                    try:
                        await (await self.open()).aclose()
                        return
                    except LinkLost:
                        if self._exited.is_set():
                            raise NotSeen(f"the hub ended before it listened{self._last_words()}") from None
                        await asyncio.sleep(RETRY_SECONDS)
        except TimeoutError:
            reason = (
                f"the hub did not accept a connection at {self.address} within {self._timeout * STARTING:g} s"
            )
            raise NotSeen(reason + self._last_words()) from None

    async def kill(self) -> None:
        """Kill the hub with SIGKILL, and wait for its end. Its agents are left alone."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        await self._exited.wait()

    async def aclose(self) -> None:
        """Stop the hub and its agents, and remove its folder."""
        if self._process is not None and not self._exited.is_set():
            signal_group(self._process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await self._exited.wait()
            signal_group(self._process.pid, signal.SIGKILL)
            await self._exited.wait()
        await self.agents.aclose()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> subprocess.Popen[bytes]:
        none = subprocess.DEVNULL
        with open(self._folder / "stderr", "ab") as log:
            return start_process(
                self._arguments(), cwd=None, env=None, stdin=none, stdout=none, stderr=log.fileno()
            )

    def _arguments(self) -> list[str]:
        agent = self.agents.command
        values = {
            "{port}": str(self._port),
            "{agent}": shlex.join(agent),
            "{folder}": str(self._folder / "data"),
            "{token}": self.token,
        }
        found: list[str] = []
        for argument in self._command:
            if argument == "{agent}":
                found += agent
                continue
            for word, value in values.items():
                argument = argument.replace(word, value)
            found.append(argument)
        return found

    def _last_words(self) -> str:
        lines = (self._folder / "stderr").read_text("utf-8", "replace").strip().splitlines()
        return f": {lines[-1].strip()}" if lines else ""


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
