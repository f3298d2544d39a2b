"""Each check of accessibility finds what it is for, and lets the good page be."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.browser import accessibility

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOOD = """<!doctype html><html lang="en"><title>Good</title>
<style>body { background: #fff; color: #333; font: 16px sans-serif } button, input { min-height: 28px }
:focus-visible { outline: 2px solid blue } .hint { color: #767676 } .box { display: block; border: 1px solid }
.away { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
@media not (prefers-reduced-motion) { button { transition: opacity 1s } }</style>
<header><h1>Good</h1><a href="#main">Skip</a></header>
<nav aria-label="Sessions"><h2>Sessions</h2><button>New</button></nav>
<main id="main"><h2>Talk</h2><h3>Part</h3><p class="hint">A hint <span class="away">spoken</span></p>
<label>Say <input placeholder="something"></label><img alt="A chart" src="data:,"><img alt="" src="data:,">
<button aria-label="Close"><svg aria-hidden="true" width="16" height="16"></svg></button></main>
<div role="status">Saved</div>"""

BAD = {
    "document": ('<html lang="en">', "<html>"),
    "names": ('<button aria-label="Close">', "<button>"),
    "images": ('alt="A chart"', ""),
    "labels": ("<label>Say <input", "<label>Say </label><input title=x"),
    "headings": ("<h3>Part</h3>", "<h4>Part</h4>"),
    "landmarks": ('<div role="status">Saved</div>', "<div>Saved</div>"),
    "nesting": ("<button>New</button>", "<button aria-hidden=true>New</button>"),
    "contrast": ("#767676", "#777"),
    "targets": ("min-height: 28px", "height: 18px"),
    "width": ("A hint", "<b style='display:block;width:1300px'>A hint</b>"),
    "boxes": (
        "A hint",
        "<b style='display:block;border:1px solid;width:300px'><i style='display:block;width:400px'>A",
    ),
    "motion": ("@media not (prefers-reduced-motion)", "@media all"),
}

MORE_BAD = {
    "names: link": ("names", (">Skip</a>", "></a>")),
    "names: frame": ("names", ("<h2>Talk", "<iframe></iframe><h2>Talk")),
    "images: drawn": ("images", ('<svg aria-hidden="true"', "<svg role=img")),
    "headings: two firsts": ("headings", ("<h2>Talk</h2>", "<h1>Talk</h1>")),
    "landmarks: alike": ("landmarks", ("<header>", '<nav aria-label="Sessions"></nav><header>')),
    "landmarks: no main": ("landmarks", ('<main id="main">', '<section aria-label=Talk id="main">')),
    "document: twice": ("document", ("<h2>Talk", "<h2 id=main>Talk")),
    "document: nowhere": ("document", ("<h2>Talk", "<h2 aria-labelledby=nothing>Talk")),
    "nesting: tabindex": ("nesting", ("<button>New", "<button tabindex=3>New")),
    "nesting: inside": ("nesting", (">Skip<", "><button>Skip</button><")),
    "contrast: opacity": ("contrast", (".hint { color: #767676 }", ".hint { opacity: 0.5 }")),
    "contrast: placeholder": ("contrast", (".hint {", "::placeholder { color: #999 } .hint {")),
    "contrast: picture": ("contrast", ("background: #fff", "background: linear-gradient(red, blue)")),
    "contrast: colour spaces": ("contrast", ("color: #767676", "color: oklch(0.7 0 0)")),
    "motion: for ever": (
        "motion",
        (".hint {", "@keyframes go { to { opacity: 0.99 } } .hint { animation: go 1s infinite; "),
    ),
    "motion: scrolling": ("motion", (".hint {", "html { scroll-behavior: smooth } .hint {")),
}

FOCUS = {
    "trap": ("<main", "<div tabindex=0 onkeydown='event.preventDefault()'>Stuck</div><main"),
    "unseen": (":focus-visible { outline: 2px solid blue }", ":focus-visible { outline: none }"),
    "order": ("<button>New", "<button>First</button><button tabindex=1>New"),
    "shown elsewhere": ("<h2>Talk", "<button style='margin-top: 300px'>Low</button><h2>Talk"),
    "out of sight": ("<button>New", "<button style='position:absolute;left:-999px'>New"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    context = await browser.new_context(reduced_motion="reduce")
    yield await context.new_page()
    await context.close()


async def show(page: Page, change: tuple[str, str] = ("", "")) -> None:
    assert change[0] in GOOD
    await page.set_content(GOOD.replace(*change) if change[0] else GOOD)


async def test_a_good_page_has_no_complaints(page: Page) -> None:
    await show(page)
    assert await accessibility.complaints(page) == {}
    assert await accessibility.focus(page) == []


@pytest.mark.parametrize("check", accessibility.STANDING)
async def test_a_check_finds_what_it_is_for_and_nothing_else(page: Page, check: str) -> None:
    await show(page, BAD[check])
    assert list(await accessibility.complaints(page)) == [check]


@pytest.mark.parametrize("case", MORE_BAD)
async def test_a_check_finds_more(page: Page, case: str) -> None:
    check, change = MORE_BAD[case]
    await show(page, change)
    assert check in await accessibility.complaints(page)


@pytest.mark.parametrize("case", FOCUS)
async def test_the_way_of_the_focus_is_followed(page: Page, case: str) -> None:
    await show(page, FOCUS[case])
    if case == "shown elsewhere":
        await page.evaluate("document.querySelector('main').prepend(document.querySelector('label'))")
        await page.evaluate(
            "document.querySelector('main').style = 'display: flex; flex-direction: column-reverse'"
        )
    assert await accessibility.focus(page)
