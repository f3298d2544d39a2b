"""Pages of others, in a browser that is let in, get nothing of a hub (issue 7): whatever they try is refused,
noted, and costs the visitor nothing. Neither does what was used before, or is too old."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.strangers import ATTEMPTS, REBOUND, stranger
from tests.browser.visiting import DEADLINE, Visit, Visitor, new_link, run
from tests.hub.running import ANTIPHON, Served

pytestmark = pytest.mark.asyncio(loop_scope="session")

REFUSED = (
    "Failed to load resource",
    "WebSocket connection to",
    "blocked by CORS policy",
    "Framing",
    "policy: ",
)
"""What a browser says of what was refused."""
TICKET = """async () => (await (await fetch("/ticket", { method: "POST" })).json()).ticket"""
OPEN = """(ticket) => new Promise((resolve) => {
  const socket = new WebSocket(`ws://${location.host}/acp`, ["acp.v2", `acp-ticket.${ticket}`]);
  socket.onopen = () => { socket.close(); resolve("open"); };
  socket.onerror = () => resolve("failed");
})"""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[int]:
    with stranger() as port:
        yield port


class Log:
    """The audit log of a hub, from now on."""

    def __init__(self, hub: Served) -> None:
        self._path: Path = hub.folder / "audit.jsonl"
        self._from = len(self._path.read_text())

    @property
    def text(self) -> str:
        return self._path.read_text()[self._from :]

    def refusals(self) -> list[tuple[Any, ...]]:
        lines = [json.loads(line) for line in self.text.splitlines()]
        return [
            (line.get("path"), line["status"], line.get("origin"), line.get("host"))
            for line in lines
            if line["outcome"] == "refused" and line.get("path") != "/favicon.ico"  # a browser asks for it
        ]

    async def refused(self, count: int) -> list[tuple[Any, ...]]:
        """Once there are so many; a beacon is sent some time."""
        async with asyncio.timeout(DEADLINE):
            while True:  # a file that another process writes
                if len(found := self.refusals()) >= count:
                    return found
                await asyncio.sleep(0.01)


async def let_in(visit: Visit) -> tuple[Visitor, Page]:
    visitor = await visit()
    page = await visitor.page()
    await page.wait_for_function("() => !location.hash.includes('login')")
    await expect(page.locator("#notice")).to_be_hidden()
    return visitor, page


async def is_in(page: Page) -> bool:
    """Whether the visitor's browser still gets in, by a new ticket."""
    return bool(await page.evaluate(OPEN, await page.evaluate(TICKET)) == "open")


@pytest.mark.parametrize("host", ["127.0.0.1", "evil.test"])
async def test_a_page_of_another_origin_gets_nothing(
    hub: Served, visit: Visit, elsewhere: int, host: str
) -> None:
    """At another port of the same host, the browser does send the cookie along: it is of the same site."""
    visitor, own = await let_in(visit)
    visitor.expected += REFUSED
    link, ticket = await new_link(hub), await own.evaluate(TICKET)
    code = link.rpartition("=")[2]
    page = await visitor.context.new_page()
    origin, address = f"http://{host}:{elsewhere}", f"127.0.0.1:{hub.port}"
    await page.goto(origin)
    for name, (script, learnt, refusals) in ATTEMPTS.items():
        log = Log(hub)
        outcome = await page.evaluate(script, [f"http://{address}", code, ticket, hub.token])
        assert outcome == learnt, name
        noted = await log.refused(len(refusals))
        assert [(path, status, of) for path, status, _, of in noted] == [
            (path, status, address) for path, status in refusals
        ], name
        assert {from_ for _, status, from_, _ in noted if status == 403} <= {origin}, name
        for secret in (code, ticket, hub.token, *[str(c["value"]) for c in await visitor.context.cookies()]):
            assert secret not in log.text, name
    assert await own.evaluate(OPEN, ticket) == "open"  # not used up by who must not use it
    assert await is_in(own)
    other = await visit()
    await other.page(link=link)  # nor is the link
    await expect(other.context.pages[0].locator("#notice")).to_be_hidden()


async def test_a_window_that_a_page_elsewhere_opens_is_out_of_its_reach(
    hub: Served, visit: Visit, elsewhere: int
) -> None:
    visitor, _ = await let_in(visit)
    page = await visitor.context.new_page()
    await page.goto(f"http://127.0.0.1:{elsewhere}")
    async with visitor.context.expect_page() as coming:
        await page.evaluate("(hub) => { window.held = window.open(hub); }", f"http://127.0.0.1:{hub.port}/")
    opened = await coming.value
    await opened.wait_for_load_state()
    assert await opened.evaluate("() => window.opener") is None
    await page.wait_for_function("() => window.held.closed")  # as far as it can see


