"""The terminals of the good client: commands that it runs for a v1 agent."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from typing import Any


class Terminal:
    """One command. `limit` is the number of bytes of its output that are kept."""

    def __init__(self, params: dict[str, Any]) -> None:
        env = {each["name"]: each["value"] for each in params.get("env") or []}
        self.limit = params.get("outputByteLimit")
        self.data = b""
        self.truncated = False
        self.process = subprocess.Popen(
            [params["command"], *(params.get("args") or [])],
            cwd=params.get("cwd"),
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.ended = threading.Thread(target=self.collect, daemon=True)
        self.ended.start()

    def collect(self) -> None:
        while data := os.read(self.process.stdout.fileno(), 65536):
            self.data = self.keep(self.data + data)
        self.process.wait()

    def keep(self, data: bytes) -> bytes:
        """Drop bytes from the start, at a character boundary."""
        if self.limit is None or len(data) <= self.limit:
            return data
        self.truncated = True
        data = data[len(data) - self.limit :]
        while data and data[0] & 0xC0 == 0x80:
            data = data[1:]
        return data

    def exit_status(self) -> dict[str, Any]:
        code = self.process.returncode
        return {"exitCode": code, "signal": None} if code >= 0 else {"exitCode": None, "signal": str(-code)}


class Terminals:
    """`answer` sends the result of a request."""

    terminal_class = Terminal

    def __init__(self, answer: Callable[[Any, Any], None]) -> None:
        self.answer = answer
        self.all: dict[str, Terminal] = {}
        self.made = 0

    def receive(self, id: Any, method: str, params: dict[str, Any]) -> None:
        """Perform a request. Raises `KeyError` for an unknown terminal."""
        verb = method.removeprefix("terminal/")
        if verb == "create":
            self.made += 1
            name = f"terminal-{self.made}"
            self.all[name] = self.terminal_class(params)
            self.answer(id, {"terminalId": name})
            return
        name = params["terminalId"]
        terminal = self.all[name]
        if verb == "output":
            self.answer(id, self.output(terminal))
        elif verb == "wait_for_exit":
            threading.Thread(target=self.wait, args=(id, terminal), daemon=True).start()
        elif verb == "kill":
            self.kill(terminal)
            self.answer(id, {})
        elif verb == "release":
            self.kill(terminal)
            self.forget(name)
            self.answer(id, {})

    def output(self, terminal: Terminal) -> dict[str, Any]:
        result: dict[str, Any] = {
            "output": terminal.data.decode("utf-8", "replace"),
            "truncated": terminal.truncated,
        }
        if not terminal.ended.is_alive():
            result["exitStatus"] = terminal.exit_status()
        return result

    def wait(self, id: Any, terminal: Terminal) -> None:
        terminal.ended.join()
        self.answer(id, terminal.exit_status())

    def kill(self, terminal: Terminal) -> None:
        terminal.process.kill()
        terminal.ended.join()

    def forget(self, name: str) -> None:
        del self.all[name]

    def close(self) -> None:
        for terminal in self.all.values():
            self.kill(terminal)
