"""Real agents, offline: how each is started, and what can be expected of it.

    launch = prepare("qwen-code", tmp_path)
    transport = await ChildTransport.spawn(launch.command, cwd=launch.cwd)

`launch.command` is complete: it needs no environment and fits any client that starts a command. It leads to
`offline.py`, which puts the agent where only loopback exists, beside a stand-in model of its own. Started
again it finds the same HOME, so what a session left behind can be loaded.

Pytest has the fixture `real_agent` for it (see `conftest.py`), which also looks for what is left running.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.peers import install
from tests.peers.offline import MODEL

HERE = Path(__file__).resolve().parent
OFFLINE = str(HERE / "offline.py")
MARK = "ANTIPHON_PEER"
"""A variable in the environment of everything that a launch starts; its value is the launch's folder."""


@dataclass(frozen=True)
class RealAgent:
    """One agent: the command that starts it, and what it was seen to do."""

    name: str
    command: Callable[[], list[str]]
    """Raises `PeerUnavailable` where the agent cannot be had."""
    env: Mapping[str, str]
    """`@MODEL@` stands for the address of the stand-in model."""
    versions: tuple[int, ...] = (1,)
    """The protocol versions it truly speaks."""
    message_ids: bool = True
    """Whether live message chunks carry a `messageId`."""
    resumes: bool = True
    """Whether `session/resume` works. They all have `session/load`."""
    rejected: str = "failed"
    """How a tool call ends whose permission was rejected. The turn then goes on and ends as `end_turn`."""
    waits_for_permission: bool = False
    """Whether a cancelled turn ends only when the client has answered the permission request it has open."""
    own_requests: frozenset[str] = frozenset()
    """Methods that are no part of the protocol, which it calls all the same."""
    commands: str | None = None
    """When it tells its commands: `early`, before `session/new` is answered, or `late`, right behind it."""
    lists: bool = True
    """Whether it offers `session/list`."""
    usage: bool = True
    """Whether the end of a turn tells the tokens it took."""


@dataclass(frozen=True)
class Launch:
    """An agent that is ready to be started, with a HOME and a working folder of its own."""

    agent: RealAgent
    folder: Path
    command: list[str] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def cwd(self) -> Path:
        return self.folder / "work"

    @property
    def started(self) -> dict[str, Any]:
        """What the last start found: `isolated`, `obstacle` (why not, or None), `model` and `pid`."""
        return dict(json.loads((self.folder / "started.json").read_text()))

    @property
    def model_calls(self) -> list[dict[str, Any]]:
        """What the stand-in model was asked so far, over all starts."""
        log = self.folder / "model.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def left_running(self) -> list[psutil.Process]:
        """The processes that this launch started, however deep, and that are still there."""
        return [process for process in psutil.process_iter() if _marked(process, str(self.folder))]


def prepare(name: str, folder: Path) -> Launch:
    """Install what is missing and write down how the agent is started. Raises `PeerUnavailable`."""
    return prepare_command({**AGENTS, **SMALL}[name], folder.resolve())


def prepare_command(agent: RealAgent, folder: Path) -> Launch:
    launch = Launch(agent, folder, [sys.executable, OFFLINE, str(folder)])
    for made in (launch.home, launch.cwd):
        made.mkdir(parents=True, exist_ok=True)
    homes = {"HOME": launch.home, "XDG_CONFIG_HOME": launch.home / ".config"}
    homes |= {"XDG_DATA_HOME": launch.home / ".local/share", "XDG_STATE_HOME": launch.home / ".local/state"}
    homes |= {"XDG_CACHE_HOME": launch.home / ".cache"}
    env = {**{name: str(path) for name, path in homes.items()}, **agent.env, MARK: str(folder)}
    (folder / "launch.json").write_text(json.dumps({"command": agent.command(), "env": env}, indent=1))
    return launch


def still_there(processes: Sequence[psutil.Process], deadline: float) -> list[psutil.Process]:
    """Wait until all have ended, and return those that have not after `deadline` seconds.

    One that has ended counts as such although its new parent has not looked after it yet.
    """
    until = time.monotonic() + deadline
    return [process for process in processes if not _ended(process.pid, until - time.monotonic())]


def _ended(pid: int, deadline: float) -> bool:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], max(deadline, 0))[0])
    finally:
        os.close(pidfd)