async def test_a_name_that_is_made_to_lead_to_the_hub_is_not_the_hub(hub: Served, visit: Visit) -> None:
    """DNS rebinding: the strange page came from elsewhere, and now its name is the hub's address."""
    visitor, own = await let_in(visit)
    visitor.expected += REFUSED
    link, ticket = await new_link(hub), await own.evaluate(TICKET)
    code, host = link.rpartition("=")[2], f"evil.test:{hub.port}"
    page = await visitor.context.new_page()
    answer = await page.goto(f"http://{host}/")
    assert answer is not None
    assert answer.status == 403
    # What is shown now has nothing of the hub but the strange origin, which is where its own page would be.
    for name, (script, learnt, refusals) in REBOUND.items():
        log = Log(hub)
        outcome = await page.evaluate(script, [f"http://{host}", code, ticket, hub.token])
        assert outcome.strip() == learnt, name
        noted = await log.refused(len(refusals))
        assert [(path, status, at) for path, status, _, at in noted] == [
            (*each, host) for each in refusals
        ], name
        assert not any(secret in log.text for secret in (code, ticket, hub.token)), name
    assert await own.evaluate(OPEN, ticket) == "open"
    assert await is_in(own)


async def test_a_link_lets_in_one_browser(hub: Served, visit: Visit) -> None:
    link = await new_link(hub)
    first, second = await visit(), await visit()
    page = await first.page(link=link)
    await expect(page.locator("#notice")).to_be_hidden()
    second.expected += ["401"]
    log = Log(hub)
    other = await second.page(link=link)
    await expect(other.locator("#notice")).to_contain_text("antiphon link")
    assert ("/login", 401) in [refusal[:2] for refusal in log.refusals()]
    assert link.rpartition("=")[2] not in log.text
    assert await is_in(page)
    assert "login" not in page.url + other.url
    assert await second.context.cookies() == []


async def test_a_ticket_opens_one_socket(hub: Served, visit: Visit) -> None:
    visitor, page = await let_in(visit)
    visitor.expected += REFUSED
    log = Log(hub)
    ticket = await page.evaluate(TICKET)
    assert await page.evaluate(OPEN, ticket) == "open"
    assert await page.evaluate(OPEN, ticket) == "failed"
    assert await page.evaluate(OPEN, "guess") == "failed"
    assert [refusal[:2] for refusal in log.refusals()] == [("/acp", 401), ("/acp", 401)]
    assert ticket not in log.text


async def test_a_cookie_is_no_token_and_no_script_sees_it(hub: Served, visit: Visit) -> None:
    visitor, page = await let_in(visit)
    visitor.expected += REFUSED
    [cookie] = await visitor.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert await page.evaluate("() => document.cookie") == ""
    tried = """async (headers) => (await fetch("/metrics", { headers })).status"""
    assert await page.evaluate(tried, {}) == 401
    assert await page.evaluate(tried, {"Authorization": f"Bearer {cookie['value']}"}) == 401
    assert await page.evaluate(tried, {"Authorization": f"Bearer {hub.token}"}) == 200
    await visitor.context.clear_cookies()
    await visitor.context.add_cookies([{**cookie, "value": hub.token}])  # type: ignore[typeddict-item]
    assert await page.evaluate("async () => (await fetch('/ticket', { method: 'POST' })).status") == 401


@pytest.mark.parametrize("how", ["expired", "revoked"])
async def test_a_cookie_that_is_over_ends_what_was_opened_with_it(
    hub: Served, visit: Visit, how: str
) -> None:
    visitor, page = await let_in(visit)
    visitor.expected += ["401", "WebSocket connection to"]
    log = Log(hub)
    if how == "revoked":
        await run(*ANTIPHON, "token", "revoke", _last(hub)["name"], "--data", str(hub.folder))
    else:
        _expire(hub)
    await expect(page.locator("#notice")).to_contain_text("antiphon link")
    assert await page.evaluate("async () => (await fetch('/ticket', { method: 'POST' })).status") == 401
    assert ("/ticket", 401) in [refusal[:2] for refusal in log.refusals()]
    assert '"act":"disconnect","outcome":"cut"' in log.text


def _last(hub: Served) -> dict[str, Any]:
    """The browser that was let in last, as it is kept."""
    last: dict[str, Any] = json.loads((hub.folder / "tokens.json").read_text())[-1]
    return last


def _expire(hub: Served) -> None:
    """As if its week had passed."""
    path = hub.folder / "tokens.json"
    kept = json.loads(path.read_text())
    kept[-1]["expires"] = 1.0
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps(kept))
    new.rename(path)
