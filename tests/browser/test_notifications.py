"""Notifications of the page: while it is hidden, and while it is closed, with buttons that answer.

Chromium reaches no push service here, so the test gives the page a subscription of its own keys; the hub
signs and encrypts for it as for any other, and the test hands what it decrypts to the service worker.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Worker, expect
from tools.chromium import chromium, missing
from tools.session_page import SessionPage

from tests.browser import accessibility
from tests.browser.visiting import Visitor
from tests.hub.push_service import DEADLINE, push_service
from tests.hub.running import served

pytestmark = pytest.mark.asyncio(loop_scope="session")

HIDDEN = """
Object.defineProperty(Document.prototype, "hidden", { get: () => globalThis.away === true });
globalThis.tones = 0;
OscillatorNode.prototype.start = () => { globalThis.tones += 1; };
OscillatorNode.prototype.stop = () => {};
"""
SUBSCRIBED = """
const given = %s;
let current = null;
PushManager.prototype.getSubscription = async () => current;
PushManager.prototype.subscribe = async (options) => {
  current = {
    endpoint: given.endpoint, options: {}, toJSON: () => given,
    unsubscribe: async () => { current = null; return true; },
  };
  globalThis.hubKey = options.applicationServerKey;
  return current;
};
"""
SHOWN = """async () => (await registration.getNotifications())
  .map(({ title, body, actions }) => [title, body, actions.map(({ action }) => action)])"""


async def notifications(worker: Worker, wanted: Callable[[list[list[Any]]], bool]) -> list[list[Any]]:
    """Return the notifications, as title, text and buttons, once they are as `wanted`."""
    async with asyncio.timeout(DEADLINE):
        while True:
            shown: list[list[Any]] = await worker.evaluate(SHOWN)
            if wanted(shown):
                return shown
            await asyncio.sleep(0.02)  # the browser does not say when it shows one


async def deliver(page: Page, origin: str, message: dict[str, Any]) -> None:
    """Hand a message to the service worker, as the browser does with one of its push service."""
    devtools = await page.context.new_cdp_session(page)
    known: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def updated(event: dict[str, Any]) -> None:
        for each in event["registrations"]:
            if each["scopeURL"].startswith(origin) and not known.done():
                known.set_result(each["registrationId"])

    devtools.on("ServiceWorker.workerRegistrationUpdated", updated)
    await devtools.send("ServiceWorker.enable")
    registration = await asyncio.wait_for(known, DEADLINE)
    push = {"origin": origin, "registrationId": registration, "data": json.dumps(message)}
    await devtools.send("ServiceWorker.deliverPushMessage", push)
    await devtools.detach()


@pytest_asyncio.fixture(loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The whole Chromium: the shell has no notifications."""
    if why := missing():
        pytest.skip(why)
    async with chromium() as running:
        yield running


async def test_a_hidden_page_notifies_and_a_closed_one_is_answered_by_a_button(
    browser: Browser, tmp_path: Path
) -> None:
    async with push_service() as service:
        folder = tmp_path / "hub"
        folder.mkdir(mode=0o700)
        with served(folder, "--push-service", service.origin, agent=()) as hub:
            origin = f"http://127.0.0.1:{hub.port}"
            visitor = await Visitor.of(browser, hub, name="Ann", permissions=["notifications"])
            context, subscriber = visitor.context, service.subscriber("phone")
            await context.add_init_script(HIDDEN + SUBSCRIBED % json.dumps(subscriber.params))
            ann = SessionPage(await visitor.page())
            await ann.come_in()
            await ann.begin(str(tmp_path))

            # The settings: nothing is on before a click.
            await ann.bar.get_by_role("button", name="Notifications").click()
            dialog = ann.page.get_by_role("dialog", name="Notifications")
            show = dialog.get_by_role("checkbox", name=re.compile("Show notifications"))
            closed = dialog.get_by_role("checkbox", name=re.compile("Also when this page is closed"))
            sound = dialog.get_by_role("checkbox", name=re.compile("Play a sound"))
            await expect(show).not_to_be_checked()
            await expect(closed).to_be_disabled()
            async with context.expect_event("serviceworker") as coming:
                await show.check()
            worker = await coming.value
            await closed.check()
            await expect(closed).to_be_checked()
            await sound.check()
            await expect(sound).to_be_checked()
            assert await accessibility.complaints(ann.page, *accessibility.COVERED) == {}
            await dialog.get_by_role("button", name="Close").click()
            service.key = await ann.page.evaluate("globalThis.hubKey")

            # While the page is hidden it notifies; the notification goes with its question.
            await ann.page.evaluate("globalThis.away = true; globalThis.tones = 0")
            await ann.say("run date")
            await expect(ann.questions.get_by_role("button", name="Allow").first).to_be_visible()
            [[_, text, _]] = await notifications(worker, lambda shown: len(shown) == 1)
            assert "date" in text
            assert await ann.page.evaluate("globalThis.tones") == 2
            assert (await ann.page.title()).startswith("(1) Question")
            _, message = await service.next()
            assert sorted(message["codes"]) == ["allow", "deny"]
            await ann.questions.get_by_role("button", name="Allow").first.click()
            await notifications(worker, lambda shown: [text for _, text, _ in shown] == ["Finished"])
            await service.next()

            # The page is closed: what is pushed has buttons.
            await ann.say("run date")
            _, message = await service.next()
            blank = await context.new_page()
            await ann.page.close()
            await deliver(blank, origin, message)
            shown = await notifications(worker, lambda shown: any(buttons for _, _, buttons in shown))
            # It replaces the notification of the hidden page, which had no buttons.
            assert sorted(buttons for _, _, buttons in shown) == [[], ["allow", "deny"]]
            await worker.evaluate(
                """async () => clicked((await registration.getNotifications())
                  .find(({ actions }) => actions.length), "allow")"""
            )
            _, ended = await service.next()
            assert (ended["type"], ended["text"]) == ("turn.ended", "Finished")

            # A second press of the same button says that it does not work any more.
            await deliver(blank, origin, message)
            await notifications(worker, lambda shown: any(buttons for _, _, buttons in shown))
            await worker.evaluate(
                """async () => clicked((await registration.getNotifications())
                  .find(({ actions }) => actions.length), "allow")"""
            )
            shown = await notifications(worker, lambda shown: any("Not" in title for title, _, _ in shown))
            said = [each for each in shown if each[0] == "Not answered"]
            assert said == [["Not answered", "This button does not work any more.", []]]
            assert visitor.complaints == []
            await context.close()
