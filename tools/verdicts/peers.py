"""The peers that are judged, as data: what each is, how it is started, and what to ask of it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.peers import agents, install

from antiphon.conformance import PINNED
from antiphon.version import __version__

PEERS = Path(agents.__file__).parent
AGENT = "{agent}"
"""Stands for the command line of the judge's agent in the command of a client."""


@dataclass(frozen=True)
class Peer:
    """One peer. `command` takes a folder of its own, and raises `PeerUnavailable` where it cannot be had."""

    name: str
    party: str
    package: str
    """The package and its version."""
    shown: str
    """The command, as it is given to `antiphon check` by somebody who has the package."""
    command: Callable[[Path], Sequence[str]]
    prompts: Mapping[str, str] = field(default_factory=dict)
    revision: str = PINNED
    """The revision of the v2 draft that it implements."""
    versions: tuple[int, ...] = ()
    """The versions to judge; empty for all that it speaks."""
    env: Mapping[str, str] = field(default_factory=dict)
    jobs: int = 4
    own: bool = False
    """Whether it is Antiphon's: then it may not fail."""


# --- ours --------------------------------------------------------------------------------------------------

ANTIPHON = [sys.executable, "-m", "antiphon"]
REHEARSAL_PROMPTS = {
    "slow": "/stream 9999",
    "tool": "list",
    "slow_tool": "/stuck",
    "permission": "run echo antiphon",
    "failure": "/error",
    "background": "timer 30",
}
"""What to ask of the built-in agent."""
TOKEN = "umask 077; mkdir -p {folder}; printf %s {token} > {folder}/token"
"""Lets the judge into a hub that it starts."""
PACE = {"ANTIPHON_REHEARSAL_PACE": "0.1"}


def _rehearse(folder: Path) -> list[str]:
    return [*ANTIPHON, "rehearse", "--data", str(folder / "sessions")]


def _acp(folder: Path) -> list[str]:
    return [*ANTIPHON, "acp", "--data", str(folder / "hub")]


def _serve(folder: Path) -> list[str]:
    """Return the command of our hub, with the words that the judge replaces."""
    serve = f"{shlex.join(ANTIPHON)} serve --port {{port}} --data {{folder}} -- {AGENT}"
    return ["sh", "-c", f"{TOKEN}; exec {serve}"]


def _prompt(version: int) -> Callable[[Path], list[str]]:
    """Return the command of our client. A shell splits the command line of the agent."""

    def command(folder: Path) -> list[str]:
        prompt = [*ANTIPHON, "prompt", "hello", "--version", str(version), "--allow", "all", "--"]
        return ["sh", "-c", f"exec {shlex.join(prompt)} {AGENT}"]

    return command


OURS = (
    Peer(
        "Antiphon's agent", "agent", f"antiphon {__version__}", "antiphon rehearse",
        _rehearse, REHEARSAL_PROMPTS, env=PACE, own=True,
    ),
    Peer(
        "Antiphon's hub, to an editor", "agent", f"antiphon {__version__}", "antiphon acp",
        _acp, REHEARSAL_PROMPTS, env=PACE, own=True,
    ),
    Peer(
        "Antiphon's hub", "hub", f"antiphon {__version__}",
        f"sh -c '{TOKEN}; exec antiphon serve --port {{port}} --data {{folder}} -- {AGENT}'",
        _serve, own=True,
    ),
    *(
        Peer(
            f"Antiphon's client (v{version})", "client", f"antiphon {__version__}",
            f"sh -c 'exec antiphon prompt hello --version {version} --allow all -- {AGENT}'",
            _prompt(version), versions=(version,), own=True,
        )
        for version in (1, 2)
    ),
)  # fmt: skip


# --- the official SDKs -------------------------------------------------------------------------------------

SDK_PROMPTS = {
    "plain": "hello there",
    "slow": "count",
    "tool": "tool",
    "slow_tool": "slow tool",
    "permission": "permission",
    "failure": "fail",
    "background": "",
}
"""What to ask of the agents that are written with the SDKs."""


def _python(peer: str, script: str, *, client: bool = False) -> Callable[[Path], list[str]]:
    def command(folder: Path) -> list[str]:
        words = [str(install.venv_python(peer)), str(PEERS / "sdk_python" / script)]
        return ["sh", "-c", f"exec {shlex.join(words)} {AGENT}"] if client else words

    return command


def _node(peer: str, script: str, *arguments: str, client: bool = False) -> Callable[[Path], list[str]]:
    def command(folder: Path) -> list[str]:
        node = install.node()
        sdk = f"ACP_TS_SDK={install.folder(peer)}"
        words = ["/usr/bin/env", sdk, node, str(PEERS / "sdk_ts" / script), *arguments]
        return ["sh", "-c", f"exec {shlex.join(words)} {AGENT}"] if client else words

    return command


