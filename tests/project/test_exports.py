"""The public surface is a list, and importing it stays cheap."""

from __future__ import annotations

import subprocess
import sys

import antiphon

PUBLIC = {
    "START",
    "UNSET",
    "Agent",
    "AgentSession",
    "AgentTurn",
    "Agreement",
    "AntiphonError",
    "AuthRequired",
    "CallFailed",
    "Client",
    "ClientSession",
    "ClientTurn",
    "Connection",
    "Dialect",
    "Hub",
    "LinkLost",
    "LocalError",
    "MemoryStore",
    "OptIns",
    "Permissions",
    "RemoteError",
    "RequestError",
    "Role",
    "SQLiteStore",
    "Unknown",
    "UnsetType",
    "connect",
}


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
