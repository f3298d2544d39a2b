"""The page of a hub on a cluster shows its owners which hubs there are."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import ViewportSize, expect

from tests.browser import accessibility
from tests.browser.visiting import Visit, arrive
from tests.hub.running import Served, served
from tests.stores.nats_servers import SERVER, one_server

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(SERVER is None, reason="nats-server is not installed"),
]

PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One of two hubs on a store. The other one is called `<b>far</b>`."""
    with one_server(tmp_path_factory.mktemp("nats")) as nats:
        near, far = tmp_path_factory.mktemp("near"), tmp_path_factory.mktemp("far")
        with (
            served(far, "--store", nats, "--label", "<b>far</b>", agent=()),
            served(near, "--store", nats, "--label", "near", agent=()) as running,
        ):
            yield running


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
async def test_an_owner_sees_the_hubs(visit: Visit, hub: Served, viewport: ViewportSize) -> None:
    _, ann = await arrive(visit, viewport=viewport)
    if viewport is PHONE:
        await ann.bar.get_by_role("button", name="Sessions").click()
    button = ann.page.get_by_role("button", name="Hubs")
    await button.focus()
    await ann.page.keyboard.press("Enter")
    dialog = ann.page.get_by_role("dialog", name="Hubs")
    rows = dialog.get_by_role("listitem")
    await expect(rows).to_have_count(2)
    await expect(rows.nth(0)).to_contain_text("<b>far</b>")
    await expect(rows.nth(1)).to_contain_text("near (this hub)")
    await expect(rows.nth(1)).to_contain_text(
        re.compile(rf"{re.escape(hub.acp)} · \d+ sessions? · \d+ clients?")
    )
    for theme in ("light", "dark"):
        await ann.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert await accessibility.complaints(ann.page, *accessibility.COVERED) == {}, theme
    assert await ann.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await ann.page.keyboard.press("Escape")
    await expect(button).to_be_focused()


async def test_nobody_else_sees_the_hubs(visit: Visit, hub: Served) -> None:
    async with hub.client() as client:
        made = await client.connection.call("_antiphon/link", {"role": "controller"})
    bob = await visit(viewport=DESK)
    page = await bob.page(link=f"http://127.0.0.1:{hub.port}/#login={made.code}")
    await expect(page.get_by_role("navigation", name="Sessions")).to_be_visible()
    await expect(page.get_by_role("button", name="Hubs")).to_be_hidden()
