"""One Chromium for all tests, one hub for each module, and visitors with nothing to complain about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from tools.chromium import chromium, missing

from tests.hub.running import ROOT, Served, served

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from tests.browser.visiting import Visit, Visitor

PICTURES = ROOT / ".cache" / "browser"
"""What browsers showed when a test failed."""
FAILED = pytest.StashKey[bool]()


class Unreadable(pytest.Module):
    """Tests that cannot even be read here, and say why."""

    def collect(self) -> Any:
        pytest.skip("needs playwright", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return None if find_spec("playwright") else Unreadable.from_parent(parent, path=module_path)


@pytest.fixture(scope="session", autouse=True)
def at_once() -> Iterator[None]:
    """The built-in agent makes no pauses for readers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTIPHON_REHEARSAL_PACE", "0")
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    if why := missing():
        pytest.skip(why)
    async with chromium("--host-resolver-rules=MAP *.test 127.0.0.1", shell=True) as running:
        yield running


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With the built-in agent."""
    with served(tmp_path_factory.mktemp("hub"), agent=()) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, hub: Served, request: pytest.FixtureRequest) -> AsyncIterator[Visit]:
    from tests.browser.visiting import Visitor

    visitors: list[Visitor] = []

    async def come(**options: Any) -> Visitor:
        visitors.append(await Visitor.of(browser, hub, **options))
        return visitors[-1]

    yield come
    await keep_pictures(browser, request)
    for visitor in visitors:
        await visitor.context.close()
    assert [told for visitor in visitors for told in visitor.complaints] == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    item.stash[FAILED] = report.failed
    return report


async def keep_pictures(browser: Browser, request: pytest.FixtureRequest) -> None:
    """Of what all browsers show, if the test has failed."""
    if not request.node.stash.get(FAILED, False):
        return
    PICTURES.mkdir(parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    for number, page in enumerate(page for context in browser.contexts for page in context.pages):
        await page.screenshot(path=PICTURES / f"{name}-{number}.png")
