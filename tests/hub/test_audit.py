"""The audit log names the token that was used, and no token can fill the log or hide behind it."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from antiphon.hub.access.audit import BUSY, CLIP, COUNT_SECONDS, EACH, REFUSED, Audit, AuditBudget
from antiphon.hub.access.limits import REMEMBERED, HubLimits
from tests.hub.doors import DEADLINE, doors, refused

ANN = {"_meta": {"antiphon": {"clientId": "ann"}}, "info": {"name": "ann", "version": "1"}}


def lines_of(path: Path) -> list[dict[str, Any]]:
    files = [path, *path.parent.glob(f"{path.name}.*")]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def counted(lines: list[dict[str, Any]], **wanted: Any) -> Counter[str]:
    """What the lines say, listed or counted."""
    found: Counter[str] = Counter()
    for line in lines:
        if wanted.items() <= line.items():
            if line["act"] == "unlisted":
                found.update(line["counts"])
            else:
                found[f"{line['act']} {line['outcome'].partition(':')[0]}"] += 1
    return found


# --- whose token ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["response", "_antiphon/answer", "not attached"])
async def test_an_answer_is_noted_with_the_token_that_was_used_whoever_the_client_claims_to_be(
    tmp_path: Path, way: str
) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path) as door,
        door.talk(door.token("ann", "controller"), **ANN) as ann,
        door.talk(door.token("mallory", "controller"), **ANN) as mallory,
    ):
        session = (await ann.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        if way != "not attached":
            await mallory.call("r", "session/resume", sessionId=session, cwd="/", mcpServers=[])
        ann.prompt("p", session, "ask")
        asked = await ann.request("session/request_permission")
        question = asked["params"]["_meta"]["antiphon"]["questionId"]
        option = asked["params"]["options"][0]["optionId"]
        outcome = {"outcome": {"outcome": "selected", "optionId": option}}
        if way == "response":
            theirs = await mallory.request("session/request_permission")
            mallory.send(id=theirs["id"], result=outcome)
        else:
            await mallory.call("a", "_antiphon/answer", sessionId=session, questionId=question, **outcome)
        line = await door.audited(act="answer", outcome="allowed", question=question)
        assert (line["token"], line["client"]) == ("mallory", "ann")
        lines = door.audit(client="ann", question=question)
        assert {line["token"] for line in lines} == {"mallory"}


# --- how many lines ------------------------------------------------------------------------------------


async def test_forbidden_requests_of_a_client_do_not_rotate_the_log_away(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        async with door.talk(door.token("eye", "observer")) as eye:
            for number in range(600):
                eye.send(id=number, method="session/delete", params={"sessionId": f"{number}" * 50})
            await eye.answer_to(599)
        await owner.call("close", "session/close", sessionId=session)
        assert door.audit(act="close", token="owner")
        assert len(door.audit(token="eye", act="delete")) <= REFUSED.burst + 10
    assert counted(door.audit(token="eye"))["delete forbidden"] == 600


async def test_allowed_notifications_and_limits_have_budgets_too(tmp_path: Path) -> None:
    limits = HubLimits(prompts_per_minute=1)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=limits) as door:
        async with door.talk(door.token("bob", "controller")) as bob:
            session = (await bob.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            for _ in range(1000):
                bob.send(method="session/cancel", params={"sessionId": session})
            for number in range(300):
                bob.prompt(number, session, "hello")
            await bob.answer_to(299)
        # A token that has no room left for what it repeats cannot hide what it does once.
        async with door.talk() as owner:
            await owner.call("d", "session/delete", sessionId=session)
    lines = door.audit(token="bob")
    assert len(lines) < BUSY.burst + REFUSED.burst + 50
    assert counted(lines)["cancel allowed"] == 1000
    assert counted(lines)["prompt limit"] == 299
    assert door.audit(act="delete", token="owner")


async def test_a_token_is_told_of_its_limits_whatever_the_audit_has_room_for(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path) as door,
        door.talk(door.token("eye", "observer")) as eye,
    ):
        for number in range(REFUSED.burst + 5):
            error = await refused(eye, number, "session/delete", sessionId="x")
            assert error is not None
            assert error["code"] == -32003


async def test_refusals_of_a_token_do_not_swallow_the_count_of_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.hub.access.admission.STRANGERS_PER_MINUTE", 1)
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        token = {"Authorization": f"Bearer {door.token('eye', 'observer')}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{door.hub.port}") as http:
            for _ in range(REFUSED.burst):
                assert (await http.get("/metrics", headers=token)).status_code == 403
            for _ in range(4):
                assert (await http.get("/metrics")).status_code == 401
            assert (await http.get("/metrics", headers=token)).status_code == 403  # counted, not listed
            owner = {"Authorization": f"Bearer {door.hub.token}"}
            assert (await http.get("/nowhere", headers=owner)).status_code == 404
        assert door.audit(status=404)[-1]["unlisted"] == 3
    assert counted(door.audit(token="eye"))["connect refused"] == REFUSED.burst + 1


def test_a_flood_leaves_the_lines_of_others_and_counts_the_rest(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl", size=64 * 1024)
    audit.note("delete", "allowed", token="ann", session="s")
    for number in range(10_000):
        audit.note("read", "forbidden", token="mallory", session=f"{number}", method="session/status")
        audit.note("cancel", "allowed", token="mallory", session="s")
        audit.note("answer", "unattended: reject_once", session="s")
        audit.note("call", "limit: frame", token="mallory")
    audit.note("delete", "allowed", token="mallory", session="s")
    audit.note("delete", "allowed", token="bob", session="s")
    audit.close()
    lines = lines_of(tmp_path / "audit.jsonl")
    assert {line["token"] for line in lines if line["act"] == "delete"} == {"ann", "mallory", "bob"}
    assert counted(lines, token="mallory") == {
        "read forbidden": 10_000,
        "call limit": 10_000,
        "cancel allowed": 10_000,
        "delete allowed": 1,
    }
    assert counted(lines, session="s")["answer unattended"] == 10_000
    assert len(list(tmp_path.iterdir())) < 4


def test_a_budget_refills_slowly_and_counts_are_told_once_a_minute() -> None:
    now = 0.0
    budget = AuditBudget(clock=lambda: now)

    def take(act: str = "read", outcome: str = "forbidden", token: str | None = "a") -> bool:
        return budget.take(act, outcome, token=token, session=None)

    assert [take() for _ in range(REFUSED.burst + 2)] == [True] * REFUSED.burst + [False] * 2
    assert take(token="b")
    assert take("delete", "allowed")
    assert take(token=None)
    assert budget.due() == []
    now = COUNT_SECONDS
    assert budget.due() == [({"token": "a"}, {"read forbidden": 2})]
    assert budget.due(all=True) == []
    assert sum(take() for _ in range(100)) == REFUSED.per_minute


def test_budgets_of_tokens_that_are_at_rest_are_forgotten() -> None:
    now = 0.0
    budget = AuditBudget(clock=lambda: now)
    for number in range(2 * REMEMBERED):
        now += 60 * EACH.burst / EACH.per_minute
        budget.take("connect", "allowed", token=f"browser-{number}", session=None)
    assert len(budget._rates[EACH]._left) <= REMEMBERED


def test_values_are_bounded_and_show_as_what_they_are(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    odd = 'a\n{"act":"delete"}\x1b[2J\u202e\ud800\x00é'
    audit.note(
        "connect", f"refused{odd}", token=odd, session="s" * 10_000, path=odd, status=401, peer=b"\xff"
    )
    audit.close()
    (line,) = (tmp_path / "audit.jsonl").read_bytes().splitlines()
    told = json.loads(line)
    assert len(told["session"]) == CLIP
    assert told["path"] == 'a\ufffd{"act":"delete"}\ufffd[2J\ufffd\ufffd\ufffdé'
    assert all(value.isprintable() for value in told.values() if isinstance(value, str))
    assert told["status"] == 401


# --- a disk that is full ---------------------------------------------------------------------------------


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process grows beyond a size: a longer write is cut, and the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_line_that_does_not_fit_on_the_disk_is_dropped_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.jsonl"
    audit = Audit(path)
    audit.note("new", "done", session="first")
    with largest_file(path.stat().st_size + 20):
        audit.note("new", "done", session="too long")
    audit.note("new", "done", session="last")
    audit.close()
    assert [line["session"] for line in lines_of(path)] == ["first", "last"]
    assert [record.getMessage() for record in caplog.records] == ["audit log not written: File too large"]


def test_a_write_that_is_cut_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "audit.jsonl", os.write
    audit = Audit(path)
    with monkeypatch.context() as cut:
        cut.setattr("antiphon.hub.access.audit.os.write", lambda fd, data: write(fd, data[:20]))
        audit.note("new", "done", session="s")
    audit.close()
    assert [line["session"] for line in lines_of(path)] == ["s"]
