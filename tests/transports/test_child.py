"""A child process as a transport: its death is told with its last words, and it never outlives us."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.requirements.marks import requirement

from antiphon.connection import Connection, Role
from antiphon.errors import LinkLost, SpawnFailed
from antiphon.jsonrpc.oversized import OversizedFrame
from antiphon.testing.transports import take, take_all
from antiphon.transports.base import Inbox
from antiphon.transports.processes import child
from antiphon.transports.processes.child import STDERR_LINES, ChildTransport
from antiphon.transports.processes.groups import start_process

DEADLINE = 60.0


def python(code: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code)]


async def gone(pid: int) -> None:
    """Wait until a process is no more (or only its entry is left for its parent to read)."""
    async with asyncio.timeout(DEADLINE):
        while psutil.pid_exists(pid):
            try:
                if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                    return
            except psutil.NoSuchProcess:
                return
            await asyncio.sleep(0.01)


@requirement("TRANS-04")
async def test_only_frames_go_in_and_come_out() -> None:
    child = await ChildTransport.spawn(["cat"])
    child.send(b'{"a":1}')
    child.send(b'{"b":2}')
    assert await take(child, 2) == [b'{"a":1}', b'{"b":2}']
    await child.aclose()
    await gone(child.pid)


async def test_a_line_of_20_mb_passes_and_one_over_the_bound_is_reported_in_its_place() -> None:
    child = await ChildTransport.spawn(["cat"], bound=21_000_000)
    try:
        child.send(b"x" * 20_000_000)
        child.send(b"y" * 30_000_000)
        child.send(b"{}")
        async with asyncio.timeout(DEADLINE):
            first, second, third = await take(child, 3)
        assert isinstance(first, bytes)
        assert len(first) == 20_000_000
        assert (second, third) == (OversizedFrame(30_000_000, 21_000_000), b"{}")
    finally:
        await child.aclose()


async def test_a_command_that_cannot_be_started_says_so() -> None:
    with pytest.raises(SpawnFailed, match="cannot start 'no-such-command'"):
        await ChildTransport.spawn(["no-such-command"])
    with pytest.raises(SpawnFailed, match="non-empty list"):
        await ChildTransport.spawn("cat")
    with pytest.raises(SpawnFailed, match="cannot start"):
        await ChildTransport.spawn(["cat"], cwd="/no/such/folder")


async def test_a_child_that_dies_mid_call_fails_the_call_at_once_with_its_stderr() -> None:
    child = await ChildTransport.spawn(
        python(
            """
            import sys
            sys.stdin.readline()
            print("Traceback: the model is missing", file=sys.stderr)
            sys.exit(3)
            """
        )
    )
    async with Connection(child, role=Role.CLIENT) as connection:
        with pytest.raises(LinkLost) as caught:
            async with asyncio.timeout(DEADLINE):
                await connection.initialize({"protocolVersion": 2})
    assert "exited with code 3" in str(caught.value)
    assert "the model is missing" in str(caught.value)
    assert caught.value.stderr == ("Traceback: the model is missing",)


async def test_a_child_killed_by_a_signal_is_told_so() -> None:
    child = await ChildTransport.spawn(["cat"])
    os.kill(child.pid, signal.SIGKILL)
    async with asyncio.timeout(DEADLINE):
        assert await take_all(child) == []
    assert child.end_reason == "cat was killed by SIGKILL"
    await child.aclose()


async def test_5_mb_of_stderr_hang_nothing_and_only_the_last_of_it_is_kept() -> None:
    child = await ChildTransport.spawn(
        python(
            """
            import sys
            for n in range(50_000):
                sys.stderr.write(f"{n:06d} " + "x" * 100 + "\\n")
            sys.stderr.write("y" * 3_000_000)
            print('{"done":true}', flush=True)
            sys.stdin.read()
            """
        )
    )
    async with asyncio.timeout(DEADLINE):
        assert await take(child, 1) == [b'{"done":true}']
    await child.aclose()
    assert sum(len(line) for line in child.stderr) < 200_000


async def test_stderr_can_be_watched_line_by_line() -> None:
    seen: list[str] = []
    code = 'import sys; sys.stderr.write("one\\ntwo\\nthree")'
    child = await ChildTransport.spawn(python(code), on_stderr=seen.append)
    async with asyncio.timeout(DEADLINE):
        assert await take_all(child) == []
    await child.aclose()
    assert seen == ["one", "two", "three"]


async def test_many_short_lines_on_stderr_are_reported_in_many_turns() -> None:
    count, seen = 30_000, 0

    def see(line: str) -> None:
        nonlocal seen
        seen += 1

    code = f"import os, sys; sys.stdin.readline(); os.write(2, b'x\\n' * {count})"
    child = await ChildTransport.spawn(python(code), on_stderr=see)
    child.send(b"{}")
    most = 0
    async with asyncio.timeout(DEADLINE):
        while seen < count:
            before = seen
            await asyncio.sleep(0)
            most = max(most, seen - before)
    await child.aclose()
    assert seen == count
    assert most <= STDERR_LINES


async def test_garbage_on_stdout_is_a_frame_like_any_other_to_a_transport() -> None:
    child = await ChildTransport.spawn(python('print("Loading model...\\n\\n{}\\r\\nno newline", end="")'))
    async with asyncio.timeout(DEADLINE):
        assert await take(child, 3) == [b"Loading model...", b"{}", b"no newline"]
    await child.aclose()


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
inner = subprocess.Popen([sys.executable, "-c", deaf])
print(f'{{"inner":{inner.pid}}}', flush=True)
time.sleep(600)
"""


