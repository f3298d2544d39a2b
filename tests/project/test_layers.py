"""The import contracts hold, transports know no method, and both are seen to fail when broken on purpose."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", code, "--cache-dir", "cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the product, which the tests change and put right again. What did not change is read once."""
    folder = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "src" / "antiphon", folder / "src" / "antiphon")
    return folder


@contextmanager
def added(path: Path, line: str) -> Iterator[None]:
    before = path.read_text()
    path.write_text(f"{before}\n{line}\n")
    try:
        yield
    finally:
        path.write_text(before)


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
        ("transports/http/routes.py", "import antiphon.remote.frames"),
        ("transports/http/exchange.py", "import antiphon.schema.methods"),
        ("live/session.py", "import antiphon.server.session"),
        ("server/server.py", "import antiphon.agent"),
        ("server/worker.py", "import antiphon.hub.worker.worker"),
        ("hub/session_factory.py", "import antiphon.agent"),
        ("jsonrpc/peer.py", "import asyncio"),
        ("schema/codec.py", "import time"),
        ("errors.py", "import uuid"),
    ],
)
def test_a_broken_layer_is_seen(tree: Path, module: str, line: str) -> None:
    path = tree / "src" / "antiphon" / module
    with added(path, line):
        result = lint_imports(tree)
    assert result.returncode != 0
    assert "BROKEN" in result.stdout


METHOD = re.compile(
    r"(session|auth|providers|fs|terminal|mcp|elicitation|tool_call|_antiphon|\$)/\w+|sessionId|initialize"
)


def methods_in(folder: Path) -> Iterator[str]:
    """Find strings in code that name a method or the session of a frame."""
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text())
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            value = node.value if isinstance(node, ast.Constant) and id(node) not in prose else None
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            if isinstance(text, str) and METHOD.search(text):
                yield f"{path.name}:{node.lineno}: {text!r}"


def test_transports_name_no_method() -> None:
    assert list(methods_in(ROOT / "src" / "antiphon" / "transports")) == []


@pytest.mark.parametrize(
    "line", ['OPENS = ("session/new",)', "CANCEL = b'$/cancel_request'", 'ID = "sessionId"']
)
def test_a_method_in_a_transport_is_seen(tree: Path, line: str) -> None:
    path = tree / "src" / "antiphon" / "transports" / "memory.py"
    with added(path, line):
        assert len(list(methods_in(path.parent))) == 1
