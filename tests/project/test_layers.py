"""The import contracts hold, and are seen to fail when broken on purpose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src" / "antiphon", tmp_path / "src" / "antiphon")
    return tmp_path


def test_the_contracts_hold(tree: Path) -> None:
    result = lint_imports(tree)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("jsonrpc/lines.py", "import antiphon.connection"),
        ("schema/wire.py", "import antiphon.transports.base"),
        ("errors.py", "import antiphon.jsonrpc.frames"),
        ("transports/memory.py", "import antiphon.connection"),
        ("jsonrpc/peer.py", "import asyncio"),
        ("schema/codec.py", "import time"),
        ("errors.py", "import uuid"),
    ],
)
def test_a_broken_layer_is_seen(tree: Path, module: str, line: str) -> None:
    path = tree / "src" / "antiphon" / module
    path.write_text(path.read_text() + f"\n{line}\n")
    result = lint_imports(tree)
    assert result.returncode != 0
    assert "BROKEN" in result.stdout