def _marked(process: psutil.Process, folder: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        # The model is a fork of `offline.py`: it has that one's environment, and its command line.
        return process.environ().get(MARK) == folder or process.cmdline()[1:] == [OFFLINE, folder]
    except (psutil.Error, OSError):
        return False


# --- the agents -------------------------------------------------------------------------------------------


def _claude_agent_acp() -> list[str]:
    package = install.folder("claude-agent-acp") / "node_modules/@agentclientprotocol/claude-agent-acp"
    return [install.node(), str(package / "dist/index.js")]


def _qwen_code() -> list[str]:
    package = install.folder("qwen-code") / "node_modules/@qwen-code/qwen-code"
    options = ["--acp", "--auth-type", "openai", "--approval-mode", "default"]
    return [install.node(), str(package / "cli-entry.js"), *options]


def _opencode() -> list[str]:
    """Its own `bin` waits for an install script to put one of these binaries in its place."""
    modules = install.folder("opencode") / "node_modules"
    for variant in sorted(modules.glob("opencode-*-*/bin/opencode")):
        if os.access(variant, os.X_OK):
            return [str(variant), "acp"]
    raise install.PeerUnavailable("opencode-ai brought no binary for this machine")


def _deepagents_acp() -> list[str]:
    return [str(install.venv_python("deepagents-acp")), str(HERE / "launchers" / "deepagents_agent.py")]


def _pydantic_acp() -> list[str]:
    return [str(install.venv_python("pydantic-acp")), str(HERE / "launchers" / "pydantic_agent.py")]


def acpx() -> list[str]:
    """The headless client. Its options, then `--agent COMMAND exec TEXT`, are to be added."""
    script = install.folder("acpx") / "node_modules/acpx/dist/cli.js"
    return [install.node(at_least=(22, 13)), str(script)]


_OPENAI = {"OPENAI_API_KEY": "fake", "OPENAI_BASE_URL": f"{MODEL}/v1", "OPENAI_MODEL": "fake-model"}
_OPENCODE_CONFIG = {
    "model": "fake/fake-model",
    "small_model": "fake/fake-model",
    "provider": {
        "fake": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Stand-in",
            "options": {"baseURL": f"{MODEL}/v1", "apiKey": "fake"},
            "models": {"fake-model": {"name": "Stand-in", "limit": {"context": 100_000, "output": 8_000}}},
        }
    },
    "permission": {"bash": "ask", "edit": "ask"},
    "autoupdate": False,
    "share": "disabled",
}

AGENTS = {
    agent.name: agent
    for agent in (
        RealAgent(
            "claude-agent-acp",
            _claude_agent_acp,
            {
                "ANTHROPIC_BASE_URL": MODEL,
                "ANTHROPIC_API_KEY": "fake",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_TELEMETRY": "1",
                "DISABLE_AUTOUPDATER": "1",
                "IS_SANDBOX": "1",
            },
            versions=(1, 2),
            commands="late",
        ),
        RealAgent(
            "qwen-code",
            _qwen_code,
            {**_OPENAI, "QWEN_CODE_NO_RELAUNCH": "true"},  # it would start itself again, with more memory
            message_ids=False,
            own_requests=frozenset({"craft/drainMidTurnQueue"}),
            commands="late",
            usage=False,
        ),
        RealAgent(
            "opencode",
            _opencode,
            {
                "OPENCODE_CONFIG_CONTENT": json.dumps(_OPENCODE_CONFIG),
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
            },
            commands="late",
        ),
        RealAgent(
            "deepagents-acp",
            _deepagents_acp,
            _OPENAI,
            message_ids=False,  # only in a replay
            resumes=False,
            rejected="completed",
            waits_for_permission=True,
            lists=False,
            usage=False,
        ),
        # It says that it can resume, and answers that there is no such method.
        RealAgent("pydantic-acp", _pydantic_acp, _OPENAI, resumes=False, commands="early"),
    )
}


# --- small agents that need no model ----------------------------------------------------------------------


def _sdk_python() -> list[str]:
    return [str(install.python_sdk()), str(HERE / "sdk_python" / "agent.py")]


def _sdk_ts(script: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        # `env` sets the variable: it is known only once the SDK has been installed.
        sdk = f"ACP_TS_SDK={install.ts_sdk()}"
        return ["/usr/bin/env", sdk, install.node(), str(HERE / "sdk_ts" / script)]

    return command


def _rehearse() -> list[str]:
    """The built-in agent; `data` is in the working folder, where each start finds it again."""
    return [sys.executable, "-m", "antiphon", "rehearse", "--data", "data"]


_FORGETFUL: dict[str, Any] = {"resumes": False, "lists": False, "usage": False}

SMALL = {
    agent.name: agent
    for agent in (
        RealAgent("sdk-python", _sdk_python, {}, message_ids=False, **_FORGETFUL),
        RealAgent("sdk-ts", _sdk_ts("agent_v1.mjs"), {}, message_ids=False, **_FORGETFUL),
        # Every v2 agent has to list and resume sessions; this one says so and cannot.
        RealAgent("sdk-ts-v2", _sdk_ts("agent_v2.mjs"), {}, versions=(2,), **_FORGETFUL),
        RealAgent("rehearse", _rehearse, {}, versions=(1, 2), commands="late", usage=False),
    )
}
"""The agents of the official SDKs, and our own. `prepare` takes their names too."""
