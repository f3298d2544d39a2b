"""The first ten minutes of a newcomer: a hub with a real agent and with one that cannot start."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser import accessibility
from tests.browser.visiting import Visit, arrive
from tests.hub.running import REHEARSE, Served, served
from tests.peers import agents, install

pytestmark = pytest.mark.asyncio(loop_scope="session")

REAL = "qwen-code"
BROKEN = "broken"
QUICK = "quick"
WORDS = "error: no API key in SECRET_KEY_OF_THE_AGENT"


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[agents.Launch]:
    try:
        made = agents.prepare(REAL, tmp_path_factory.mktemp("agent"))
    except install.PeerUnavailable as reason:
        pytest.skip(f"{REAL} cannot be had: {reason}")
    yield made
    assert agents.still_there(made.left_running(), 20.0) == []


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, launch: agents.Launch) -> Iterator[Served]:
    """The agent that cannot start is the first one, so it is offered first. The last is the built-in agent
    under another name: no tour is offered."""
    says = f"import sys; print({WORDS!r}, file=sys.stderr); sys.exit(3)"
    broken = shlex.join([sys.executable, "-c", says])
    named = ("--agent", f"{BROKEN}={broken}", "--agent", f"{REAL}={shlex.join(launch.command)}")
    named += ("--agent", f"{QUICK}={shlex.join(REHEARSE)}")
    with served(tmp_path_factory.mktemp("hub"), *named, "--start", "120", agent=()) as running:
        yield running


async def test_the_first_prompt_reaches_a_real_agent_although_the_first_agent_does_not_start(
    visit: Visit, tmp_path: Path
) -> None:
    _, ann = await arrive(visit)
    page, keys = ann.page, ann.page.keyboard
    await expect(ann.prompt).to_be_focused()
    await expect(page.get_by_role("button", name="Take the tour")).to_have_count(0)

    # A folder that does not exist is found out before an agent is started in it.
    folder = page.get_by_role("combobox", name="Folder")
    await folder.fill(str(tmp_path / "missing"))
    await folder.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("There is no folder")
    (tmp_path / "site").mkdir()
    await folder.fill(f"{tmp_path}/s")
    await page.get_by_role("option", name=re.compile("site$")).click()
    await expect(folder).to_have_value(str(tmp_path / "site"))
    await folder.press("Escape")
    await folder.press("Enter")
    await expect(ann.prompt).to_be_focused()

    # Every letter of the prompt is text, and no command.
    await keys.type("run the tests?")
    await expect(ann.prompt).to_have_value("run the tests?")
    await keys.press("Enter")
    start = page.get_by_role("region", name="Start of the session")
    await expect(start.get_by_role("heading", name=f"{BROKEN} did not start")).to_be_visible()
    await expect(start).to_contain_text(WORDS)
    await expect(ann.transcript).to_contain_text("run the tests?")
    await expect(ann.title).to_contain_text("run the tests?")
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert await accessibility.complaints(page) == {}
    await start.get_by_role("button", name="Try again").click()
    await expect(start.get_by_role("heading", name=f"{BROKEN} did not start")).to_be_visible()

    # Another agent takes the prompt, and what is written while it starts.
    await start.get_by_role("button", name="Choose another agent").click()
    await page.get_by_role("menuitemradio", name=REAL).click()
    await expect(start).to_contain_text(f"Starting {REAL}")
    await expect(ann.prompt).to_be_focused()
    await keys.type("and say hello")
    await keys.press("Enter")
    await expect(ann.prompt).to_have_value("")
    await ann.reads("You said: run the tests?")
    await ann.reads("You said: and say hello")
    await ann.ready()
    await expect(start).to_be_hidden()
    await expect(ann.title).to_contain_text("run the tests?")
    assert await page.evaluate("() => antiphon.sessions.map(({ title }) => title)") == ["run the tests?"]

    # The agent is the one to offer from here on. A second session starts while the first is looked at.
    first = ann.session_id
    await keys.press("Escape")
    await keys.press("n")
    await expect(page.get_by_role("button", name=f"Agent: {REAL}")).to_be_visible()
    await keys.type("in the second session")
    await keys.press("Enter")
    await ann.sessions.get_by_role("button", name=re.compile("^run the tests")).click()
    assert ann.session_id == first
    toast = page.locator("#toasts").get_by_role("button", name="Open")
    await toast.click()
    await ann.reads("You said: in the second session")
    assert ann.session_id != first
    await ann.open(first)
    await expect(ann.transcript.get_by_text("in the second session")).to_have_count(0)


async def test_sessions_are_deleted_archived_and_brought_back(visit: Visit, tmp_path: Path) -> None:
    _, ann = await arrive(visit)
    page, keys = ann.page, ann.page.keyboard
    await page.get_by_role("button", name=re.compile("^Agent: ")).click()
    await page.get_by_role("menuitemradio", name=QUICK).click()
    await ann.begin(str(tmp_path))
    row = ann.sessions.get_by_role("button", name=re.compile("^Untitled"))
    await keys.press("ControlOrMeta+k")
    await keys.type("delete the")
    await expect(page.get_by_role("option", name="Delete the session")).to_be_visible()
    assert await accessibility.complaints(page, *accessibility.COVERED) == {}
    await keys.press("Enter")
    await expect(page.locator("#toasts")).to_contain_text("“Untitled” is deleted")
    await expect(row).to_have_count(0)
    assert await accessibility.complaints(page) == {}
    await page.get_by_role("button", name="Undo").click()
    await expect(row).to_be_visible()
    await expect(ann.prompt).to_be_focused()

    await ann.bar.get_by_role("button", name="Session", exact=True).click()
    await page.get_by_role("menuitem", name="Archive").click()
    await expect(row).to_have_count(0)
    await ann.sessions.get_by_role("button", name="List of sessions").click()
    await page.get_by_role("menuitem", name="Archived sessions").click()
    await page.get_by_role("button", name="Bring back Untitled").click()
    await expect(row).to_be_visible()

    await ann.sessions.get_by_role("button", name="List of sessions").click()
    await page.get_by_role("menuitemradio", name="By project").click()
    await expect(ann.sessions.get_by_role("heading", name=re.compile(tmp_path.name[:8]))).to_be_visible()

    # What the toasts said can be read later.
    await page.evaluate(
        "() => antiphon.emit('error', { title: 'It broke', message: 'Badly.', more: 'a trace' })"
    )
    await ann.bar.get_by_role("button", name="Notices: 1 new error").click()
    notices = page.get_by_role("dialog", name="Notices")
    for words in ("It broke", "a trace", "is deleted", "is archived"):
        await expect(notices).to_contain_text(words)
    assert await accessibility.complaints(page, *accessibility.COVERED) == {}
    await keys.press("Escape")
    await expect(ann.bar.get_by_role("button", name="Notices", exact=True)).to_be_visible()

    # A deletion that is not undone is for good, also where the page is left.
    await ann.sessions.get_by_role("button", name=re.compile("^Untitled")).hover()
    await ann.sessions.get_by_role("button", name="Archive or delete Untitled").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await expect(row).to_have_count(0)
    await page.reload()
    await ann.come_in()
    await expect(row).to_have_count(0)


async def test_a_newcomer_is_asked_for_a_name_once(visit: Visit, hub: Served) -> None:
    bob = await visit()
    page = await bob.page()
    asks = page.get_by_role("region", name="Your name")
    for size in ({"width": 1280, "height": 800}, {"width": 360, "height": 740}):
        await page.set_viewport_size(size)  # type: ignore[arg-type]
        await expect(asks).to_be_visible()
        assert await accessibility.complaints(page) == {}
        assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await asks.get_by_role("textbox").fill("Bob")
    await asks.get_by_role("button", name="Save").click()
    await expect(asks).to_be_hidden()
    await page.reload()
    await expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_be_visible()
    await expect(asks).to_be_hidden()
    assert await page.evaluate("() => antiphon.me.name") == "Bob"


async def test_the_owner_has_the_login_name_of_the_terminal(visit: Visit, hub: Served) -> None:
    import getpass

    from tests.browser.visiting import run
    from tests.hub.running import ANTIPHON

    ann = await visit()
    page = await ann.page(link=(await run(*ANTIPHON, "link", "--data", str(hub.folder))).strip())
    await expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_be_visible()
    assert await page.evaluate("() => antiphon.me.name") == getpass.getuser()
    await expect(page.get_by_role("region", name="Your name")).to_be_hidden()


TO_THE_FOLDER = """async (button) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  button.click();
  document.getElementById("folder").focus();
  await frame();
  await frame();
  return document.activeElement.id;
}"""


async def test_a_field_that_the_user_goes_to_right_after_new_session_keeps_the_focus(visit: Visit) -> None:
    """Otherwise the folder that the user types becomes a prompt, and the agent works in another folder."""
    _, ann = await arrive(visit)
    button = ann.sessions.get_by_role("button", name="New session")
    assert await button.evaluate(TO_THE_FOLDER) == "folder"
    await button.click()
    await expect(ann.prompt).to_be_focused()


ADVICE = """async () => {
  const { h, withCode } = await import("/js/dom.js");
  const shown = (line) => h("p", null, withCode(line)).innerHTML;
  return [shown("To log in, run `a <b>` here."), shown("An odd ` stays.")];
}"""


async def test_the_command_in_an_advice_is_shown_as_code(visit: Visit) -> None:
    _, ann = await arrive(visit)
    shown = await ann.page.evaluate(ADVICE)
    assert shown == ["To log in, run <code>a &lt;b&gt;</code> here.", "An odd ` stays."]
