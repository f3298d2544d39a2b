"""What every test shares: a Hypothesis profile, a watchdog, and a CI in which nothing may skip."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.watchdog import pytest_configure as pytest_configure  # a hook of this file too

settings.register_profile(
    "antiphon",
    deadline=None,
    derandomize=True,
    max_examples=int(os.environ.get("ANTIPHON_EXAMPLES", "50")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("antiphon")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collecting makes objects that live as long as the run: the garbage collector need not look at them.

    Each worker begins with other folders. pytest rewrites the assertions of a file once and keeps the result,
    so the workers share that work on a fresh clone.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is not None and session.config.args == ["tests"]:
        folders = sorted({str(file.parent) for file in Path("tests").rglob("test_*.py")})
        first = len(folders) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        session.config.args = folders[first:] + folders[:first]
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where everything is installed, a skip hides something: it fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("ANTIPHON_NO_SKIPS") and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("ANTIPHON_NO_SKIPS is set and tests were skipped: see the summary.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


WAITING = ("tests/cluster/", "tests/stores/", "tests/peers/")
"""Tests that wait for servers, leases and real agents more than they compute."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait: others compute meanwhile. At the end they would be alone."""
    items.sort(key=lambda item: (not item.nodeid.startswith(WAITING), item.path))
