"""The look of the page: enough contrast by day and by night, and no colour but those that have a name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from antiphon.web import ROOT

TOKENS = (ROOT / "css" / "tokens.css").read_text()
STYLES = sorted((ROOT / "css").glob("*.css"))
BASE = TOKENS[: TOKENS.index("[data-theme")]
COLOURS = {
    name: (light, dark or light)
    for name, light, dark in re.findall(
        r"--([\w-]+): (?:light-dark\()?(#[0-9a-f]{6})(?:, (#[0-9a-f]{6})\))?;", BASE
    )
}
GROUNDS = ("paper", "panel", "raised", "hover", "float")
READ = [
    *(("ink", ground) for ground in (*GROUNDS, "tint", "tint-strong", "wait-tint", "bad-tint")),
    *(("soft", ground) for ground in (*GROUNDS, "tint", "tint-strong")),
    *((word, ground) for word in ("accent", "bad", "wait", "good") for ground in ("paper", "panel", "float")),
    ("accent", "tint"), ("wait", "tint-strong"), ("bad", "bad-tint"), ("wait", "wait-tint"),
    ("accent-strong", "tint-strong"), ("on-accent", "accent"), ("on-accent", "accent-strong"),
    ("add-ink", "add"), ("del-ink", "del"), ("add-ink", "add-mark"), ("del-ink", "del-mark"),
    *((f"code-{kind}", ground)
      for kind in ("comment", "string", "number", "keyword", "type", "function", "meta", "value")
      for ground in ("paper", "panel", "raised", "float", "tint", "add", "add-mark", "del", "del-mark")),
    ("term-ink", "term"), ("term-soft", "term"), *((f"ansi-{n}", "term") for n in range(16) if n != 0),
]  # fmt: skip
SEEN = [
    *(("edge", ground) for ground in ("paper", "panel", "float")),
    *(("accent", ground) for ground in (*GROUNDS, "tint-strong")),
    *(("wait", ground) for ground in ("paper", "panel")),
    *(("good", ground) for ground in ("paper", "panel")),
    ("ansi-0", "term"),
]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_what_is_read_and_what_is_seen_has_enough_contrast(theme: int) -> None:
    found = {
        f"{one} on {ground}": round(contrast(COLOURS[one][theme], COLOURS[ground][theme]), 2)
        for pairs, least in ((READ, 4.5), (SEEN, 3.0))
        for one, ground in pairs
        if contrast(COLOURS[one][theme], COLOURS[ground][theme]) < least
    }
    assert found == {}


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.stem)
def test_every_name_that_a_style_uses_is_given(path: Path) -> None:
    style = path.read_text()
    given = set(re.findall(r"(?m)^\s*--([\w-]+):", TOKENS + style))
    assert set(re.findall(r"var\(--([\w-]+)", style)) - given == set()


@pytest.mark.parametrize(
    "path", [path for path in STYLES if path.stem != "tokens"], ids=lambda path: path.stem
)
def test_colours_are_named_in_one_place(path: Path) -> None:
    style = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{}]*\{)|rgba?\(|hsla?\(", style) == []
