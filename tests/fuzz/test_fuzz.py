"""A little of `make fuzz`, the same inputs each time; and the fuzzer itself, with a target that breaks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.fuzz import running
from tests.fuzz.__main__ import main
from tests.fuzz.mutation import NASTY, mutated
from tests.fuzz.running import TARGETS, Broken, Check, Crash, Tally, explore, fuzz, target

EXAMPLES = {"lines": 60, "codec": 60, "bridge": 40, "http": 8, "websocket": 8, "journal": 12, "imports": 50}


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_survives_its_seeds_and_some_changes(name: str) -> None:
    made, tally = target(name), Tally()
    with made.opened() as check:
        for data in made.SEEDS[:12]:
            check(data)
        explore(name, check, tally, examples=EXAMPLES[name], number=1)
    assert tally.executions >= EXAMPLES[name]


def fragile(check: Check) -> SimpleNamespace:
    @contextlib.contextmanager
    def opened() -> Iterator[Check]:
        yield check

    return SimpleNamespace(SEEDS=[b'{"a":1}'], WORDS=(b"boom",), opened=opened)


def test_a_crash_is_found_shrunk_kept_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def check(data: bytes) -> str:
        if b"boom" in data:
            raise KeyError("boom")
        return "fine"

    made = fragile(check)
    monkeypatch.setattr(running, "target", lambda name: made)
    monkeypatch.setattr("tests.fuzz.__main__.target", lambda name: made)
    monkeypatch.setattr(running, "FOUND", tmp_path)
    monkeypatch.setattr("tests.fuzz.__main__.FOUND", tmp_path)
    monkeypatch.setattr(sys, "argv", ["fuzz", "--minutes", "1", "--target", "lines", "--seed", "1"])
    assert main() == 1
    told = capsys.readouterr().out
    assert "CRASH in lines: KeyError" in told
    path = told.strip().splitlines()[-2].rpartition(" ")[2]
    with open(path, "rb") as file:
        assert b"boom" in (data := file.read())
    assert len(data) <= len(b'{"a":1}boom')
    monkeypatch.setattr(sys, "argv", ["fuzz", "--target", "lines", "--replay", path])
    with pytest.raises(KeyError):
        main()


def test_a_check_that_hangs_or_grows_is_a_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def hang(data: bytes) -> str:
        while data:
            pass
        return "empty"

    monkeypatch.setattr(running, "FOUND", tmp_path)
    monkeypatch.setattr(running, "target", lambda name: fragile(hang))
    patient = running.deadline
    with monkeypatch.context() as hurried:
        hurried.setattr(running, "deadline", lambda: patient(0.05))
        with pytest.raises(Crash, match="took more than"):
            explore("lines", hang, Tally(), examples=5, number=1)
    kept: list[bytes] = []

    def grow(data: bytes) -> str:
        kept.append(bytes(1 << 20))
        return "grown"

    monkeypatch.setattr(running, "target", lambda name: fragile(grow))
    monkeypatch.setattr(running, "GROWTH", 1 << 20)
    monkeypatch.setattr(running, "BATCH", 2)
    with pytest.raises(Crash, match="memory grew"):
        fuzz("lines", cpu_seconds=60, number=1, told=lambda tally: None)


def test_an_edit_of_json_stays_json_and_takes_in_every_nasty_value() -> None:
    seed = [b'x\n{"a":[1,{"b":"c"}],"d":null}']
    for size in range(len(NASTY)):
        made = mutated(seed, (), 0, [(12, 3, size, b"\x07")])
        assert made.startswith(b'x\n{"a":')
    assert mutated(seed, (), 0, [(12, 0, 0, b"\0")]) == b'x\n{"d":null}'
    assert issubclass(Broken, AssertionError)
