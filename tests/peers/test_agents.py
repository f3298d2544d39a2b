"""How real agents are started: without a network, with a model of their own, by any client.

`agents.py` says how they are started; `test_driving.py` has the conversations with them.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.peers import install
from tests.peers.agents import Launch, RealAgent, acpx, prepare_command, still_there

DEADLINE = 60.0
SOON = 60.0
WIRE_AGENT = [sys.executable, str(Path(__file__).parents[2] / "examples" / "wire_agent.py")]

Prepared = Callable[[str], Launch]


def test_only_loopback_exists(tmp_path: Path) -> None:
    """The model is reached from where the agent is; nothing else can be, where that is permitted."""
    look = (
        "import json, os, socket, urllib.request as web; "
        "models = json.load(web.urlopen(os.environ['WHERE'] + '/v1/models', timeout=5))['data']; "
        "print(json.dumps({'nets': [name for _, name in socket.if_nameindex()], 'models': len(models)}))"
    )
    agent = RealAgent("look", lambda: [sys.executable, "-c", look], {"WHERE": "@MODEL@"})
    launch = prepare_command(agent, tmp_path)
    said = subprocess.run(launch.command, capture_output=True, text=True, timeout=SOON, check=True)
    seen = json.loads(said.stdout)
    assert seen["models"] > 0
    if launch.started["isolated"]:
        assert seen["nets"] == ["lo"]
        assert said.stderr == ""
    else:
        assert launch.started["obstacle"] in said.stderr, "it is said that the network is in reach"
    assert still_there(launch.left_running(), SOON) == []


@pytest.mark.parametrize("end", ["stdin closed", "killed"])
def test_the_model_ends_with_the_agent(end: str, tmp_path: Path) -> None:
    """Without the help of whoever spawned it: no process group, no clean-up."""
    wait = "import sys; print('up', flush=True); sys.stdin.read()"
    agent = RealAgent("wait", lambda: [sys.executable, "-c", wait], {})
    launch = prepare_command(agent, tmp_path)
    with subprocess.Popen(launch.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"up\n"
        model = psutil.Process(process.pid).children()
        assert len(model) == 1
        if end == "killed":
            process.kill()
        else:
            process.stdin.close()
        process.wait(SOON)
        assert still_there(model, SOON) == []


@pytest.mark.parametrize("name", ["ours", "claude-agent-acp"])
def test_acpx_drives_an_agent(name: str, tmp_path: Path, real_agent: Prepared) -> None:
    """A real client, and a command line that any client can start."""
    try:
        client = acpx()
    except install.PeerUnavailable as reason:
        pytest.skip(f"acpx cannot be had: {reason}")
    command = WIRE_AGENT if name == "ours" else real_agent(name).command
    options = ["--cwd", str(tmp_path), "--approve-all", "--format", "json", "--timeout", str(SOON)]
    text = "permission" if name == "ours" else "TOOL"
    call = [*client, *options, "--agent", shlex.join(command), "exec", text]
    launch = prepare_command(RealAgent("acpx", lambda: call, {}), tmp_path / "acpx")
    said = subprocess.run(launch.command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    frames = [json.loads(line) for line in said.stdout.splitlines()]
    assert [frame["method"] for frame in frames if {"id", "method"} <= set(frame)] == [
        "initialize",
        "session/new",
        "session/prompt",
        "session/request_permission",
    ]
    [ended] = [frame for frame in frames if "stopReason" in frame.get("result", {})]
    assert ended["result"]["stopReason"] == "end_turn"
    updates = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
    assert [update["status"] for update in updates if update.get("status")][-1] == "completed"
    assert still_there(launch.left_running(), SOON) == []
