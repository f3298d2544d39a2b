"""`antiphon tap`: neither side can tell that it is there, and it records what passed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from antiphon.conformance.recording import Role
from antiphon.conformance.recordings import read_recording
from antiphon.conformance.tap import TappedLines
from tests.cli.command import ANTIPHON, DEADLINE, ended, environment
from tests.cpu_growth import assert_grows_in_proportion

PIPE = subprocess.PIPE


class Tapped:
    """A tap with an agent behind it, and this process as the editor."""

    def __init__(self, agent: Sequence[str], log: Path) -> None:
        self.log = log
        self.process = subprocess.Popen(
            [*ANTIPHON, "tap", "--log", str(log), "--", *agent],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            bufsize=0,
            env=environment(),
        )

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        rest = memoryview(data)
        while rest:
            rest = rest[self.process.stdin.write(rest) :]

    def read(self, size: int) -> bytes:
        """Read exactly so many bytes; fewer at the end."""
        assert self.process.stdout is not None
        found = b""
        while len(found) < size and (data := self.process.stdout.read(size - len(found))):
            found += data
        return found

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def finish(self) -> tuple[bytes, bytes]:
        """End the input, and return the rest of stdout and stderr."""
        if self.process.stdin is not None and self.process.stdin.closed:
            self.process.stdin = None
        return self.process.communicate(timeout=DEADLINE)

    def recorded(self, sender: Role) -> list[bytes]:
        return [frame.raw for frame in read_recording(self.log).of(sender)]


@pytest.fixture
def tapped(tmp_path: Path) -> Iterator[type[Tapped]]:
    """A class that starts taps, which are killed at the end."""
    started: list[Tapped] = []

    class Started(Tapped):
        def __init__(self, *agent: str) -> None:
            super().__init__(agent, tmp_path / "talk.ndjson")
            started.append(self)

    yield Started  # type: ignore[misc]
    for each in started:
        with each.process as process:  # closes the pipes
            process.kill()


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


# --- bytes ---------------------------------------------------------------------------------------------


def test_every_byte_passes_unchanged_in_both_directions(tapped: type[Tapped]) -> None:
    said = b'{"jsonrpc": "2.0"}\r\n\n\xff\xfe\x00\x1b[31m\r\n"\\ud83d"\nno newline at the end'
    tap = tapped("cat")
    tap.write(said)
    assert tap.finish() == (said, b"")
    assert tap.process.returncode == 0
    lines = [b'{"jsonrpc": "2.0"}\r', b"\xff\xfe\x00\x1b[31m\r", b'"\\ud83d"', b"no newline at the end"]
    assert tap.recorded(Role.CLIENT) == lines
    assert tap.recorded(Role.AGENT) == lines


def test_half_a_line_passes_at_once(tapped: type[Tapped]) -> None:
    tap = tapped("cat")
    tap.write(b'{"half')
    assert tap.read(6) == b'{"half'
    tap.write(b'": 1}\n')
    assert tap.read(6) == b'": 1}\n'
    tap.finish()
    assert tap.recorded(Role.CLIENT) == [b'{"half": 1}']


def test_megabytes_pass_while_nobody_reads_at_first(tapped: type[Tapped]) -> None:
    said = random.Random(1).randbytes(2_000_000)
    tap = tapped("cat")

    def write() -> None:
        tap.write(said)
        tap.end_input()

    writer = threading.Thread(target=write)
    writer.start()
    assert tap.read(len(said) + 1) == said
    writer.join()
    assert b"\n".join(tap.recorded(Role.AGENT)).replace(b"\n", b"") == said.replace(b"\n", b"")


def test_stderr_passes_unchanged(tapped: type[Tapped]) -> None:
    tap = tapped(*python(r"import os; os.write(2, b'\x1b[31m\xff half a line')"))
    assert tap.finish() == (b"", b"\x1b[31m\xff half a line")


def test_a_request_is_recorded_before_its_answer(tapped: type[Tapped]) -> None:
    tap = tapped("cat")
    for number in range(200):
        line = b'{"id":%d}\n' % number
        tap.write(line)
        assert tap.read(len(line)) == line
    tap.finish()
    frames = read_recording(tap.log).frames
    assert [frame.sender for frame in frames] == [Role.CLIENT, Role.AGENT] * 200
    assert [frame.at for frame in frames] == sorted(frame.at for frame in frames)


# --- the end -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"), [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", -15), ("kill -KILL $$", -9)]
)
def test_the_tap_ends_as_the_agent_did(tapped: type[Tapped], code: str, expected: int) -> None:
    tap = tapped("sh", "-c", code)
    tap.finish()
    assert tap.process.returncode == expected


def test_the_end_of_input_reaches_the_agent(tapped: type[Tapped]) -> None:
    tap = tapped("sh", "-c", "cat >/dev/null; echo done; exit 4")
    tap.write(b"hello\n")
    assert tap.finish() == (b"done\n", b"")
    assert tap.process.returncode == 4


def test_an_agent_that_closes_its_output_is_seen_to_do_so(tapped: type[Tapped]) -> None:
    tap = tapped(*python("import os, sys; os.write(1, b'last'); os.close(1); sys.stdin.read(); os._exit(5)"))
    assert tap.read(100) == b"last", "the output ended, and the agent lives"
    tap.finish()
    assert tap.process.returncode == 5


def test_an_agent_learns_that_the_editor_has_stopped_reading(tapped: type[Tapped]) -> None:
    code = "import os\ntry:\n    while True: os.write(1, b'x' * 65536)\nexcept BrokenPipeError: os._exit(6)"
    tap = tapped(*python(code))
    assert tap.process.stdout is not None
    tap.read(10)
    tap.process.stdout.close()
    assert tap.process.wait(DEADLINE) == 6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_reaches_the_agent(tapped: type[Tapped], number: signal.Signals) -> None:
    code = (  # a handler would not run if the signal came just before a blocking read
        "import signal, sys\n"
        f"signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])\n"
        f"print('ready', flush=True)\nsignal.sigwait([{int(number)}])\nsys.exit(42)"
    )
    tap = tapped(*python(code))
    assert tap.read(6) == b"ready\n"
    tap.process.send_signal(number)
    assert tap.process.wait(DEADLINE) == 42


def test_a_signal_that_another_thread_gets_reaches_the_agent_too() -> None:
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(42))\n"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])\n"
        "print('ready', flush=True)\nos.read(0, 1)"
    )
    # The main thread keeps the signal blocked, so it reaches the thread that has just recorded a line.
    tapping = (
        "import signal, sys\n"
        "from antiphon.conformance.tap import run_tap\n"
        "def record(*_):\n"
        "    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        f"sys.exit(run_tap({python(code)!r}, record, failed=print))"
    )
    with subprocess.Popen(python(tapping), stdin=PIPE, stdout=PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE) == 42
        finally:
            process.kill()


# --- no orphans ----------------------------------------------------------------------------------------

REPORT = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
def test_an_agent_does_not_outlive_a_killed_tap(tapped: type[Tapped]) -> None:
    tap = tapped(*python(f"import signal; signal.signal(15, signal.SIG_IGN); {REPORT}"))
    assert tap.process.stdout is not None
    pid = int(tap.process.stdout.readline())
    tap.process.kill()
    assert ended(pid)


def test_a_child_of_the_agent_does_not_outlive_it(tapped: type[Tapped]) -> None:
    tap = tapped("sh", "-c", "sleep 1000 & echo $!; exit 3")
    out, _ = tap.finish()
    assert tap.process.returncode == 3
    assert ended(int(out))


def test_a_process_that_holds_the_output_open_does_not_keep_the_tap(tapped: type[Tapped]) -> None:
    code = "import subprocess as s; print(s.Popen(['sleep', '1000'], start_new_session=True).pid, flush=True)"
    tap = tapped(*python(code))
    assert tap.process.stdout is not None
    pid = int(tap.process.stdout.readline())
    try:
        assert tap.process.wait(DEADLINE) == 0
    finally:
        os.kill(pid, signal.SIGKILL)


# --- the file ------------------------------------------------------------------------------------------


def test_the_file_is_private_and_never_overwritten(tapped: type[Tapped]) -> None:
    for said in (b"one\n", b"two\n"):
        tap = tapped("cat")
        tap.write(said)
        tap.finish()
    second = tap.log.with_name("talk-2.ndjson")
    assert tap.log.stat().st_mode & 0o777 == second.stat().st_mode & 0o777 == 0o600
    assert tap.recorded(Role.CLIENT) == [b"one"]
    assert [frame.raw for frame in read_recording(second).of(Role.CLIENT)] == [b"two"]


def test_without_a_name_the_file_is_in_the_data_folder_and_is_named(tmp_path: Path) -> None:
    run = subprocess.run(
        [*ANTIPHON, "tap", "--", "cat"],
        input=b"hello\n",
        capture_output=True,
        timeout=DEADLINE,
        env=environment(XDG_DATA_HOME=str(tmp_path), HOME=str(tmp_path)),
        check=True,
    )
    assert run.stdout == b"hello\n"
    (file,) = (tmp_path / "antiphon" / "taps").iterdir()
    assert file.name.encode() in run.stderr


def test_a_full_disk_stops_the_recording_and_not_the_conversation() -> None:
    code = (
        "from antiphon.conformance.tap import run_tap\n"
        "def record(*_): raise OSError(28, 'No space left on device')\n"
        "run_tap(['cat'], record, failed=lambda error: print(error.strerror, file=__import__('sys').stderr))"
    )
    run = subprocess.run(python(code), input=b"one\ntwo\n", capture_output=True, timeout=DEADLINE, check=True)
    assert run.stdout == b"one\ntwo\n"
    assert run.stderr.splitlines() == [b"No space left on device"]


def test_a_line_that_comes_byte_by_byte_takes_no_longer_than_its_length() -> None:
    def record(count: int) -> None:
        recorded: list[bytes] = []
        lines = TappedLines(lambda sender, line, at: recorded.append(line), lambda error: None)
        for _ in range(count):
            lines.add(Role.AGENT, b"x")
        lines.add(Role.AGENT, b"\n")
        assert recorded == [b"x" * count]

    assert_grows_in_proportion(record, 500, times=20)


@pytest.mark.parametrize(
    ("agent", "code", "told"),
    [
        (["no-such-agent"], 127, "there is no command 'no-such-agent'"),
        (["ws://127.0.0.1:1/acp"], 2, "tap records over stdio"),
    ],
)
def test_what_cannot_be_tapped_is_told(agent: list[str], code: int, told: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [*ANTIPHON, "tap", "--log", str(tmp_path / "x"), "--", *agent],
        capture_output=True, text=True, timeout=DEADLINE, env=environment(), check=False,
    )  # fmt: skip
    assert run.returncode == code
    assert told in run.stderr
    assert not (tmp_path / "x").exists()
