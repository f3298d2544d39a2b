"""The public surface is a list, and importing it stays cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import antiphon
from antiphon import errors

AGENTS = {"Agent", "AgentOptions", "AgentSession", "AgentTurn"}
CLIENTS = {
    "START",
    "Client",
    "ClientOptions",
    "ClientSession",
    "ClientTurn",
    "Permissions",
    "ProcessOptions",
    "Reconnect",
    "Workspace",
    "connect",
}
HUBS = {
    "Access",
    "AlertOptions",
    "Hub",
    "HubLimits",
    "HubOptions",
    "MemoryStore",
    "QuestionOptions",
    "SQLiteStore",
}
ERRORS = {
    "AntiphonError",
    "AuthRequired",
    "CallFailed",
    "InvalidParams",
    "LinkLost",
    "LocalError",
    "RemoteError",
    "RequestError",
}
PUBLIC = AGENTS | CLIENTS | HUBS | ERRORS | {"__version__", "check"}


def imported_by(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_the_public_names_are_exactly_these() -> None:
    assert set(antiphon.__all__) == PUBLIC
    for name in PUBLIC:
        assert getattr(antiphon, name) is not None


def test_importing_the_library_imports_msgspec_alone_and_no_version() -> None:
    modules = imported_by("import antiphon")
    foreign = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    assert {name for name in foreign if not name.startswith("_")} <= {
        "antiphon",
        "msgspec",
        "typing_extensions",
        "sitecustomize",
    }
    assert not {name for name in modules if name.startswith(("antiphon.schema.v1.", "antiphon.schema.v2."))}


def test_one_version_does_not_load_the_other() -> None:
    answer = b'{"stopReason":"end_turn"}'
    modules = imported_by(
        f"from antiphon.schema.codec import codec; codec(1).result('session/prompt', {answer!r})"
    )
    assert any(name.startswith("antiphon.schema.v1.") for name in modules)
    assert not any(name.startswith("antiphon.schema.v2.") for name in modules)


def test_errors_exports_every_class_that_it_defines() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert set(errors.__all__) == defined


def test_the_page_names_the_version_of_the_package() -> None:
    script = (Path(antiphon.__file__).parent / "web" / "static" / "js" / "hello.js").read_text()
    assert f'const VERSION = "{antiphon.__version__}";' in script
