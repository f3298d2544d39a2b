"""Earlier prompts, stored in a private file."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from antiphon.private_files import NotPrivate, open_private

KEPT = 500
LONGEST = 20_000
"""Characters of a prompt; a longer one was pasted, and is not stored."""


class History:
    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._prompts = [] if path is None else _read(path)
        self._at = len(self._prompts)
        self._draft = ""

    def add(self, prompt: str) -> None:
        if (not self._prompts or self._prompts[-1] != prompt) and len(prompt) <= LONGEST:
            self._prompts.append(prompt)
            self._keep(prompt)
        self._at = len(self._prompts)
        self._draft = ""

    def keep(self, text: str) -> bool:
        """Store a text that was not sent, however long, as the latest prompt. Return whether it is stored."""
        self._prompts.append(text)
        self._at = len(self._prompts)
        return self._keep(text)

    def previous(self, draft: str) -> str | None:
        """Return the prompt before. The first call stores the draft."""
        if self._at == 0:
            return None
        if self._at == len(self._prompts):
            self._draft = draft
        self._at -= 1
        return self._prompts[self._at]

    def next(self) -> str | None:
        if self._at >= len(self._prompts):
            return None
        self._at += 1
        return self._draft if self._at == len(self._prompts) else self._prompts[self._at]

    def _keep(self, prompt: str) -> bool:
        if self._path is None:
            return False
        line = json.dumps(prompt) + "\n"
        with contextlib.suppress(OSError, NotPrivate):  # without a writable folder there is no history
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(open_private(self._path, flags), "w", encoding="utf-8") as file:
                file.write(line)
            if self._path.stat().st_size > 4 * KEPT * 1000:
                kept = "".join(json.dumps(each) + "\n" for each in self._prompts[-KEPT:])
                new = self._path.with_suffix(".new")
                new.touch(mode=0o600)
                new.write_text(kept, encoding="utf-8")
                new.replace(self._path)
            return True
        return False


def _read(path: Path) -> list[str]:
    prompts: list[str] = []
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                prompt = json.loads(line)
                if isinstance(prompt, str):
                    prompts.append(prompt)
    return prompts[-KEPT:]
