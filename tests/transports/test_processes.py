"""A command at work: its output, its end, and nothing of it left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from antiphon.errors import SpawnFailed
from antiphon.transports.processes import process as processes
from antiphon.transports.processes.process import Process, signal_name

DEADLINE = 60.0


@asynccontextmanager
async def running(line: str, **options: Any) -> AsyncIterator[Process]:
    async with asyncio.timeout(DEADLINE):
        process = Process(["/bin/sh", "-c", line], **options)
        try:
            yield process
        finally:
            await process.aclose()


async def all_of(process: Process) -> bytes:
    pieces = []
    while data := await process.read():
        pieces.append(data)
    return b"".join(pieces)


async def until(process: Process, words: bytes) -> bytes:
    read = b""
    while words not in read:
        data = await process.read()
        assert data, read
        read += data
    return read


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while not gone(pid):  # noqa: ASYNC110 (it is no child of ours: nobody tells)
            await asyncio.sleep(0.01)


async def pid_printed_by(code: str) -> int:
    """What a process prints that has ended by the time this returns."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    printing = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert printing.stdout is not None
    output = await asyncio.wait_for(printing.stdout.readline(), DEADLINE)
    await asyncio.wait_for(printing.communicate(), DEADLINE)
    return int(output)


async def test_output_and_errors_are_one_stream_and_the_code_is_told(tmp_path: Path) -> None:
    async with running("pwd; echo $MORE >&2; exit 3", cwd=str(tmp_path), env={"MORE": "more"}) as process:
        assert await all_of(process) == f"{tmp_path}\nmore\n".encode()
        assert await process.wait() == process.returncode == 3
        assert await process.read() == b""


async def test_nothing_can_be_typed(tmp_path: Path) -> None:
    async with running("cat; echo end") as process:
        assert await all_of(process) == b"end\n"


@pytest.mark.parametrize("command", [[], "ls", ["/nowhere/at/all"], ["a\0b"], [str(Path(__file__).parent)]])
async def test_what_cannot_be_started_says_so_and_leaves_nothing_open(command: Any) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SpawnFailed):
        Process(command)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_it_is_asked_to_end_and_killed_if_it_does_not() -> None:
    async with running("trap 'echo bye; exit 7' TERM; echo on; while :; do sleep 0.01; done") as process:
        await until(process, b"on")
        process.terminate()
        assert (await all_of(process)).endswith(b"bye\n")
        assert await process.wait() == 7
    async with running("trap '' TERM; echo on; while :; do sleep 0.01; done") as process:
        await until(process, b"on")
        process.terminate(grace=0.05)
        assert signal_name(await process.wait()) == "SIGKILL"
        process.terminate()
        process.kill()


async def test_the_whole_group_is_killed() -> None:
    async with running("sleep 1000 & echo $!; sleep 1000") as process:
        child = int(await until(process, b"\n"))
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        await until_gone(child)


async def test_what_a_command_leaves_behind_goes_with_it() -> None:
    async with running("sleep 1000 & echo $!") as process:
        child = int(await all_of(process))
        assert await process.wait() == 0
        await until_gone(child)


async def test_a_stranger_that_holds_the_output_open_is_not_waited_for() -> None:
    stranger = (
        f"{sys.executable} -c 'import os,time; os.setsid(); print(os.getpid(), flush=True); time.sleep(60)'"
    )
    async with running(f"{stranger} & read nothing < /dev/null; sleep 0.5; echo end") as process:
        output = await all_of(process)
        pid = int(output.split()[0])
        assert output.endswith(b"end\n")
        os.kill(pid, signal.SIGKILL)
        await until_gone(pid)


async def test_a_reader_that_is_cancelled_or_overtaken_leaves_nothing_watched() -> None:
    async with running("sleep 1000") as process:
        reading = asyncio.ensure_future(process.read())
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        reading = asyncio.ensure_future(process.read())
        await asyncio.sleep(0)
        await process.aclose()
        assert await reading == b""


async def test_others_have_their_turn_while_it_writes_without_end() -> None:
    async with running("yes") as process:
        await until(process, b"y")
        reading = asyncio.ensure_future(all_of(process))
        for _ in range(100):
            await asyncio.sleep(0)
        process.kill()
        await reading


async def test_with_a_size_it_writes_to_a_terminal_of_that_size() -> None:
    script = "import os,sys; print(sys.stdout.isatty(), sys.stderr.isatty(), *os.get_terminal_size(1))"
    async with running(f'{sys.executable} -c "{script}"', size=(123, 45)) as process:
        assert await all_of(process) == b"True True 123 45\r\n"
        assert await process.wait() == 0


async def test_without_pidfds_its_end_is_noticed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: int) -> int:
        raise OSError

    monkeypatch.setattr(os, "pidfd_open", none)
    async with running("exit 4") as process:
        assert await process.wait() == 4


async def test_it_does_not_outlive_a_process_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, signal\n"
        "from antiphon.transports.processes.process import Process\n"
        "async def main():\n"
        "    print(Process(['sleep', '1000']).pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    await until_gone(await pid_printed_by(code))


async def test_what_runs_when_the_interpreter_ends_is_killed() -> None:
    code = (
        "import asyncio\n"
        "from antiphon.transports.processes.process import Process\n"
        "async def main():\n"
        "    print(Process(['/bin/sh', '-c', 'sleep 1000']).pid, flush=True)\n"
        "asyncio.run(main())\n"
    )
    await until_gone(await pid_printed_by(code))


def test_a_signal_has_a_name() -> None:
    assert signal_name(0) is None
    assert signal_name(-signal.SIGTERM) == "SIGTERM"
    assert signal_name(-99) == "signal 99"
    assert processes.GRACE > 0
