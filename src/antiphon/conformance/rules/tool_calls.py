"""Rules about tool calls, terminals and diffs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from antiphon.conformance.recording import RecordedFrame, Recording, Role
from antiphon.conformance.rules.exchanges import exchanges_of
from antiphon.conformance.rules.rule import Facts, Finding, Rules
from antiphon.conformance.rules.sessions import new_sessions, steps
from antiphon.conformance.rules.values import at
from antiphon.conformance.shapes import glimpse

rules = Rules()
FINAL = ("completed", "failed", "cancelled")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
_PATH_LINES = ("--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ")

Key = tuple[Any, Any]


@rules.add("TOOL-V1-06", versions=(1,))
def ids_name_one_tool_call(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A v1 agent does not create a tool call with the id of one that has ended."""
    status: dict[Key, tuple[Any, RecordedFrame]] = {}
    for step in steps(recording):
        if not step.update:
            status = _without(status, step.session)
        elif step.kind in ("tool_call", "tool_call_update"):
            key = step.session, glimpse(step.update.get("toolCallId"))
            if step.kind == "tool_call":
                reached, frame = status.get(key, ("", step.frame))
                text = f"expected a new tool call id, got that of one that is {reached}"
                yield Finding("TOOL-V1-06", reached not in FINAL, text, (frame, step.frame))
            if step.kind == "tool_call" or step.update.get("status") is not None:
                status[key] = step.update.get("status", "pending"), step.frame


