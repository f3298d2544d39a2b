"""Installs what running Antiphon from this checkout needs, and nothing else.

`python tools/run_environment.py VENV` needs the standard library only. Antiphon itself is not built: a path
file leads to `src`, and the command is a short script. `make setup` replaces both by a regular installation,
with all extras and the test tools.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("speed", "tui")
"""The extras for `serve`, the page and `chat`."""
PATH_FILE = "antiphon_checkout.pth"
_NAME = re.compile(r"[\w.-]+")
_SHOWN = re.compile(r"Collecting (\S+)|Installing collected packages|ERROR|error", re.IGNORECASE)


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(each for extra in EXTRAS for each in extras[extra])]


def installer(python: Path) -> list[str]:
    """Return the command that installs into the environment: uv where it is there, otherwise this Python's
    pip, otherwise one of the environment's own."""
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", str(python)]
    options = ["install", "--disable-pip-version-check", "--no-compile", "--progress-bar", "off"]
    has_pip = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if has_pip.returncode == 0 and _pip_version(has_pip.stdout.decode()) >= (22, 3):
        return [sys.executable, "-m", "pip", "--python", str(python), *options]
    subprocess.run([python, "-m", "ensurepip", "--default-pip"], check=True, stdout=subprocess.DEVNULL)
    return [str(python), "-m", "pip", *options]


def _pip_version(told: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", told)[:2])


def install(command: Sequence[str]) -> int:
    """Run the installer, and print a line for what is worth one."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        shown = _SHOWN.match(line)
        if shown is not None:
            name = _NAME.match(shown[1] or "")
            print(f"  {name[0] if name else line.strip()[:100]}", flush=True)
    code = process.wait()
    if code:
        sys.stderr.writelines(said)
    return code


def main(folder: Path) -> int:
    began = time.monotonic()
    print(f"Installing what running needs into {folder} (only this time) …", flush=True)
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=False, symlinks=True)
    code = install([*installer(python), *requirements()])
    if code:
        return code
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        check=True,
        text=True,
    )
    (Path(packages.stdout.strip()) / PATH_FILE).write_text(f"{ROOT / 'src'}\n", encoding="utf-8")
    script = folder / "bin" / "antiphon"
    script.write_text(f"#!{python.absolute()}\nfrom antiphon.cli import main\nmain()\n", encoding="utf-8")
    script.chmod(0o755)
    print(f"Done in {time.monotonic() - began:.0f} s.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
