"""Options of `connect`, in groups. `Reconnect` is one more, in `client.reconnect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from antiphon.client.link import Link
from antiphon.connection.tap import Tap
from antiphon.schema.version import OptIns

if TYPE_CHECKING:
    import os
    import ssl

ProtocolVersion: TypeAlias = Literal[1, 2, "v2-proposed"]
"""ACP 1, ACP 2, or ACP 2 as first proposed."""


class ProcessOptions(Struct, frozen=True, kw_only=True):
    """How `connect` starts the command of an agent."""

    env: Mapping[str, str] = {}
    """Variables that are added to the environment."""
    cwd: str | os.PathLike[str] | None = None
    """The folder that the command is started in; by default the current one."""
    on_stderr: Callable[[str], None] | None = None
    """Called with each line that the command writes to its stderr."""
    terminal_login: bool = False
    """Whether this process has a terminal for logins (`client.login_in_terminal`)."""


class ClientOptions(Struct, frozen=True, kw_only=True):
    """How a client presents itself, and what it asks of the agent."""

    name: str = "antiphon"
    """The name that the agent and other clients of a session see."""
    client_version: str = "0"
    """The version that the agent sees."""
    client_id: str | None = None
    """The id that other clients see. By default a new one; give the same one to be the same client later."""
    tls: ssl.SSLContext | None = None
    """The TLS settings for an address; by default those of the system."""
    opt_ins: OptIns = OptIns(turn_complete=True, message_update=True)
    """What to ask a v1 agent for."""
    numbered: bool = False
    """Whether to ask the agent to number its updates (`session.cursor`), to attach after one of them."""
    silence: float | None = None
    """Seconds without an update after which a turn ends; by default a turn waits."""
    on_link: Callable[[Link], None] | None = None
    """Called when the state of the link changes (`client.link`)."""
    tap: Tap | None = None
    """Receives a copy of all frames."""
