"""The pure functions of the page, called from here; node runs them, in a process that lasts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.web.nodes import NODE

CALLING = Path(__file__).with_name("calling.mjs")


class Modules:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [NODE, str(CALLING)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def of(self, module: str, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps({"module": module, "name": name, "args": args}) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
            assert "error" not in answer, answer
            return answer["result"]

        return call

    def close(self) -> None:
        self._process.communicate(timeout=10)
