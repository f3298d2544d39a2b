"""`antiphon sessions list|show|rename|delete` and `antiphon link`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from json import dumps
from urllib.parse import quote, urlsplit

import msgspec

from antiphon.cli.commands.options import HubPlace
from antiphon.cli.hub_client import find_hub, find_session, open_client, reporting
from antiphon.engine import Message, MessageType
from antiphon.hub import read_public_url
from antiphon.schema import v2
from antiphon.schema.antiphon.hub import (
    ClientRole,
    LinkRequest,
    LinkResponse,
    SessionInfoMeta,
    TimelineItem,
    TimelineResponse,
)
from antiphon.schema.antiphon.readers import read_meta
from antiphon.text_safety import printed_text, safe_json, safe_line
from antiphon.transcripts import DELETED, annotation_lines

SPEAKERS = {MessageType.USER: ">", MessageType.AGENT: "", MessageType.THOUGHT: "~"}


@reporting
async def run_list(*, json: bool, place: HubPlace) -> None:
    async with open_client(place, store=True) as client:
        found = [info async for info in client.list_sessions()]
    for info in found:
        if json:
            sys.stdout.write(safe_json(msgspec.json.encode(info).decode()) + "\n")
        else:
            when = safe_line(info.updated_at or "", limit=100)[:16].replace("T", " ")
            title = safe_line(info.title or "(no title)", limit=60)
            id, cwd = safe_line(info.session_id), safe_line(info.cwd, limit=4_096)
            sys.stdout.write(f"{id}  {when}  {_about(info)}  {title}  {cwd}\n")
    if not found:
        print("There are no sessions yet: `antiphon attach new` creates one.", file=sys.stderr)


def _about(info: v2.SessionInfo) -> str:
    """Return the agent of a session, its state and its clients."""
    ours = read_meta(SessionInfoMeta, info.meta)
    clients = ours.clients or 0
    state = safe_line((ours.state or "stored") if ours.fault is None else ours.fault.kind)
    return f"{safe_line(ours.agent or '?')}  {state}  {clients} client{'' if clients == 1 else 's'}"


@reporting
async def run_show(*, session: str, place: HubPlace) -> None:
    async with open_client(place, store=True) as client:
        info = await find_session(client, session)
        async with client.attach(info.session_id, cwd=info.cwd) as opened:
            for message in opened.messages:
                sys.stdout.write(_message_lines(message) + "\n")
            for call in opened.tool_calls:
                sys.stdout.write(
                    f"[{safe_line(str(call.status), limit=40)}] {safe_line(call.title or call.id)}\n"
                )
            timeline: TimelineResponse = await opened.call_antiphon("timeline")
            for item in timeline.items:
                if item.kind == "turn":
                    sys.stdout.write(_turn_line(item))


def _message_lines(message: Message) -> str:
    """Return the text of a message, or that it was deleted, and its reactions and notes."""
    said = [f"[{DELETED}]"] if message.deleted else printed_text(message.text).splitlines() or [""]
    lines = [f"{SPEAKERS[message.type]} {line}".strip() for line in said]
    return "".join(f"{line}\n" for line in [*lines, *(f"  {line}" for line in annotation_lines(message))])


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


@reporting
async def run_link(*, role: str, sessions: Sequence[str], place: HubPlace) -> None:
    asked = LinkRequest(role=ClientRole(role), sessions=list(sessions) or None)
    async with open_client(place) as client:
        found = find_hub(place)
        made: LinkResponse = await client.connection.call("_antiphon/link", asked)
    opened = f"&session={quote(sessions[0], safe='')}" if len(sessions) == 1 else ""
    page = _page("" if found is None else found[0])
    if made.url is not None:  # checked, because it is text from the hub
        page = f"{read_public_url(made.url)}/"
    print(f"{page}#login={made.code}{opened}")


def _page(address: str) -> str:
    """Return the address of the page for the WebSocket address of a hub."""
    parts = urlsplit(address)
    return f"http{'s' if parts.scheme == 'wss' else ''}://{parts.netloc}/"
