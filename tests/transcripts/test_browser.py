"""The page in a real browser: it looks as it should, and what anybody wrote does nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from antiphon.transcripts import to_html
from tests.transcripts.hostile import TEXTS, bodies
from tests.transcripts.sample import told

CHROMIUM = shutil.which("chromium")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
)  # fmt: skip


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_nothing_runs_and_nothing_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    written = "\n\n".join(text for text in TEXTS if len(text) < 500)
    page = "".join(to_html(told(bodies(written))))
    file.write_text(page.replace("alert(1)", "document.title=`RAN`"))
    command = [str(CHROMIUM), *QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000"]
    result = subprocess.run(
        [*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=90, check=False
    )
    assert "</html>" in result.stdout, result.stderr
    assert "<title>RAN" not in result.stdout
    assert not re.search("<(script|iframe|svg|object|embed|link|form|base)[ >]", result.stdout, re.I)
    assert not re.search(r"<[a-z]+[^>\"]* on[a-z]+=", result.stdout, re.I)
    assert "CONSOLE" not in result.stderr  # not even something that its policy had to refuse
