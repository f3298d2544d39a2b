"""The page folds a session as the engine does: recorded journals and random ones, through both."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from antiphon.engine.events import Event, QuestionOpened, Translated, Updated
from antiphon.engine.items import Compaction, UnknownUpdate
from antiphon.engine.json_values import encode
from antiphon.engine.session import Session
from antiphon.engine.subagents import SessionNote, SubagentInfo
from antiphon.engine.tools import ToolCall
from antiphon.engine.transcript import Message
from antiphon.schema import v2
from tests.engine.journals import JOURNALS, decoded
from tests.web.nodes import NODE, needs_node

HERE = Path(__file__).parent
RECORDED = sorted((HERE.parent / "journals").glob("*/*.jsonl"))

pytestmark = needs_node


class Page:
    """The fold of the page, in a process of its own that lasts."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [NODE, str(HERE / "fold.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fold(self, told: list[dict[str, Any]]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        folded: dict[str, Any] = json.loads(self._process.stdout.readline())
        return folded

    def close(self) -> None:
        self._process.communicate(timeout=10)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    page = Page()
    yield page
    page.close()


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recorded_journal_is_the_same_on_the_page(path: Path, page: Page) -> None:
    events = decoded(path.read_bytes())
    assert _page(page, events) == _engine(events)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=JOURNALS)
def test_any_journal_is_the_same_on_the_page(events: list[Event], page: Page) -> None:
    assert _page(page, events) == _engine(events)


# --- the page's ---------------------------------------------------------------------------------------


def _page(page: Page, events: list[Event]) -> dict[str, Any]:
    asked: set[str] = set()
    folded = page.fold([told for event in events if (told := _told(event, asked)) is not None])
    folded["items"] = [_stripped(item | {"deleted": item.get("deleted") or None}) for item in folded["items"]]
    folded["terminals"] = [_stripped(terminal) for terminal in folded["terminals"]]
    folded["plans"] = [_stripped(plan) for plan in folded["plans"]]
    folded["info"] = _stripped(folded["info"])
    folded["usage"] = _stripped(folded["usage"] or {})
    del folded["ends"]
    return folded


def _told(event: Event, asked: set[str]) -> dict[str, Any] | None:
    """What reaches a client of it, which is not all that is in a journal. `asked`: the questions before it;
    each is asked once."""
    body = event.body
    if isinstance(body, Updated | Translated):
        return {"update": json.loads(bytes(body.raw))}
    if isinstance(body, QuestionOpened) and body.question_id not in asked:
        asked.add(body.question_id)
        subject = json.loads(bytes(body.params)).get("subject") or {}
        if "toolCall" in subject:
            return {"asked": subject["toolCall"]}
    return None


# --- the engine's -------------------------------------------------------------------------------------


def _engine(events: list[Event]) -> dict[str, Any]:
    session = Session().fold(events)
    latest = session.turns.latest
    rests = isinstance(latest, v2.SessionStateUpdate) and session.state == "idle"
    facts = session.facts
    return {
        "items": [_item(item) for item in session.items if isinstance(item, _ITEMS)],
        "terminals": [_terminal(terminal) for terminal in session.terminals],
        "plans": [_plan(_wire(plan.latest)["plan"]) for plan in session.plans],
        "commands": [] if facts.commands is None else _wire(facts.commands.latest)["availableCommands"],
        "options": [] if facts.config is None else _wire(facts.config.latest)["configOptions"],
        "info": {} if facts.info is None else _renamed(facts.info.materialize()),
        "usage": {} if facts.usage is None else _without(facts.usage.materialize(), "meta"),
        "state": str(session.state),
        "stopReason": latest.stop_reason if rests else None,
        "unknown": [_wire(item.update) for item in session.items if isinstance(item, UnknownUpdate)],
    }


_ITEMS = (Message, ToolCall, Compaction, SubagentInfo, SessionNote)


def _item(item: Any) -> dict[str, Any]:
    made = {"key": item.key, **_renamed(item.materialize())}
    if isinstance(item, Message):
        given = [
            [each.id, str(each.kind), each.value, each.by.client_id, each.at] for each in item.annotations
        ]
        made |= {"given": given, "deleted": item.deleted or None, "about": item.about}
    return _stripped(made)


def _renamed(update: Any) -> dict[str, Any]:
    """An update as the page names what is in it."""
    fields = _wire(update)
    for wire, here in {"kind": "toolKind", "summary": "blocks", "_meta": "meta"}.items():
        if wire in fields:
            fields[here] = fields.pop(wire)
    if "content" in fields and not isinstance(update, v2.SessionToolCallUpdate):
        fields["blocks"] = fields.pop("content")
    for name in ("sessionUpdate", "messageId", "toolCallId", "terminalId", "compactionId", "sessionId"):
        fields.pop(name, None)
    return _stripped(fields)


def _without(update: Any, *names: str) -> dict[str, Any]:
    return {key: value for key, value in _renamed(update).items() if key not in names}


def _terminal(terminal: Any) -> dict[str, Any]:
    fields = _without(terminal.materialize(), "output")
    shown = {"key": terminal.key, "output": terminal.text, "reported": terminal.output is not None}
    return _stripped({**fields, **shown})


def _plan(plan: dict[str, Any]) -> dict[str, Any]:
    return _stripped(plan)


def _wire(value: Any) -> Any:
    return json.loads(encode(value))


def _stripped(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what says nothing: a client need not tell null from nothing in what it shows."""
    return {key: value for key, value in fields.items() if value not in (None, [], {}, "")}
