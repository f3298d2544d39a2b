"""What an agent shows is readable: code has colours, formulas their form, changes come together by file."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser import accessibility
from tests.browser.visiting import Visit, arrive
from tests.hub.running import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = [sys.executable, str(Path(__file__).parent / "showing_agent.py")]
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PATCH = """\
diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -1,5 +1,5 @@
-import os
+import sys
{blank}
{blank}
 def main() -> None:
-    print('one')
+    print('two')
diff --git a/style.css b/style.css
new file mode 100644
--- /dev/null
+++ b/style.css
@@ -0,0 +1,1 @@
+.a {{ color: #fff; }}
""".format(blank=" ")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hub"), agent=AGENT) as running:
        yield running


async def test_code_formulas_and_changes_are_shown(visit: Visit, tmp_path: Path) -> None:
    visitor, ann = await arrive(visit, viewport={"width": 1600, "height": 1000})
    await visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await ann.begin(str(tmp_path))
    await ann.turn("show")
    answer = ann.transcript.get_by_role("article", name="Answer").first
    await ann.messages.press("Home")
    colours = {"keyword": "class", "comment": "# a place", "number": "0x1f", "property": '"name"'}
    for kind, text in colours.items():
        await expect(answer.locator(f"pre .c-{kind}").get_by_text(text, exact=True)).to_be_visible()
    await expect(answer.locator("math")).to_have_count(2)
    await expect(answer.locator("math mtable mtd")).to_have_count(4)
    await expect(answer).to_contain_text("It costs $5 and $10")
    await expect(answer).to_contain_text(r"\nosuchthing{x}")

    await ann.messages.press("End")
    calls = ann.transcript.get_by_role("article", name="Tool call")
    second = calls.filter(has_text="and add style.css")
    await expect(second.locator(".lines .c-keyword").first).to_have_text("import")
    reading = calls.filter(has_text="Read notes.md")
    await reading.get_by_role("button").first.click()
    await expect(reading.get_by_role("button", name="src/app.py")).to_be_visible()
    await expect(reading.get_by_role("button", name="notes.md", exact=True)).to_have_count(0)
    await reading.get_by_role("button", name="src/app.py").click()
    changes = ann.page.get_by_role("region", name="All changes")
    files = changes.get_by_role("article")
    await expect(files).to_have_count(2)
    await expect(files.first).to_be_focused()
    added = files.first.locator(".line.added")
    await expect(added).to_have_text(["1+added: import sys", "5+added:     print('two')"])
    await changes.get_by_role("button", name="Copy all changes as a patch").click()
    await expect(changes.get_by_role("button", name="Copied")).to_be_visible()
    assert await ann.page.evaluate("() => navigator.clipboard.readText()") == PATCH
    await ann.page.keyboard.press("Escape")
    await expect(changes).to_be_hidden()
    await expect(reading.get_by_role("button", name="src/app.py")).to_be_focused()
    await ann.page.keyboard.press("Escape")  # a letter is a key only where nobody could mean to write
    await ann.page.keyboard.press("d")
    await expect(changes.get_by_role("heading", name="Changes")).to_be_focused()
    for theme in ("light", "dark"):
        await ann.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert await accessibility.complaints(ann.page) == {}
    await changes.get_by_role("button", name="src/app.py: Show in the transcript").click()
    await expect(changes).to_be_hidden()
    assert await accessibility.complaints(ann.page) == {}
    wide, narrow = await calls.filter(has_text="Run it").bounding_box(), await second.bounding_box()
    assert wide is not None
    assert narrow is not None
    assert wide["width"] > narrow["width"]  # its lines are long


async def test_files_are_named_and_long_prompts_fold(visit: Visit, tmp_path: Path) -> None:
    _, ann = await arrive(visit)
    for name in ("src/app.py", "src/other.py", "docs/guide.md", ".git/app.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    await ann.begin(str(tmp_path))
    await ann.prompt.press_sequentially("say look at @app")
    menu = ann.page.get_by_role("listbox", name="Files")
    await expect(menu.get_by_role("option")).to_have_count(1)
    await ann.prompt.press("Enter")
    await expect(ann.prompt).to_have_value("say look at @src/app.py ")
    await expect(ann.page.get_by_role("list", name="Attached files")).to_contain_text("src/app.py")
    await ann.prompt.press("Enter")
    await ann.reads(f"heard say look at @src/app.py file://{tmp_path}/src/app.py")
    await ann.prompt.press_sequentially("a@b @none")
    await expect(menu).to_be_hidden()

    await ann.page.locator("input[type=file]").set_input_files(
        {"name": "dot.png", "mimeType": "image/png", "buffer": PICTURE}
    )
    await ann.say("say\n" + "\n".join(f"line {number}" for number in range(60)))
    prompt = ann.transcript.get_by_role("article", name="Prompt").last
    more = prompt.get_by_role("button", name="Show all")
    await expect(more).to_have_attribute("aria-expanded", "false")
    await more.click()
    await prompt.get_by_role("button", name="Enlarge").click()
    await expect(prompt.get_by_role("button", name="Enlarge")).to_have_attribute("aria-expanded", "true")
    await expect(prompt.get_by_role("button", name="Show less")).to_have_attribute("aria-expanded", "true")
