"""The first minutes with a hub in a terminal: its banner, a second start, agents, the link, and its end."""

from __future__ import annotations

import json
from pathlib import Path

from antiphon.cli.exit_codes import Exit
from tests.cli.command import ANTIPHON, Terminal
from tests.hub.running import AGENT


def shown(*arguments: str, code: int = Exit.DONE, **env: str) -> str:
    """What a command shows on a terminal, when it has ended."""
    with Terminal([*ANTIPHON, *arguments], columns=200, **env) as terminal:
        assert terminal.wait() == code, terminal.raw
        return terminal.raw.replace("\r", "")


def test_a_hub_in_a_terminal_from_its_start_to_its_end(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "hub")]
    env = {"PATH": "/usr/bin:/bin", "NO_COLOR": "1"}
    with Terminal([*ANTIPHON, "serve", "--port", "0", *data], columns=200, **env) as hub:
        link = hub.wait_for(r"http://127\.0\.0\.1:\d+/#login=\S+")[0]
        hub.wait_for(r"antiphon chat --data")
        editor = json.loads(hub.wait_for(r"\n +(\{.*\})\r?\n")[1])
        assert editor["agent_servers"]["Antiphon"]["type"] == "custom"
        assert editor["agent_servers"]["Antiphon"]["args"][-3:] == ["acp", *data]
        hub.wait_for("Ctrl-C stops the hub. Its sessions are kept.")
        # A second start helps: it shows another link. Agents that the hub does not have are an error.
        second = shown("serve", *data, **env)
        assert "A hub already runs here" in second
        assert "#login=" in second
        assert link not in second
        refused = shown("serve", *data, "--", "cat", code=Exit.ERROR, **env)
        assert "It does not serve cat" in refused
        assert f"antiphon agents add cat {' '.join(data)} -- cat\n" in refused
        # An agent is added while the hub runs, and used by the prompt that is typed.
        added = shown("agents", "add", "mine", *data, "--", *AGENT, **env)
        assert "mine is added" in added
        again = shown("agents", "add", "mine", *data, "--", *AGENT, code=Exit.ERROR, **env)
        assert "the hub already has an agent 'mine'" in again
        with Terminal([*ANTIPHON, "attach", "new", "--agent", "mine", *data], columns=100, **env) as attached:
            attached.wait_for("Untitled · sess_")
            attached.type("say hello\n")
            attached.wait_for("heard say hello")
            attached.type("\x04")
            assert attached.wait() == Exit.DONE
        listed = shown("agents", *data, **env)
        assert [line.split()[:2] for line in listed.splitlines() if line.startswith(("NAME", "mine"))] == [
            ["NAME", "STATUS"],
            ["mine", "ready"],
        ]
        assert "npm install -g @agentclientprotocol/claude-agent-acp" in listed
        session = next(
            line for line in shown("sessions", "list", *data, **env).splitlines() if "mine" in line
        )
        id = session.split()[0]
        shown("sessions", "rename", id, "The red build", *data, **env)
        status = shown("sessions", "status", "the red", *data, **env)
        assert f"session    {id}\n" in status
        assert "state      idle\n" in status
        assert "nothing to cancel" in shown("sessions", "cancel", "the red build", *data, **env)
        code = shown("link", "--qr", *data, **env)
        assert "works on this machine only" in code
        assert "▀▀▀▀▀▀▀" in code
        hub.type("\x03")
        hub.wait_for(r"The hub has stopped\. 1 session is kept in ")
        assert hub.wait() == Exit.DONE
