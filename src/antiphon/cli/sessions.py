"""`antiphon sessions list|show|status|cancel|rename|delete`."""

from __future__ import annotations

import sys
from json import dumps

import msgspec

from antiphon.cli.commands.options import HubPlace
from antiphon.cli.hub_client import UNTITLED, by_use, find_session, open_client, reporting
from antiphon.cli.output.table import write_table
from antiphon.engine import Message, MessageType, ToolCall
from antiphon.paths import short_path
from antiphon.schema import v2
from antiphon.schema.antiphon.hub import (
    SessionInfoMeta,
    TimelineItem,
    TimelineResponse,
)
from antiphon.schema.antiphon.readers import read_meta
from antiphon.text_safety import printed_text, safe_json, safe_line
from antiphon.transcripts import DELETED, annotation_lines, ending_text

SPEAKERS = {MessageType.USER: ">", MessageType.AGENT: "", MessageType.THOUGHT: "~"}


@reporting
async def run_list(*, json: bool, place: HubPlace) -> None:
    async with open_client(place, store=True) as client:
        found = by_use([info async for info in client.list_sessions()])
    if json:
        for info in found:
            sys.stdout.write(safe_json(msgspec.json.encode(info).decode()) + "\n")
    elif found:
        write_table(HEADERS, [_row(info) for info in found])
    if not found:
        print("There are no sessions yet: `antiphon attach new` creates one.", file=sys.stderr)


HEADERS = ("ID", "USED", "AGENT", "STATE", "CLIENTS", "TITLE", "FOLDER")


def _row(info: v2.SessionInfo) -> tuple[str, ...]:
    ours = read_meta(SessionInfoMeta, info.meta)
    title = safe_line(info.title or UNTITLED, limit=60)
    folder = short_path(safe_line(info.cwd, limit=4_096))
    used, agent = _when(info.updated_at), safe_line(ours.agent or "?", limit=64)
    return safe_line(info.session_id), used, agent, _state(ours), str(ours.clients or 0), title, folder


def _state(ours: SessionInfoMeta) -> str:
    return safe_line((ours.state or "stored") if ours.fault is None else ours.fault.kind).replace("_", " ")


def _when(time: str | None) -> str:
    return safe_line(time or "", limit=100)[:16].replace("T", " ")


@reporting
async def run_status(*, session: str, place: HubPlace) -> None:
    async with open_client(place, store=True) as client:
        info = await find_session(client, session)
        ours = read_meta(SessionInfoMeta, info.meta)
        clients, questions, queued = ours.clients or 0, 0, 0
        if ours.state is not None:  # it is open: to look at it starts nothing
            async with client.attach(info.session_id, cwd=info.cwd) as opened:
                questions, queued = len(opened.questions), len(opened.fold.prompts.queued)
    rows = [
        ("title", safe_line(info.title or UNTITLED, limit=200)),
        ("session", safe_line(info.session_id)),
        ("state", _state(ours)),
        ("agent", safe_line(ours.agent or "?", limit=64)),
        ("folder", short_path(safe_line(info.cwd, limit=4_096))),
        ("used", _when(info.updated_at)),
        ("clients", str(clients)),
        ("questions", str(questions)),
        ("queued", str(queued)),
    ]
    for name, value in rows:
        sys.stdout.write(f"{name:<10} {value}\n")


@reporting
async def run_cancel(*, session: str, place: HubPlace) -> None:
    async with open_client(place) as client:
        info = await find_session(client, session)
        title = safe_line(info.title or UNTITLED, limit=60)
        if read_meta(SessionInfoMeta, info.meta).state in (None, "idle"):
            print(f"{title} is not working: there is nothing to cancel.", file=sys.stderr)
            return
        async with client.attach(info.session_id, cwd=info.cwd) as opened:
            turn = opened.turn
            await opened.cancel()
            if turn is not None:
                end = await turn.drained()
                print(f"{title}: {ending_text(end.stop_reason or 'cancelled')}", file=sys.stderr)


@reporting
async def run_show(*, session: str, place: HubPlace) -> None:
    async with open_client(place, store=True) as client:
        info = await find_session(client, session)
        async with client.attach(info.session_id, cwd=info.cwd) as opened:
            shown: list[Message | ToolCall] = [*opened.messages, *opened.tool_calls]
            for each in sorted(shown, key=lambda each: each.position):
                text = _message_lines(each) if isinstance(each, Message) else _call_line(each)
                sys.stdout.write(f"{text}\n")
            timeline: TimelineResponse = await opened.call_antiphon("timeline")
            for item in timeline.items:
                if item.kind == "turn":
                    sys.stdout.write(_turn_line(item))


def _message_lines(message: Message) -> str:
    """Return the text of a message, or that it was deleted, and its reactions and notes."""
    said = [f"[{DELETED}]"] if message.deleted else printed_text(message.text).splitlines() or [""]
    speaker = f"{SPEAKERS[message.type]} " if SPEAKERS[message.type] else ""
    lines = [f"{speaker}{line}".rstrip() for line in said]
    return "".join(f"{line}\n" for line in [*lines, *(f"  {line}" for line in annotation_lines(message))])


def _call_line(call: ToolCall) -> str:
    return f"[{safe_line(str(call.status), limit=40)}] {safe_line(call.title or call.id)}\n"


def _turn_line(turn: TimelineItem) -> str:
    """Return a line about a turn: how it ended, and which request of which client it answers."""
    parts = ["turn"]
    if turn.prompt_request_id is not None:
        parts.append(f"of request {safe_line(dumps(turn.prompt_request_id), limit=80)}")
    if turn.by is not None:
        parts.append(f"by {safe_line(turn.by.name, limit=64)}")
    return f"[{safe_line(turn.status)}] {' '.join(parts)}: {safe_line(turn.title, limit=60)}\n"


@reporting
async def run_rename(*, session: str, title: str, place: HubPlace) -> None:
    async with open_client(place, store=True) as client:
        info = await find_session(client, session)
        sys.stdout.write(safe_line(await client.set_title(info.session_id, title)) + "\n")


@reporting
async def run_delete(*, session: str, place: HubPlace) -> None:
    async with open_client(place, store=True) as client:
        info = await find_session(client, session)
        await client.delete_session(info.session_id)
