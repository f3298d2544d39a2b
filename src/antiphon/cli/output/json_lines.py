"""A turn as JSON: one event per line, updates as on the v2 wire, and the end of the turn last."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Self

import msgspec

from antiphon.cli.exit_codes import Exit
from antiphon.cli.output.descriptions import LONGEST_NOTE, REFUSED
from antiphon.cli.output.permissions import PermissionSubjects, print_question
from antiphon.cli.output.screen import FormView, PlainForm
from antiphon.cli.program import print_note
from antiphon.client import Client, ClientSession, Permission, SessionEvent, TurnEnd
from antiphon.text_safety import safe_json, safe_line


class JsonScreen:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._seq = 0
        self._over = False
        self._session: ClientSession | None = None
        self._subjects = PermissionSubjects()
        self._encode = msgspec.json.Encoder().encode

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def waiting(self, what: str) -> None:
        pass

    def begin(self, client: Client, session: ClientSession) -> None:
        info = client.info
        self._session = session
        self._write(
            kind="session",
            seq=0,
            turn=False,
            sessionId=session.id,
            cwd=session.cwd,
            protocolVersion=client.agreement.version,
            agent=None if info is None else {"name": info.name, "version": info.version},
        )

    def show(self, event: SessionEvent, *, mine: bool) -> None:
        self._seq = max(self._seq, event.seq)
        if event.update is not None:
            self._write(kind="update", seq=event.seq, turn=mine, update=event.update)
        elif event.question is not None:
            question = event.question
            fields: dict[str, Any] = {"id": question.question_id, "state": question.state}
            if question.state == "open":
                fields |= {"method": question.method, "params": question.params}
            elif bytes(question.result):
                fields["result"] = question.result
            self._write(kind="question", seq=event.seq, turn=mine, **fields)

    def note(self, text: str) -> None:
        print_note(safe_line(text, limit=LONGEST_NOTE))

    @contextmanager
    def asking(self, permission: Permission) -> Iterator[None]:
        print_question(permission, sys.stderr, self._subjects)
        yield

    @contextmanager
    def filling(self) -> Iterator[FormView]:
        yield PlainForm(sys.stderr)

    def end(self, end: TurnEnd, *, seconds: float, code: Exit) -> None:
        if end.refused:
            self.note(REFUSED)
        self._end(end.stop_reason, end.usage, end.error, end.cut, code)

    def failed(self, line: str, *, code: Exit) -> None:
        self._end("error", None, {"code": -32603, "message": safe_line(line, limit=1000)}, None, code)

    def _end(self, reason: str | None, usage: Any, error: Any, cut: str | None, code: Exit) -> None:
        if self._over:
            return
        self._over = True
        self._write(
            kind="end",
            seq=self._seq + 1,
            turn=True,
            stopReason=reason,
            usage=usage,
            error=error,
            cut=cut,
            forgotten=[] if self._session is None else [one.id for one in self._session.forgotten],
            exit=int(code),
        )

    def _write(self, **line: Any) -> None:
        encoded = self._encode(line)
        if not encoded.isascii():
            encoded = safe_json(encoded.decode()).encode()
        self._out.write(encoded + b"\n")
        self._out.flush()
