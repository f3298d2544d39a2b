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
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes objects that live as long as the run: the garbage collector need not look at them."""
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


WAITING = ("cluster", "stores", "peers", "conformance", "hub", "browser", "tui", "cli", "agent")
"""The folders of tests that wait for processes more than they compute, those that wait longest first."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let every worker begin with an equal share of the files that wait, and end with tests that are quick.

    xdist gives each worker a stretch of the list, and a worker that is done takes from the end of another's.
    The tests of a file share a server, so they stay together.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    folders = [f"tests/{folder}/" for folder in WAITING]
    files: dict[Path, list[pytest.Item]] = {}
    quick = []
    for item in items:
        (files.setdefault(item.path, []) if item.nodeid.startswith(tuple(folders)) else quick).append(item)
    order = sorted(files.values(), key=lambda tests: _folder(tests[0].nodeid, folders))
    shares = [[test for tests in order[number::workers] for test in tests] for number in range(workers)]
    left = len(items)
    items.clear()
    for number, share in enumerate(shares):
        missing = max(0, left // (workers - number) - len(share))
        items += share + quick[:missing]
        del quick[:missing]
        left -= len(share) + missing
    items += quick


def _folder(nodeid: str, folders: list[str]) -> int:
    return next(number for number, folder in enumerate(folders) if nodeid.startswith(folder))