@rules.add("TOOL-V1-06", "TOOL-V2-08", versions=(2,))
def final_statuses_are_final(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A v2 tool call that is completed, failed or cancelled stays so, and its id is not used again."""
    status: dict[Key, tuple[Any, RecordedFrame]] = {}
    for step in steps(recording):
        if not step.update:
            status = _without(status, step.session)
        elif step.kind == "tool_call_update" and "status" in step.update:
            key, now = (step.session, glimpse(step.update.get("toolCallId"))), step.update["status"]
            before, frame = status.get(key, ("", step.frame))
            ok = before not in FINAL or now == before
            text = f"expected the final status {before}, got {glimpse(now)} after it"
            id = "TOOL-V1-06" if "title" in step.update and before else "TOOL-V2-08"
            yield Finding(id, ok, text, (frame, step.frame))
            status[key] = now, step.frame


@rules.add("TOOL-V2-04", versions=(2,))
def first_reports_have_a_title(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The first report of a v2 tool call should have a title."""
    known: set[Key] = set()
    fresh = new_sessions(recording)
    for step in steps(recording):
        if step.session in fresh and step.kind.startswith("tool_call"):
            key = step.session, glimpse(step.update.get("toolCallId"))
            if key not in known:
                known.add(key)
                ok = isinstance(step.update.get("title"), str)
                yield Finding("TOOL-V2-04", ok, "expected a `title` in the first report", (step.frame,))


@rules.add("TOOL-V2-11", "TERMV2-12", versions=(2,))
def ended_work_cannot_be_cancelled(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The capability to cancel a tool call or a terminal should end with it."""
    offered: dict[Key, bool] = {}
    for step in steps(recording):
        update = step.update
        if step.kind == "tool_call_update":
            key, id, what = (step.session, glimpse(update.get("toolCallId"))), "TOOL-V2-11", "the tool call"
            ended = update.get("status") in FINAL
        elif step.kind == "terminal_update":
            key, id, what = (step.session, glimpse(update.get("terminalId"))), "TERMV2-12", "the terminal"
            ended = isinstance(update.get("exitStatus"), dict)
        else:
            continue
        if "capabilities" in update:
            offered[key] = at(update, "capabilities", "cancel") is not None
        if ended:
            text = f"expected no capability `cancel` once {what} has ended"
            yield Finding(id, not offered.get(key, False), text, (step.frame,))


@rules.add("TERMV2-08", versions=(2,))
def terminals_name_their_command(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The first update of a v2 terminal should have its command."""
    known: set[Key] = set()
    fresh = new_sessions(recording)
    for step in steps(recording):
        key = step.session, glimpse(step.update.get("terminalId"))
        if step.session in fresh and step.kind == "terminal_update" and key not in known:
            known.add(key)
            ok = isinstance(step.update.get("command"), str)
            yield Finding("TERMV2-08", ok, "expected a `command` in the first update", (step.frame,))


@rules.add("TOOL-V1-05", versions=(1,))
def shown_terminals_exist(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A v1 tool call shows a terminal of the client, before it is released."""
    if facts.client_capabilities.get("_meta"):
        return  # an extension may give terminals another meaning
    made = {
        glimpse(answer.get("result", "terminalId")): answer.index
        for _, answer in exchanges_of(recording, Role.AGENT).answered("terminal/create")
    }
    released = {
        glimpse(frame.get("params", "terminalId")): frame.index
        for frame in recording.of(Role.AGENT)
        if frame.method == "terminal/release"
    }
    seen: set[str] = set()
    for step in steps(recording):
        for item in _items(step.update):
            if item.get("type") != "terminal":
                continue
            id = glimpse(item.get("terminalId"))
            at = step.frame.index
            ok = made.get(id, at) < at and (id in seen or released.get(id, at) >= at)
            seen.add(id)
            text = f"expected a terminal of the client that is not released, got {id}"
            yield Finding("TOOL-V1-05", ok, text, (step.frame,))


@rules.add("DIFF-05", versions=(2,))
def patches_have_absolute_paths(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Paths in a `git_patch` are absolute, without `a/` and `b/`."""
    for step in steps(recording):
        for item in _items(step.update):
            patch = item.get("patch")
            if not isinstance(patch, dict) or patch.get("format") != "git_patch":
                continue
            text = patch.get("text")
            wrong = _relative_path(text) if isinstance(text, str) else None
            expected = f"expected absolute paths in the patch, got {glimpse(wrong)}"
            yield Finding("DIFF-05", wrong is None, expected, (step.frame,))


@rules.add("TOOL-V2-12", "TERMV2-10", versions=(2,), parties=(Role.CLIENT,))
def only_offered_work_is_cancelled(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A client cancels a tool call or a terminal only while the agent offers it."""
    offered: dict[Key, bool] = {}
    names = {"tool_call/cancel": ("TOOL-V2-12", "toolCallId"), "terminal/cancel": ("TERMV2-10", "terminalId")}
    for frame in recording.frames:
        update = frame.update
        for kind, key in (("tool_call_update", "toolCallId"), ("terminal_update", "terminalId")):
            if frame.update_kind == kind and "capabilities" in update:
                offered[key, glimpse(update.get(key))] = at(update, "capabilities", "cancel") is not None
        if frame.sender is Role.CLIENT and frame.method in names:
            id, key = names[frame.method]
            ok = offered.get((key, glimpse(frame.get("params", key))), False)
            text = f"expected no `{frame.method}`: the agent does not offer it now"
            yield Finding(id, ok, text, (frame,))


def _items(update: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the content items of a tool call update."""
    content = update.get("content") if str(update.get("sessionUpdate")).startswith("tool_call") else None
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, dict):
            yield item


def _relative_path(patch: str) -> str | None:
    """Return the first path of a patch's headers that is not absolute."""
    in_header = False
    for line in patch.splitlines():
        if line.startswith("diff --git "):
            in_header = True
            paths = line.removeprefix("diff --git ")
            if not _ABSOLUTE.match(paths.lstrip('"')):
                return paths
        elif line.startswith("@@"):
            in_header = False
        elif in_header and line.startswith(_PATH_LINES):
            path = next(line.removeprefix(start) for start in _PATH_LINES if line.startswith(start))
            if not _ABSOLUTE.match(path.lstrip('"')):
                return path
    return None


def _without(known: dict[Key, Any], session: Any) -> dict[Key, Any]:
    return {key: value for key, value in known.items() if key[0] != session}
