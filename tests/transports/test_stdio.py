"""Our own stdin and stdout: nothing that user code prints or starts can touch the stream."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.requirements.marks import requirement

AGENT = Path(__file__).parents[2] / "examples" / "wire_agent.py"
HELLO = (
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}) + "\n"
)


def run(code: str, input: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], input=input, capture_output=True, text=True, timeout=30
    )


@requirement("TRANS-03")
def test_prints_and_children_cannot_corrupt_stdout_nor_eat_stdin() -> None:
    result = run(
        """
        import asyncio, os, subprocess, sys
        from antiphon.transports.base import Inbox
        from antiphon.transports.stdio import StdioTransport

        async def main():
            transport = await StdioTransport.open()
            print("a stray print")
            os.write(1, b"a stray write\\n")
            subprocess.run(["sh", "-c", "echo from a child; cat"])   # cat would eat the protocol's bytes
            frames = await Inbox(transport).take()
            for frame in frames:
                transport.send(frame.upper())
            await transport.aclose()

        asyncio.run(main())
        """,
        '{"a":1}\n{"b":2}\n',
    )
    assert result.stdout == '{"A":1}\n{"B":2}\n', result.stderr
    for stray in ("a stray print", "a stray write", "from a child"):
        assert stray in result.stderr


@requirement("TRANS-06")
def test_an_agent_exits_promptly_and_cleanly_at_the_end_of_stdin() -> None:
    result = subprocess.run([sys.executable, AGENT], input=HELLO, capture_output=True, text=True, timeout=30)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["result"]["protocolVersion"] == 1
    assert result.stderr == ""


def test_files_may_stand_in_for_the_pipes(tmp_path: Path) -> None:
    asked, answered = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    asked.write_text(HELLO)
    with asked.open() as source, answered.open("w") as sink:
        result = subprocess.run([sys.executable, AGENT], stdin=source, stdout=sink, timeout=30)
    assert result.returncode == 0
    assert json.loads(answered.read_text())["result"]["protocolVersion"] == 1


def test_an_agent_without_anything_to_read_ends_at_once() -> None:
    devices = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    result = subprocess.run(
        [sys.executable, str(AGENT)], **devices, stderr=subprocess.PIPE, text=True, timeout=30
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_an_agent_whose_stdin_is_closed_says_so() -> None:
    result = subprocess.run(
        ["sh", "-c", 'exec "$@" 0<&-', "sh", sys.executable, str(AGENT)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.returncode == 1
    assert "stdin and stdout must be open" in result.stderr


def test_a_reader_that_goes_away_ends_the_agent_without_a_traceback() -> None:
    agent = subprocess.Popen(
        [sys.executable, AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    assert agent.stderr is not None
    agent.stdout.close()
    agent.stdin.write(HELLO.encode())
    agent.stdin.flush()
    agent.stdin.close()
    assert agent.wait(30) == 0
    assert agent.stderr.read() == b""
    agent.stderr.close()


def test_an_agent_that_nobody_hears_any_more_ends_though_its_stdin_stays_open() -> None:
    agent = subprocess.Popen(
        [sys.executable, AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    assert agent.stderr is not None

    def ask(id: int, method: str, **params: object) -> None:
        assert agent.stdin is not None
        frame = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        agent.stdin.write(json.dumps(frame).encode() + b"\n")
        agent.stdin.flush()

    ask(1, "initialize", protocolVersion=1)
    agent.stdout.readline()
    ask(2, "session/new", cwd="/", mcpServers=[])
    session = json.loads(agent.stdout.readline())["result"]["sessionId"]
    ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "stream 1000000000"}])
    agent.stdout.readline()
    agent.stdout.close()
    assert agent.wait(30) == 0
    assert agent.stderr.read() == b""
    agent.stderr.close()
    agent.stdin.close()
