"""Scenarios about the file system of v1 clients that advertise it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from msgspec import UNSET

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import SESSION, PlayedAgent
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("files")

LINES = ("one\n", "two\n", "three\n", "four\n")
RESOURCE_NOT_FOUND = -32002


@scenarios.add("FS-02", "FS-04", versions=(1,))
async def read_text_file(case: ClientCase) -> None:
    """A client reads a file, or some of its lines."""
    agent = await case.open()
    _require_offer(case, agent, "readTextFile")
    prompt = await agent.prompt()
    with _folder(agent) as folder:
        await _reads(case, agent, Path(folder))
    await agent.complete(prompt)


async def _reads(case: ClientCase, agent: PlayedAgent, folder: Path) -> None:
    path = folder / "judge.txt"
    path.write_text("".join(LINES), encoding="utf-8")
    for first, limit in ((None, None), (2, 2), (3, None), (None, 1)):
        wanted = {key: value for key, value in (("line", first), ("limit", limit)) if value is not None}
        request, answer = await _call(agent, "fs/read_text_file", path=str(path), **wanted)
        case.decide.need(answer.error is UNSET, f"the client refused to read a file: {answer.error_code}")
        start = (first or 1) - 1
        expected = "".join(LINES[start : None if limit is None else start + limit])
        content = answer.get("result", "content")
        # The lines are what counts: the last one may come without its newline.
        case.decide.check(
            "FS-02", isinstance(content, str) and content.removesuffix("\n") == expected.removesuffix("\n"),
            f"expected the content {expected!r} for {wanted or 'the whole file'}, got {content!r}",
            request, answer,
        )  # fmt: skip
    request, answer = await _call(agent, "fs/read_text_file", path=str(path.with_name("judge-missing.txt")))
    case.decide.check(
        "FS-04", answer.error_code == RESOURCE_NOT_FOUND,
        f"expected the error {RESOURCE_NOT_FOUND} for a file that does not exist, got {answer.error_code}",
        request, answer,
    )  # fmt: skip


@scenarios.add("FS-03", versions=(1,))
async def write_text_file(case: ClientCase) -> None:
    """A client writes a file that does not exist yet."""
    agent = await case.open()
    _require_offer(case, agent, "writeTextFile")
    prompt = await agent.prompt()
    with _folder(agent) as folder:
        path = Path(folder) / "judge-new.txt"
        request, answer = await _call(agent, "fs/write_text_file", path=str(path), content="".join(LINES))
        written = path.read_text(encoding="utf-8") if path.exists() else None
    case.decide.need(answer.error is UNSET, f"the client refused to write a file: {answer.error_code}")
    case.decide.check(
        "FS-03", written == "".join(LINES) and (answer.result is None or isinstance(answer.result, dict)),
        f"expected the client to create the file with the given content, found {written!r}", request, answer,
    )  # fmt: skip
    await agent.complete(prompt)


def _require_offer(case: ClientCase, agent: PlayedAgent, marker: str) -> None:
    """End the scenario unless the client advertises a part of the file system."""
    offered = agent.client_capabilities.get("fs")
    ok = isinstance(offered, dict) and offered.get(marker) is True
    case.decide.applies(ok, f"the client does not advertise `fs.{marker}`")


def _folder(agent: PlayedAgent) -> tempfile.TemporaryDirectory[str]:
    """Make a folder in that of the session: a client may refuse files outside of it."""
    new = next(frame for frame in agent.link.recording.frames if frame.method == "session/new")
    cwd = new.get("params", "cwd")
    try:
        return tempfile.TemporaryDirectory(prefix=".antiphon-judge-", dir=cwd)
    except (OSError, TypeError) as error:
        raise NotSeen(f"the judge cannot write in the folder of the session: {error}") from None


async def _call(agent: PlayedAgent, method: str, **params: Any) -> tuple[RecordedFrame, RecordedFrame]:
    request = agent.link.request(method, {"sessionId": SESSION, **params})
    return request, await agent.link.response(request)