SDKS = (
    Peer(
        "Python SDK 0.12.1, agent", "agent", "PyPI agent-client-protocol 0.12.1",
        "python judged_agent.py", _python("python-sdk", "judged_agent.py"), SDK_PROMPTS,
    ),
    Peer(
        "Python SDK 1.0.0rc3, agent", "agent", "PyPI agent-client-protocol 1.0.0rc3",
        "python judged_agent_v2.py", _python("python-sdk-1.0", "judged_agent_v2.py"),
        {**SDK_PROMPTS, "failure": ""}, revision="alpha.5",
    ),
    Peer(
        "TypeScript SDK 2.1.0, agent", "agent", "npm @agentclientprotocol/sdk 2.1.0",
        "node judged_agent.mjs", _node("ts-sdk-2.1", "judged_agent.mjs"), SDK_PROMPTS, revision="alpha.10",
    ),
    Peer(
        "TypeScript SDK 2.4.0, agent", "agent", "npm @agentclientprotocol/sdk 2.4.0",
        "node judged_agent.mjs", _node("ts-sdk", "judged_agent.mjs"), SDK_PROMPTS,
    ),
    Peer(
        "Python SDK 0.12.1, client", "client", "PyPI agent-client-protocol 0.12.1",
        f"sh -c 'exec python judged_client.py {AGENT}'",
        _python("python-sdk", "judged_client.py", client=True),
        versions=(1,),
    ),
    Peer(
        "Python SDK 1.0.0rc3, client (v1)", "client", "PyPI agent-client-protocol 1.0.0rc3",
        f"sh -c 'exec python judged_client.py {AGENT}'",
        _python("python-sdk-1.0", "judged_client.py", client=True),
        versions=(1,),
    ),
    Peer(
        "Python SDK 1.0.0rc3, client (v2)", "client", "PyPI agent-client-protocol 1.0.0rc3",
        f"sh -c 'exec python judged_client_v2.py {AGENT}'",
        _python("python-sdk-1.0", "judged_client_v2.py", client=True),
        revision="alpha.5", versions=(2,),
    ),
    *(
        Peer(
            f"TypeScript SDK {release}, client (v{version})", "client",
            f"npm @agentclientprotocol/sdk {release}",
            f"sh -c 'exec node judged_client.mjs v{version} {AGENT}'",
            _node(peer, "judged_client.mjs", f"v{version}", client=True),
            revision=revision, versions=(version,),
        )
        for release, peer, revision in (("2.1.0", "ts-sdk-2.1", "alpha.10"), ("2.4.0", "ts-sdk", PINNED))
        for version in (1, 2)
    ),
)  # fmt: skip


# --- real agents and clients -------------------------------------------------------------------------------

MODEL_PROMPTS = {
    "plain": "hello",
    "slow": "SLOW",
    "tool": "TOOL",
    "slow_tool": "TOOLSLOW",
    "permission": "TOOL",
    "failure": "FAIL",
    "background": "",
}
"""What to ask of an agent whose model is the stand-in."""


def _offline(name: str) -> Callable[[Path], list[str]]:
    return lambda folder: agents.prepare(name, folder).command


def _acpx(folder: Path) -> list[str]:
    home, work = folder / "home", folder / "work"
    for each in (home, work):
        each.mkdir(parents=True, exist_ok=True)
    options = ["--cwd", str(work), "--approve-all", "--agent", AGENT, "exec", "hello"]
    return ["/usr/bin/env", f"HOME={home}", *agents.acpx(), *options]


REAL = (
    *(
        # pydantic-acp removes the unfinished files of other processes with the same sessions when it starts.
        Peer(
            name, "agent", package, shown, _offline(name), MODEL_PROMPTS, revision,
            jobs=1 if name == "pydantic-acp" else 2,
        )
        for name, package, shown, revision in (
            # It is written with release 2.1.0 of the TypeScript SDK.
            (
                "claude-agent-acp", "npm @agentclientprotocol/claude-agent-acp 0.99.1", "claude-agent-acp",
                "alpha.10",
            ),
            ("qwen-code", "npm @qwen-code/qwen-code 0.24.4", "qwen --acp", PINNED),
            ("opencode", "npm opencode-ai 1.18.33", "opencode acp", PINNED),
            ("deepagents-acp", "PyPI deepagents-acp 0.0.13", "python deepagents_agent.py", PINNED),
            ("pydantic-acp", "PyPI pydantic-acp 1.10.0", "python pydantic_agent.py", PINNED),
        )
    ),
    Peer(
        "acpx", "client", "npm acpx 0.19.1",
        f"acpx --approve-all --agent {AGENT} exec hello", _acpx, versions=(1,),
    ),
)  # fmt: skip

ALL = (*OURS, *SDKS, *REAL)


def environment(peer: Peer) -> dict[str, str]:
    """Return the environment for the processes of a peer."""
    return {**os.environ, **peer.env}
