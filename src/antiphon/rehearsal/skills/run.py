"""`/run`: a command in a terminal, if the user allows it."""

from __future__ import annotations

import asyncio
import os
import shutil

from antiphon.agent import AgentTurn
from antiphon.errors import SpawnFailed
from antiphon.rehearsal.consent import allowed
from antiphon.rehearsal.skill import Unable, skill, slowness, speak

SCALE = (
    "n=1; for note in do re mi fa sol la si; do "
    r"printf '\033[1;3%dm%*s%s\033[0m\n' $n $((2 * n)) '' $note; n=$((n + 1)); sleep {pause}; done"
)
"""Seven notes, seven colours."""
SIZE = (100, 30)
_TESTS = {
    "Makefile": "make test",
    "pyproject.toml": "pytest -q",
    "package.json": "npm test",
    "Cargo.toml": "cargo test",
    "go.mod": "go test ./...",
}


@skill(
    "Run a command in a terminal, if you allow it",
    hint="a command, or tests, or nothing for a scale",
    about="a tool call of kind `execute` with a terminal in it. Its output streams, with "
    "colours. The exit code is part of the terminal. In v2 the call can be cancelled by itself.",
)
async def run(turn: AgentTurn, rest: str) -> None:
    command, title = rest, rest
    if not rest:
        command, title = SCALE.format(pause=f"{0.2 * slowness(turn.session):g}"), "Sing a scale"
    elif rest == "tests" and shutil.which(rest) is None:
        known = await asyncio.to_thread(_known_tests, turn.session.cwd)
        if not known:
            raise Unable("I found no tests that I know how to run. `/run COMMAND` runs any command.")
        command = title = known[0]
    async with turn.tool_call(
        title, kind="execute", name="run_command", raw_input={"command": command}
    ) as call:
        if not await allowed(turn, call, "execute", rejected="Not allowed, so not run."):
            return
        try:
            code = await call.run(
                ["sh", "-c", command], env={"TERM": "xterm-256color"}, size=SIZE, cancellable=True
            )
        except SpawnFailed as error:
            raise Unable("It could not be started. Does this session's folder still exist?") from error
    if code < 0:
        await speak(turn, f"It was ended by signal {-code}.")
    else:
        await speak(turn, f"It ended with code {code}.")


def _known_tests(folder: str) -> list[str]:
    return [how for file, how in _TESTS.items() if os.path.exists(os.path.join(folder, file))]


SKILLS = (run,)
