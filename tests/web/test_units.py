"""What of the page needs no browser, tested in node; and what its files have to be like."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.web.nodes import NODE, needs_node

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "src/antiphon/web/static"
SCRIPTS = sorted(STATIC.rglob("*.js"))
FORBIDDEN = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function",
    "srcdoc",
)  # fmt: skip


@needs_node
@pytest.mark.parametrize("path", sorted(HERE.glob("*.test.mjs")), ids=lambda path: path.stem)
def test_units(path: Path) -> None:
    ran = subprocess.run([NODE, "--test", str(path)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(STATIC)))
def test_no_script_makes_markup_of_text(path: Path) -> None:
    text = path.read_text()
    assert [word for word in FORBIDDEN if word in text] == []
    assert not re.search(r"setAttribute\(\s*[\"'](?:on|style)", text)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(STATIC)))
def test_all_text_of_the_page_passes_dom_js(path: Path) -> None:
    """There it is made safe to show."""
    if path.name != "dom.js":
        text = path.read_text()
        assert re.findall(r"\.(?:textContent|innerText|placeholder|alt) = |createTextNode", text) == []
        assert re.findall(r"(?<!entry|.info)\.title = ", text) == []
        assert re.findall(r"setAttribute\(\s*[\"'](?:title|alt|placeholder|aria-label)\b", text) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(STATIC)))
def test_scripts_are_small_and_their_imports_are_there(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 330
    for name in re.findall(r"^(?:import|export) .*?from \"([^\"]+)\";$", text, re.MULTILINE | re.DOTALL):
        assert (path.parent / name).is_file(), name


def test_nothing_comes_from_elsewhere() -> None:
    """A page that fetches from another place tells it who reads what."""
    for path in [STATIC / "index.html", *STATIC.rglob("*.css")]:
        assert not re.search(r"(?:src|href|url\()\s*=?\s*[\"']?(?:https?:)?//", path.read_text()), path
