"""Checks of a page for those who see little, hear it read, or have only a keyboard: lists of complaints.

Names, roles and headings are those that Chromium itself computes for a screen reader; the rest is asked of
the page, by `accessibility.js`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from playwright.async_api import Page

SCRIPT = Path(__file__).with_name("accessibility.js").read_text()
CONTROLS = frozenset(
    (
        "button", "link", "textbox", "searchbox", "checkbox", "radio", "switch", "combobox", "listbox",
        "option", "menuitem", "slider", "spinbutton", "tab", "dialog", "alertdialog", "progressbar", "meter",
        "radiogroup", "tablist", "DisclosureTriangle", "Iframe",
    )
)  # fmt: skip
LANDMARKS = frozenset(
    {"banner", "main", "navigation", "complementary", "contentinfo", "region", "search", "form"}
)
NAMED = frozenset({"form", "region"})
"""Landmarks only if they have a name."""
SKIPPING = frozenset({"link"})
LIVE = frozenset({"status", "alert", "log", "dialog", "alertdialog"})
MANY_TABS = 200

Check = Callable[[Page], Awaitable[list[str]]]


async def ask(page: Page, check: str) -> Any:
    return await page.evaluate(f"{SCRIPT}.{check}()")


def asked(check: str) -> Check:
    async def run(page: Page) -> list[str]:
        complaints: list[str] = await ask(page, check)
        return complaints

    return run


class Spoken:
    """The page as it is read out."""

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        self._nodes = {node["nodeId"]: node for node in nodes}
        self.shown = [node for node in nodes if not node["ignored"]]

    @classmethod
    async def of(cls, page: Page) -> Spoken:
        devtools = await page.context.new_cdp_session(page)
        try:
            return cls((await devtools.send("Accessibility.getFullAXTree"))["nodes"])
        finally:
            await devtools.detach()

    def inside(self, node: dict[str, Any], roles: frozenset[str]) -> bool:
        at: dict[str, Any] | None = node
        while at is not None:
            if role(at) in roles:
                return True
            at = self._nodes.get(at.get("parentId", ""))
        return False


def role(node: dict[str, Any]) -> str:
    return str(node.get("role", {}).get("value", ""))


def name(node: dict[str, Any]) -> str:
    return str(node.get("name", {}).get("value", "")).strip()


def _property(node: dict[str, Any], wanted: str) -> Any:
    return next((p["value"].get("value") for p in node.get("properties", ()) if p["name"] == wanted), None)


async def names(page: Page) -> list[str]:
    """Every control has one."""
    spoken = await Spoken.of(page)
    return [
        f"a {role(node)} has no name ({_property(node, 'roledescription') or node.get('backendDOMNodeId')})"
        for node in spoken.shown
        if role(node) in CONTROLS and not name(node)
    ]


async def images(page: Page) -> list[str]:
    """One that says nothing is hidden from who hears the page."""
    spoken = await Spoken.of(page)
    silent = [node for node in spoken.shown if role(node) in ("image", "img") and not name(node)]
    return [f"a picture has no words ({node.get('backendDOMNodeId')})" for node in silent]


async def headings(page: Page) -> list[str]:
    """One of the first level, and none that skips one."""
    spoken = await Spoken.of(page)
    found = [(_property(node, "level"), name(node)) for node in spoken.shown if role(node) == "heading"]
    wrong = [f"the heading {title!r} is of level {level}" for level, title in found if not title]
    if [level for level, _ in found].count(1) != 1:
        wrong.append(f"there are {[level for level, _ in found].count(1)} headings of the first level")
    before = 0
    for level, title in found:
        if level > before + 1:
            wrong.append(f"the heading {title!r} is of level {level}, after one of level {before}")
        before = level
    return wrong


async def landmarks(page: Page) -> list[str]:
    """One `main`; those of a kind are told apart by name; and all text is in one of them, but for a link at
    the very beginning that skips to somewhere."""
    spoken = await Spoken.of(page)
    found = [(role(node), name(node)) for node in spoken.shown if role(node) in LANDMARKS]
    named = [each for each in found if each[0] not in NAMED or each[1]]
    wrong = [] if [kind for kind, _ in found].count("main") == 1 else ["there is not one main"]
    wrong += [
        f"two landmarks are {kind} {title!r}"
        for kind, title in sorted(set(named))
        if named.count((kind, title)) > 1
    ]
    texts = [node for node in spoken.shown if role(node) == "StaticText" and name(node)]
    if texts and spoken.inside(texts[0], SKIPPING):
        texts = texts[1:]
    outside = [name(node) for node in texts if not spoken.inside(node, LANDMARKS | LIVE)]
    return wrong + [f"{text[:40]!r} stands in no landmark" for text in outside]


async def focus(page: Page) -> list[str]:
    """By Tab one comes everywhere and out again, in the order of reading, and sees where one is."""
    await ask(page, "unfocused")
    wrong, steps = [], 0
    while steps <= MANY_TABS:  # a list of which only a part is there has more to go to than one sees at first
        await page.keyboard.press("Tab")
        at = await ask(page, "focused")
        if at is None or at["again"]:
            break
        steps += 1
        if not at["seen"]:
            wrong.append(f"{at['name']} does not show that it has the focus")
        if not at["shown"]:
            wrong.append(f"{at['name']} has the focus out of sight")
        if at["back"]:
            wrong.append(f"{at['name']} comes after {at['last']}, before which it stands")
        if at["above"]:
            wrong.append(f"{at['name']} comes after {at['last']}, above which it is seen")
    else:
        wrong.append(f"Tab does not lead out, last to {at['name']}")
    return wrong or [f"Tab does not lead to {name}" for name in await ask(page, "unreached")]


STANDING: dict[str, Check] = {
    "document": asked("document"),
    "names": names,
    "images": images,
    "labels": asked("labels"),
    "headings": headings,
    "landmarks": landmarks,
    "nesting": asked("nesting"),
    "contrast": asked("contrast"),
    "targets": asked("targets"),
    "width": asked("width"),
    "boxes": asked("boxes"),
    "motion": asked("motion"),
}
"""What can be looked at without touching anything."""
COVERED = tuple(check for check in STANDING if check not in ("document", "headings", "landmarks"))
"""Those for a page of which a dialog covers all else, which then is not there for who hears it."""


async def complaints(page: Page, *checks: str) -> dict[str, list[str]]:
    """By check, only those that have any; all that touch nothing, unless some are named."""
    found = {check: await STANDING[check](page) for check in checks or STANDING}
    return {check: told for check, told in found.items() if told}
