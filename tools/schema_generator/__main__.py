"""`python -m tools.schema_generator [--check]`: writes the generated modules, or only compares them."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from .indexes import indexes
from .pinned import PINNED, PinError, load, verify
from .reader import Reader
from .writer import HEADER, pages

TARGET = Path(__file__).parent.parent.parent / "src" / "antiphon" / "schema"


def generate(pinned: Path = PINNED) -> dict[str, str]:
    """The source of every generated module, by its path under `schema/`."""
    verify(pinned)
    sources = {}
    for number in (1, 2):
        version = Reader(number, *load(number, pinned)).read()
        for name, text in (pages(version) | indexes(version)).items():
            sources[f"v{number}/{name}"] = text
    return formatted(sources)


def formatted(sources: dict[str, str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in sources}
        for name, path in paths.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(sources[name])
        command = [sys.executable, "-m", "ruff", "format", "--quiet", "--isolated", "--no-cache"]
        subprocess.run([*command, "--line-length=110", "--target-version=py311", folder], check=True)
        return {name: path.read_text() for name, path in paths.items()}


def stale(sources: dict[str, str], target: Path = TARGET) -> list[str]:
    """The files that are not as generated, or generated once and no longer."""
    found = {
        str(path.relative_to(target)): path.read_text()
        for version in ("v1", "v2")
        for path in (target / version).glob("*.py")
    }
    wrong = [name for name, text in sources.items() if found.get(name) != text]
    return wrong + [name for name, text in found.items() if name not in sources and text.startswith(HEADER)]


def main(arguments: list[str] | None = None, *, pinned: Path = PINNED, target: Path = TARGET) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.schema_generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    check = parser.parse_args(arguments).check
    try:
        sources = generate(pinned)
    except PinError as error:
        print(error, file=sys.stderr)
        return 1
    wrong = stale(sources, target)
    if check:
        for name in wrong:
            print(f"{name} is not as generated: run `python -m tools.schema_generator`", file=sys.stderr)
        return 1 if wrong else 0
    for name in wrong:
        path = target / name
        if name in sources:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(sources[name])
        else:
            path.unlink()
        print(f"wrote {name}" if name in sources else f"removed {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