async def test_a_child_that_ignores_the_end_of_stdin_and_sigterm_is_killed_with_its_whole_group() -> None:
    child = await ChildTransport.spawn(python(STUBBORN), grace=0.2)
    [line] = await take(child, 1)
    assert isinstance(line, bytes)
    inner = int(line.split(b":")[1].rstrip(b"}"))
    async with asyncio.timeout(DEADLINE):
        await child.aclose()
    await gone(child.pid)
    await gone(inner)


async def test_what_a_child_leaves_behind_in_its_group_goes_with_it() -> None:
    code = """
    import subprocess, sys
    inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(inner.pid, flush=True)
    """
    child = await ChildTransport.spawn(python(code))
    inbox = Inbox(child)
    [line] = await inbox.take()
    assert isinstance(line, bytes)
    async with asyncio.timeout(DEADLINE):
        assert await inbox.take() == []  # though the inner one holds stdout open
    await gone(int(line))
    await child.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent")
async def test_kill_9_of_the_parent_leaves_no_process_behind(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import asyncio, sys
            from antiphon.transports.processes.child import STDERR_LINES, ChildTransport

            async def main():
                child = await ChildTransport.spawn([sys.executable, "-c", {STUBBORN!r}])
                print(child.pid, flush=True)
                await asyncio.Event().wait()

            asyncio.run(main())
            """
        )
    )
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(await asyncio.to_thread(parent.stdout.readline))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await gone(child)


async def test_a_child_does_not_inherit_ignored_signals() -> None:
    code = """
    import signal
    ignored = [n for n in (1, 2, 3, 15) if signal.getsignal(n) is signal.SIG_IGN]
    print(ignored, flush=True)
    """
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (1, 2, 3, 15)}
    try:
        child = await ChildTransport.spawn(python(code))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert await take(child, 1) == [b"[]"]
    await child.aclose()


async def test_a_full_pipe_pushes_back_on_the_producer_and_nothing_grows_without_bound() -> None:
    child = await ChildTransport.spawn(python("import time; time.sleep(600)"), grace=0.1)
    frame = b"x" * 10_000
    sent = 0
    while not child.congested:
        child.send(frame)
        sent += len(frame)
        await asyncio.sleep(0)
    assert sent < 16_000_000
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await child.drain()
    async with asyncio.timeout(DEADLINE):
        await child.aclose()


async def test_cancelling_the_closing_still_kills() -> None:
    child = await ChildTransport.spawn(python(STUBBORN), grace=60)
    await take(child, 1)
    closing = asyncio.ensure_future(child.aclose())
    await asyncio.sleep(0.05)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await gone(child.pid)


@pytest.mark.parametrize("steps", range(5))
async def test_a_start_that_is_cancelled_leaves_no_pipe_open(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(start_process(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(child, "start_process", noted)
    spawning = asyncio.ensure_future(ChildTransport.spawn(["cat"]))
    for _ in range(steps):
        await asyncio.sleep(0)
    spawning.cancel()
    outcome = (await asyncio.gather(spawning, return_exceptions=True))[0]
    if isinstance(outcome, ChildTransport):
        await outcome.aclose()
    for _ in range(5):
        await asyncio.sleep(0)  # asyncio closes a pipe in its next steps
    pipes = [pipe for each in started for pipe in (each.stdin, each.stdout, each.stderr) if pipe is not None]
    assert [pipe for pipe in pipes if not pipe.closed] == []


COUNTING = """
import asyncio, os, signal, sys
for name in sys.argv[1:]:
    signal.signal(signal.Signals[name], signal.SIG_IGN)
from antiphon.transports.processes.child import ChildTransport
forks = []
os.register_at_fork(before=lambda: forks.append(1))
async def main():
    child = await ChildTransport.spawn(["cat"])
    await child.aclose()
asyncio.run(main())
print(len(forks))
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux")
@pytest.mark.parametrize("ignored", [[], ["SIGHUP"], ["SIGINT", "SIGQUIT"]])
def test_a_start_does_not_copy_this_process(ignored: list[str]) -> None:
    """A fork would stop every session of a large hub while its pages are copied."""
    command = [sys.executable, "-c", COUNTING, *ignored]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["0"]
