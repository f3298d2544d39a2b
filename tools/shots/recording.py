"""The recording of the README: Ann prompts on the page, and Carol answers the question in a terminal."""

from __future__ import annotations

import asyncio

from playwright.async_api import Browser, Page, ViewportSize, expect

from tools.apng import encode
from tools.shots.recorder import LONGEST_STILL, SLOWNESS, Recorder, Window, pause, taker
from tools.shots.staging import Stage, shell_command
from tools.shots.story import DESK, EARLIER, PROMPT
from tools.shots.terminal import terminal, terminal_html
from tools.shots.visitor import Visitor
from tools.tmux import Terminal

SCALE = 1.5
"""Pixels of the recording for each pixel of the windows. Their places have to be whole numbers in both."""
PAGE_WIDTH, TERMINAL_WIDTH, HEIGHT = 620, 420, 600
EDGE, BAR, GAP = 2, 34, 14
"""The frame of a window, its title bar, and the space between the two windows."""
TERMINAL_LEFT = PAGE_WIDTH + 2 * EDGE + GAP
WIDTH = TERMINAL_LEFT + TERMINAL_WIDTH + 2 * EDGE
COLUMNS, ROWS = 56, 42
WORD = 0.045
"""Seconds between two words of the agent, as they are shown."""
KEY = 0.025
STILL_CARET = "* { caret-animation: manual !important }"
DESKTOP = f"""<style>
body {{ margin: 0; font: 600 13px/{BAR}px system-ui, "DejaVu Sans", sans-serif }}
div {{ position: absolute; top: 0; box-sizing: border-box; height: {HEIGHT + BAR + EDGE}px;
  border: 1px solid #8c959f; border-radius: 10px 10px 0 0; text-align: center }}
div::before {{ content: "● ● ●"; position: absolute; left: 14px; font-size: 12px; letter-spacing: 1px;
  color: #9aa4af }}
#page {{ left: 0; width: {PAGE_WIDTH + 2 * EDGE}px; background: #ecebe6; color: #3c4148 }}
#terminal {{ left: {TERMINAL_LEFT}px; width: {TERMINAL_WIDTH + 2 * EDGE}px; background: #22272e;
  color: #c4cad2 }}
</style><div id="page">Ann’s browser</div><div id="terminal">Carol’s terminal</div>"""
SHELL = """<style>
body { margin: 0; background: #15181c; color: #dee1e5; overflow: hidden }
pre { margin: 6px 8px; font: 12px/14px "DejaVu Sans Mono", monospace }
</style><pre></pre>"""


async def desktop(browser: Browser) -> bytes:
    """Return the frames of the two windows as a PNG."""
    size = ViewportSize(width=WIDTH, height=HEIGHT + BAR + EDGE)
    page = await browser.new_page(viewport=size, device_scale_factor=SCALE)
    await page.set_content(DESKTOP)
    picture = await page.screenshot(omit_background=True)
    await page.close()
    return picture


async def shown_in(page: Page, running: Terminal) -> None:
    """Draw a terminal on a page, again and again."""
    drawn = ""
    while True:
        screen = await running.screen(colours=True, whole=True)
        if screen != drawn:
            await page.locator("pre").evaluate(
                "(pre, html) => { pre.innerHTML = html }", terminal_html(screen)
            )
            drawn = screen
        await asyncio.sleep(0.05)


async def record(browser: Browser, stage: Stage) -> bytes:
    """Play the story, and return the recording."""
    ann = await Visitor.arrive(
        browser, stage, "Ann", viewport=DESK, device_scale_factor=SCALE, bypass_csp=True
    )
    await ann.page.add_style_tag(content=STILL_CARET)
    for text in EARLIER:
        await ann.begin(str(stage.folder))
        await ann.turn(text)
    await ann.sessions.get_by_role("button", name="New session").click()
    await ann.page.set_viewport_size({"width": PAGE_WIDTH, "height": HEIGHT})
    await ann.page.get_by_role("combobox", name="Folder").fill("~/songs/evensong")
    await ann.prompt.focus()
    shell = await browser.new_page(
        viewport={"width": TERMINAL_WIDTH, "height": HEIGHT}, device_scale_factor=SCALE
    )
    await shell.set_content(SHELL)
    async with terminal(*shell_command(stage), columns=COLUMNS, rows=ROWS) as carol:
        await carol.shows("$")
        drawing = asyncio.create_task(shown_in(shell, carol))
        recorder = Recorder(
            await desktop(browser),
            Window(round(EDGE * SCALE), round(BAR * SCALE), await taker(ann.page, scale=SCALE)),
            Window(
                round((TERMINAL_LEFT + EDGE) * SCALE), round(BAR * SCALE), await taker(shell, scale=SCALE)
            ),
        )
        try:
            async with recorder.recording():
                await story(ann, carol)
        finally:
            drawing.cancel()
            await asyncio.gather(drawing, return_exceptions=True)
    return encode(recorder.frames())


async def story(ann: Visitor, carol: Terminal) -> None:
    await pause(0.8)
    await ann.page.keyboard.type(PROMPT, delay=1000 * KEY * SLOWNESS)
    await pause(0.5)
    await ann.page.keyboard.press("Enter")
    await ann.questions.get_by_role("button", name="Allow").first.wait_for()
    await pause(LONGEST_STILL)
    for key in "antiphon chat":
        await carol.keys(key if key != " " else "Space")
        await pause(KEY)
    await carol.keys("Enter")
    await carol.shows("Any spelling of a voice")
    await pause(0.6)
    await carol.keys("Enter")
    await carol.shows("Allow once")
    await pause(1.0)
    await carol.keys("y")
    await expect(ann.questions.get_by_role("button", name="Allow")).to_have_count(0)
    await ann.ready()
    await ann.reads("All three tests pass.")
    await carol.shows("All three tests pass.")
    await pause(0.5)
