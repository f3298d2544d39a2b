"""`antiphon sessions search`: find words in the contents of all sessions."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime

import click
import msgspec

from antiphon.cli.commands.options import HubPlace
from antiphon.cli.exit_codes import Exit, Failure
from antiphon.cli.hub_client import open_client, reporting
from antiphon.cli.output.table import write_table
from antiphon.cli.program import command_line, print_note
from antiphon.schema.antiphon.hub import SearchMatch, SearchRole
from antiphon.text_safety import safe_json, safe_line

WHO = {
    SearchRole.USER: "user",
    SearchRole.AGENT: "agent",
    SearchRole.THOUGHT: "thought",
    SearchRole.TOOL: "tool call",
    SearchRole.TITLE: "title",
}
HEADER = ("ID", "WHEN", "WHO", "SESSION")


@reporting
async def run_search(*, words: Sequence[str], json: bool, limit: int, place: HubPlace) -> Exit:
    query = " ".join(words)
    async with open_client(place, store=True) as client:
        if client.abilities.ours.search_sessions is None:
            raise Failure("this hub does not search sessions: its store cannot, or it is of an older version")
        found = await client.search_sessions(query, limit=limit)
    if json:
        for match in found.matches:
            sys.stdout.write(safe_json(msgspec.json.encode(match).decode()) + "\n")
    elif found.matches:
        write_table(
            HEADER, [_row(match) for match in found.matches], [[_text(match)] for match in found.matches]
        )
    if found.incomplete:
        print_note("not everything was searched in time: search again in a moment")
    if not found.matches:
        print(f"Nothing found for {safe_line(query, limit=100)}.", file=sys.stderr)
        return Exit.DONE
    if not json:
        sys.stdout.flush()
        if found.next_cursor is not None:
            print(f"There is more: --limit {min(100, limit * 2)} shows more.", file=sys.stderr)
        session = shlex.quote(safe_line(found.matches[0].session_id))
        print(f"Open a session: {command_line('attach', place.data)} {session}", file=sys.stderr)
    return Exit.DONE


def _row(match: SearchMatch) -> tuple[str, str, str, str]:
    when = (
        datetime.fromtimestamp(match.at / 1000).astimezone().strftime("%Y-%m-%d %H:%M") if match.at else "-"
    )
    title = safe_line(match.title or "Untitled", limit=60)
    return safe_line(match.session_id), when, WHO[match.role], title


def _text(match: SearchMatch) -> str:
    """Return the snippet, its hits in bold on a terminal."""
    emphasised = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    parts: list[str] = []
    at = 0
    for start, stop in match.ranges:
        hit = safe_line(match.snippet[start:stop])
        parts += [_spaced(match.snippet[at:start]), click.style(hit, bold=True) if emphasised else hit]
        at = stop
    return "".join([*parts, _spaced(match.snippet[at:])]).strip()


def _spaced(text: str) -> str:
    """Return a text that is safe to show, with its spaces at both ends."""
    line = safe_line(text)
    before, after = " " * text[:1].isspace(), " " * text[-1:].isspace()
    return f"{before}{line}{after}" if line else before
