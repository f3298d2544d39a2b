"""Sessions as the good agent keeps them: the history, written as neither version writes it, and the work."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.good.peer import Json

DEFAULTS: Json = {"mode": "ask", "model": "small", "verbose": False}
KEPT = ("id", "cwd", "additional_directories", "title", "updated_at", "config", "history", "number")


@dataclass(slots=True, eq=False)
class Prompt:
    """What a client submitted: held until it is inserted."""

    session: Session
    request_id: Any
    content: list[Json]

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.content if block["type"] == "text")


@dataclass(slots=True, eq=False)
class Turn:
    """The foreground work of one prompt."""

    prompt: Prompt
    cancelled: bool = False
    failure: Exception | None = None
    questions: int = 0
    """How many questions to the user are open."""
    work: asyncio.Task[None] | None = None
    supervisor: asyncio.Task[None] | None = None

    @property
    def session(self) -> Session:
        return self.prompt.session


@dataclass(slots=True, eq=False)
class Session:
    id: str
    cwd: str
    number: int
    additional_directories: list[str] = field(default_factory=list)
    title: str | None = None
    updated_at: str = ""
    config: Json = field(default_factory=DEFAULTS.copy)
    history: list[Json] = field(default_factory=list)
    state: str = "idle"
    turn: Turn | None = None
    held: list[Prompt] = field(default_factory=list)
    background: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """Supervisors of tool calls that outlive their turn, by id."""
    watched: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """The work of these tool calls, by id."""
    servers: list[asyncio.Task[None]] = field(default_factory=list)
    """The connections to MCP servers."""

    def rest(self) -> None:
        """Forget the work that a lost connection ended."""
        self.turn, self.state = None, "idle"
        for live in (self.held, self.background, self.watched, self.servers):
            live.clear()
        for id in self.unfinished_calls():
            self.put_call(id, {"status": "failed"})

    def touch(self) -> None:
        self.updated_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def add_block(self, kind: str, id: str, block: Json) -> None:
        """Append a content block to a message, which begins with its first block."""
        for entry in reversed(self.history):
            if entry.get("message") == kind and entry["id"] == id:
                entry["content"].append(block)
                return
        self.history.append({"message": kind, "id": id, "content": [block]})

    def put_call(self, id: str, fields: Json) -> Json:
        """Change a tool call, which begins with its first change, and return it."""
        for entry in reversed(self.history):
            if "call" in entry and entry["id"] == id:
                break
        else:
            entry = {"call": {}, "id": id}
            self.history.append(entry)
        entry["call"] |= fields
        return dict(entry["call"])

    def put_plan(self, id: str, entries: list[Json]) -> None:
        for entry in self.history:
            if "plan" in entry and entry["id"] == id:
                entry["plan"] = entries
                return
        self.history.append({"plan": entries, "id": id})

    def unfinished_calls(self) -> list[str]:
        """Return the tool calls of the foreground without a final status."""
        return [
            entry["id"]
            for entry in self.history
            if "call" in entry
            and entry["call"]["status"] in ("pending", "in_progress")
            and entry["id"] not in self.background
        ]


class Store:
    """The sessions of a process; with a `path` also of the processes before it."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self.sessions: dict[str, Session] = {}
        if path is not None and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for kept in json.load(file):
                    session = self.sessions[kept["id"]] = Session(**kept)
                    session.rest()

    def new(self, id: str, cwd: str, additional_directories: list[str]) -> Session:
        number = max((session.number for session in self.sessions.values()), default=0) + 1
        session = self.sessions[id] = Session(id, cwd, number, additional_directories)
        session.touch()
        self.save()
        return session

    def find(self, id: object) -> Session | None:
        return self.sessions.get(id) if isinstance(id, str) else None

    def delete(self, id: str) -> None:
        self.sessions.pop(id, None)
        self.save()

    def page(self, cwd: str | None, below: int | None, size: int) -> tuple[list[Session], int | None]:
        """Return the newest sessions with a number `below`, and where the next page begins."""
        found = [
            session
            for session in sorted(self.sessions.values(), key=lambda session: -session.number)
            if (cwd is None or session.cwd == cwd) and (below is None or session.number < below)
        ]
        return found[:size], found[size - 1].number if len(found) > size else None

    def save(self) -> None:
        if self.path is None:
            return
        kept = [{key: getattr(session, key) for key in KEPT} for session in self.sessions.values()]
        with open(f"{self.path}.new", "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(f"{self.path}.new", self.path)
