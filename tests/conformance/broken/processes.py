"""Agents that are broken in how they read stdin: they have to be processes.

`python -m tests.conformance.broken.processes` reads whatever arrives at once as one message.
"""

from __future__ import annotations

import os
import signal

from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import PARSE_ERROR
from tests.conformance.good.stdio import write_line


class StaysAtTheEnd(GoodAgent):
    """The agent does not exit when its input ends."""

    def end_of_input(self) -> None:
        super().end_of_input()
        signal.pause()


class AnswersBlankLines(GoodAgent):
    """A blank line gets an error."""

    def receive_line(self, line: bytes) -> None:
        if line.strip():
            super().receive_line(line)
        else:
            self.refuse_line(PARSE_ERROR, "the line is empty")


if __name__ == "__main__":
    agent = GoodAgent(write_line)
    while data := os.read(0, 64 * 1024):
        agent.receive_line(data)
