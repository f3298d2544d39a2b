"""The generated modules are what the pinned schemas give, and a change on either side is seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tools.schema_generator.__main__ import TARGET, generate, main
from tools.schema_generator.decisions import PAGES
from tools.schema_generator.pinned import PINNED, PinError, difference, load, verify
from tools.schema_generator.reader import Reader


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path]:
    pinned, target = tmp_path / "pinned", tmp_path / "schema"
    shutil.copytree(PINNED, pinned)
    for version in ("v1", "v2"):
        shutil.copytree(TARGET / version, target / version, ignore=shutil.ignore_patterns("__pycache__"))
    return pinned, target


def test_what_is_committed_is_what_is_generated():
    assert main(["--check"]) == 0


def test_a_flipped_byte_in_a_pinned_schema_is_refused(copies, capsys):
    pinned, target = copies
    path = pinned / "v2.json"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    assert main(["--check"], pinned=pinned, target=target) == 1
    assert "v2.json is not the pinned schema" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["v1/content.py", "v2/leniency.py", "v2/__init__.py"])
def test_a_flipped_byte_in_a_generated_file_is_seen_and_mended(copies, capsys, name):
    pinned, target = copies
    path = target / name
    good = path.read_bytes()
    data = bytearray(good)
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert main(["--check"], pinned=pinned, target=target) == 1
    assert f"{name} is not as generated" in capsys.readouterr().err
    assert main([], pinned=pinned, target=target) == 0
    assert path.read_bytes() == good


def test_a_page_that_is_no_longer_generated_goes_and_hand_written_ones_stay(copies, capsys):
    pinned, target = copies
    stale = target / "v1" / "stale.py"
    stale.write_text((target / "v1" / "plans.py").read_text())
    assert main(["--check"], pinned=pinned, target=target) == 1
    assert main([], pinned=pinned, target=target) == 0
    assert "removed v1/stale.py" in capsys.readouterr().out
    assert not stale.exists()
    assert (target / "v1" / "optins.py").exists()
    assert (target / "v2" / "proposed.py").exists()


def test_generating_twice_gives_the_same():
    assert generate() == generate()


def test_every_pinned_schema_has_a_hash():
    listed = {line.split()[1] for line in (PINNED / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in PINNED.glob("*.json")}
    verify()


def test_a_definition_without_a_page_stops_the_generator():
    stable, unstable = load(1)
    with pytest.raises(ValueError, match="Surprise has no page"):
        Reader(1, stable, unstable | {"Surprise": {"type": "string"}}).read()


def test_a_definition_has_one_page():
    names = [name for _, names in PAGES.values() for name in names.split()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("stable", "unstable", "reason"),
    [
        ({"type": "string"}, {"type": "integer"}, "'string' is not 'integer'"),
        (
            {"type": "object", "required": ["a"]},
            {"type": "object", "required": ["a", "b"]},
            "required differs",
        ),
        ({"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {}}, "a is gone"),
        ({"anyOf": [{"const": 1}]}, {"anyOf": [{"const": 2}]}, "a branch of anyOf is gone"),
        ({"type": "string"}, {"type": "string", "minLength": 1}, "only the unstable one has"),
    ],
)
def test_a_stable_schema_that_is_no_part_of_the_unstable_one_is_refused(stable, unstable, reason):
    assert reason in difference(stable, unstable)


def test_a_stable_schema_may_grow_into_the_unstable_one():
    stable = {"type": "object", "properties": {"type": {"type": "string"}}, "anyOf": [{"const": "a"}]}
    unstable = {
        "type": "object",
        "properties": {"type": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"const": "b"}, {"const": "a"}],
    }
    assert difference(stable, unstable) == ""


def test_a_changed_stable_definition_stops_the_generator(copies):
    pinned, _ = copies
    path = pinned / "v1.json"
    path.write_text(path.read_text().replace('"default": false', '"default": true', 1))
    with pytest.raises(PinError):
        load(1, pinned)
