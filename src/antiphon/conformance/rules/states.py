"""Rules about the reports of a session: its state, background work, usage and compaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antiphon.conformance.recording import RecordedFrame, Recording
from antiphon.conformance.rules.rule import Facts, Finding, Rules
from antiphon.conformance.rules.sessions import new_sessions, steps
from antiphon.conformance.shapes import glimpse

rules = Rules()
FINAL = ("completed", "failed", "cancelled")
BACKGROUND = {"terminal": "terminalId", "tool_call": "toolCallId", "subagent": "sessionId"}


@rules.add("PROMPT-V2-10", versions=(2,))
def work_begins_before_it_ends(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """In a new session, an idle state with a stop reason follows a state in which there was work."""
    fresh, busy = new_sessions(recording), set()
    for step in steps(recording):
        state = step.update.get("state")
        if step.session not in fresh or step.kind != "state_update":
            continue
        if state == "idle" and isinstance(step.update.get("stopReason"), str):
            text = "expected a running state before the idle state that ends the work"
            yield Finding("PROMPT-V2-10", step.session in busy, text, (step.frame,))
        elif state != "idle":
            busy.add(step.session)


@rules.add("PROMPT-V2-16", versions=(2,))
def failures_are_explained(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The stop reason `error` should come with an error object."""
    for step in steps(recording):
        if step.kind == "state_update" and step.update.get("stopReason") == "error":
            ok = isinstance(step.update.get("error"), dict)
            yield Finding("PROMPT-V2-16", ok, "expected an `error` with its stop reason", (step.frame,))


@rules.add("PROMPT-V2-45", versions=(2,))
def background_is_always_reported(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Once an agent has reported `background`, every later state update of the session has it."""
    if not facts.has("background"):
        return
    reported: dict[Any, RecordedFrame] = {}
    for step in steps(recording):
        if step.kind != "state_update":
            continue
        has_it = isinstance(step.update.get("background"), list)
        first = reported.get(step.session)
        if first is not None:
            text = "expected `background` on every state update of the session once it was reported"
            yield Finding("PROMPT-V2-45", has_it, text, (first, step.frame))
        elif has_it:
            reported[step.session] = step.frame


@rules.add("PROMPT-V2-46", versions=(2,))
def background_work_is_announced(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Background work is announced before it is listed, and its end is reported before it is not listed."""
    if not facts.has("background"):
        return
    fresh = new_sessions(recording)
    known: dict[tuple[Any, str, str], bool] = {}
    """Whether the work of a session, by kind and id, has ended."""
    listed: dict[Any, set[tuple[str, str]]] = {}
    for step in steps(recording):
        if step.session not in fresh:
            continue
        update = step.update
        kind = step.kind.removesuffix("_update").removesuffix("_content_chunk")
        if kind in BACKGROUND:
            key = step.session, kind, glimpse(update.get(BACKGROUND[kind]))
            ended = update.get("status") in FINAL or isinstance(update.get("exitStatus"), dict)
            known[key] = known.get(key, False) or ended or kind == "subagent"
        if step.kind == "state_update" and isinstance(update.get("background"), list):
            now = set(_background(update["background"]))
            for kind, id in now:
                text = f"expected an update of the {kind} {id} before it is listed as background work"
                yield Finding("PROMPT-V2-46", (step.session, kind, id) in known, text, (step.frame,))
            for kind, id in listed.get(step.session, set()) - now:
                text = f"expected the end of the {kind} {id} before it is not listed any more"
                yield Finding("PROMPT-V2-46", known.get((step.session, kind, id), True), text, (step.frame,))
            listed[step.session] = now


@rules.add("USAGE-03")
def costs_add_up(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The cost of a session is cumulative: it does not go down."""
    last: dict[tuple[Any, str], tuple[float, RecordedFrame]] = {}
    for step in steps(recording):
        if not step.update:
            last = {key: value for key, value in last.items() if key[0] != step.session}
        cost = step.update.get("cost") if step.kind == "usage_update" else None
        amount = cost.get("amount") if isinstance(cost, dict) else None
        if isinstance(cost, dict) and isinstance(amount, (int, float)) and not isinstance(amount, bool):
            key = step.session, glimpse(cost.get("currency"))
            before, frame = last.get(key, (amount, step.frame))
            text = f"expected a cost of at least {before}, which was reported before, got {amount}"
            yield Finding("USAGE-03", amount >= before, text, (frame, step.frame))
            last[key] = amount, step.frame


@rules.add("USAGE-02")
def windows_have_a_size(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """An agent without a meaningful window size should not report usage."""
    for step in steps(recording):
        if step.kind == "usage_update":
            text = "expected no `usage_update` without a window size, got the size 0"
            yield Finding("USAGE-02", step.update.get("size") != 0, text, (step.frame,))


@rules.add("COMP-05")
def compactions_end_once(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A compaction ends once; a summary comes only with `completed`, an error only with `failed`."""
    status: dict[tuple[Any, str], tuple[Any, RecordedFrame]] = {}
    for step in steps(recording):
        if not step.update:
            status = {key: value for key, value in status.items() if key[0] != step.session}
        if not step.kind.startswith("compaction_"):
            continue
        key = step.session, glimpse(step.update.get("compactionId"))
        before, frame = status.get(key, ("", step.frame))
        now = step.update.get("status", "in_progress")
        ok = before not in FINAL or (now == before and step.kind == "compaction_update")
        text = f"expected nothing but {before} after the final status of the compaction"
        yield Finding("COMP-05", ok, text, (frame, step.frame))
        if step.kind == "compaction_update":
            for field, only in (("summary", "completed"), ("error", "failed")):
                text = f"expected `{field}` only with the status {only}, got it with {glimpse(now)}"
                fits = now == only or str(now).startswith("_")
                yield Finding("COMP-05", fits or not step.update.get(field), text, (step.frame,))
        status[key] = now, step.frame


def _background(items: list[Any]) -> Iterator[tuple[str, str]]:
    for item in items:
        kind = item.get("type") if isinstance(item, dict) else None
        if kind in BACKGROUND:
            yield str(kind), glimpse(item.get(BACKGROUND[str(kind)]))
