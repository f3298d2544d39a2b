"""What the documents show runs, and prints what they say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.command_lines import check_command_line

from antiphon.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{number}")
    for path in DOCUMENTS
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", path.read_text(), re.S | re.M))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_python_block_runs_and_prints_what_its_comments_say(block: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", block], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    expected = re.findall(r"print\(.*\)  # (.*)", block)
    assert result.stdout.splitlines() == expected


def test_the_readme_has_a_block_to_run() -> None:
    assert BLOCKS


def test_every_link_between_documents_leads_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert target.startswith("https://") or (path.parent / target).exists(), (path.name, target)


def anchor(title: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip())


def test_every_link_to_a_heading_leads_to_one() -> None:
    for path in DOCUMENTS:
        for target, name in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text()):
            page = path.parent / target if target else path
            headings = [anchor(title) for title in re.findall(r"^#+ (.*)", page.read_text(), re.M)]
            assert name in headings, (path.name, target, name)


def defined_in(source: str) -> set[str]:
    """Return the names that a module defines at its top, and the members of its classes as `Class.member`."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(ast.unparse(target) for target in node.targets)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        if isinstance(node, ast.ClassDef):
            functions = (
                each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            )
            names.update(f"{node.name}.{each.name}" for each in functions)
    return names


def test_every_symbol_that_a_document_links_is_defined_in_its_file() -> None:
    links = [
        (path.name, symbol, path.parent / target)
        for path in DOCUMENTS
        for symbol, target in re.findall(r"\[`([\w.]+)`\]\(([^)]*src/[^)]+\.py)\)", path.read_text())
    ]
    assert len(links) > 30
    for page, symbol, file in links:
        assert symbol in defined_in(file.read_text()), f"{page}: {file.name} does not define {symbol}"


def test_symbols_are_found_in_a_module() -> None:
    source = "A: int = 1\nB = 2\nclass C:\n    async def d(self): ...\ndef e(): ...\n"
    assert defined_in(source) == {"A", "B", "C", "C.d", "e"}


def test_the_contents_of_the_decisions_are_complete() -> None:
    text = (ROOT / "docs" / "decisions.md").read_text()
    listed = re.findall(r"^\* \[(.*)\]\(#", text, re.M)
    assert listed == re.findall(r"^### (.*)", text, re.M)
    assert len(re.findall(r"^### .*\n\n\*\d{4}-\d\d-\d\d\.\* ", text, re.M)) == len(listed), (
        "a decision has no date"
    )


def test_contributing_lists_every_package() -> None:
    layout = (ROOT / "CONTRIBUTING.md").read_text().partition("src/antiphon/\n")[2].partition("\ntools/")[0]
    listed = re.findall(r"^  (\w+(?:/|\.py)) ", layout, re.M)
    package = ROOT / "src" / "antiphon"
    folders = [f"{path.parent.name}/" for path in package.glob("*/__init__.py")]
    files = [path.name for path in package.glob("*.py") if not path.name.startswith("__")]
    assert sorted(listed) == sorted([*folders, *files]), "renew the layout in CONTRIBUTING.md"


def test_every_make_target_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    command = re.compile(r"(?:`|^)(?:[A-Z]+=\S+ )?make ([a-z-]+)", re.M)
    named = {name for path in DOCUMENTS for name in command.findall(path.read_text())}
    assert named
    assert named <= targets


def test_the_example_conversation_plays_in_both_versions() -> None:
    for arguments in ([], ["--v1"]):
        command = [sys.executable, str(ROOT / "examples" / "wire_client.py"), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, result.stderr
        assert "then cancelled" in result.stdout
        assert result.stderr == ""


def test_every_command_line_a_document_shows_can_be_said() -> None:
    shown = [
        line.removeprefix("$ ")
        for path in DOCUMENTS
        for block in re.findall(r"^```(?:sh|console)?\n(.*?)^```", path.read_text(), re.S | re.M)
        for line in block.splitlines()
        if re.match(r"(\$ )?([\w ]+\| )?antiphon ", line)
    ]
    assert len(shown) > 15
    for line in shown:
        check_command_line(line)


def test_the_readme_names_every_document_and_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    missing = [
        path.name for path in DOCUMENTS if path.parent.name == "docs" and f"docs/{path.name})" not in readme
    ]
    assert not missing
    for name in main.commands:
        assert f"`antiphon {name}" in readme


def test_every_picture_of_a_document_is_there_and_every_picture_is_in_a_document() -> None:
    shown = {
        (path.parent / target).resolve()
        for path in DOCUMENTS
        for target in re.findall(r'(?:src|srcset)="([^"]+)"', path.read_text())
    }
    missing = [path for path in shown if not path.is_file()]
    assert missing == []
    assert set((ROOT / "docs" / "shots").glob("*.png")) - shown == set()


def test_every_picture_of_a_document_has_a_text_for_those_who_do_not_see_it() -> None:
    for path in DOCUMENTS:
        for picture in re.findall(r"<img [^>]*>", path.read_text()):
            assert re.search(r' alt="[^"]+\."', picture), (path.name, picture)
