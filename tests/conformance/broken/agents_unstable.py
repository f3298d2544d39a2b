"""Agents that are broken in the unstable methods of sessions: fork, archive, status and title."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good import params as check
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import INTERNAL_ERROR, Json, Refused, Request
from tests.conformance.good.session import Session

defects = Defects()


class UnstableAgent(GoodAgent):
    """A good agent with the unstable methods of sessions."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.archived: set[str] = set()

    def capabilities(self) -> Json:
        offered = super().capabilities()
        marked = offered["session" if self.version == 2 else "sessionCapabilities"]
        marked |= {key: {} for key in ("fork", "archive", "status", "title")}
        return offered

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        return super().requests() | {
            "session/fork": self.fork,
            "session/archive": self.archive,
            "session/unarchive": self.unarchive,
            "session/status": self.status,
            "session/set_title": self.set_title,
        }

    def known_session(self, request: Request) -> Session:
        id = check.text(request.params, "sessionId")
        session = self.store.find(id)
        if session is None:
            raise self.unknown_session(id)
        return session

    def fork(self, request: Request) -> Json | None:
        source = self.known_session(request)
        fork = self.store.new(self.next_session_id(), source.cwd, [])
        fork.history = self.forked_history(source)
        self.opened[fork.id] = fork
        return {"sessionId": fork.id, **self.setup(fork)}

    def forked_history(self, source: Session) -> list[Json]:
        return deepcopy(source.history)

    def archive(self, request: Request) -> Json | None:
        session = self.known_session(request)
        self.opened.pop(session.id, None)
        self.archived.add(session.id)
        return {}

    def unarchive(self, request: Request) -> Json | None:
        self.archived.discard(self.known_session(request).id)
        return {}

    def list_sessions(self, request: Request) -> Json:
        choice = request.params.get("archived") or "exclude"
        check.require(choice in ("exclude", "include", "only"), "`archived` is a known filter")
        wanted = {"exclude": (False,), "include": (False, True), "only": (True,)}[choice]
        page = super().list_sessions(request)
        return page | {"sessions": [row for row in page["sessions"] if row["archived"] in wanted]}

    def listed(self, session: Session) -> Json:
        return super().listed(session) | {"archived": session.id in self.archived}

    def status(self, request: Request) -> Json | None:
        session = self.known_session(request)
        found = {"status": "open" if session.id in self.opened else "saved"}
        state = {"state": {"state": session.state, **self.background(session)}}
        return found | (state if self.version == 2 else {})

    def set_title(self, request: Request) -> Json | None:
        session = self.known_session(request)
        session.title = check.text(request.params, "title")
        return {"title": session.title}


@defects.add("SESS-52", versions=(1, 2))
class SharesItsHistory(UnstableAgent):
    """A fork and its source have one history."""

    def forked_history(self, source: Session) -> list[Json]:
        return source.history


@defects.add("SESS-53", versions=(1, 2))
class ShowsTheArchive(UnstableAgent):
    """An archived session is still in the list."""

    def list_sessions(self, request: Request) -> Json:
        request.params.setdefault("archived", "include")
        return super().list_sessions(request)


@defects.add("SESS-53", versions=(1, 2))
class ArchivesOnce(UnstableAgent):
    """A session that is archived cannot be archived again."""

    def archive(self, request: Request) -> Json | None:
        if request.params.get("sessionId") in self.archived:
            raise Refused(INTERNAL_ERROR, "the session is archived")
        return super().archive(request)


@defects.add("SESS-53", versions=(1, 2))
class EmptiesTheArchive(UnstableAgent):
    """An archived session loses its history."""

    def archive(self, request: Request) -> Json | None:
        super().archive(request)
        self.known_session(request).history.clear()
        return {}


@defects.add("SESS-54", versions=(1, 2))
class TakesAnyFilter(UnstableAgent):
    """An unknown filter of a list is ignored."""

    def list_sessions(self, request: Request) -> Json:
        if request.params.get("archived") not in ("include", "only"):
            request.params.pop("archived", None)
        return super().list_sessions(request)


@defects.add("SESS-55", versions=(1, 2))
class KnowsEverySession(UnstableAgent):
    """A session that does not exist has a status."""

    def status(self, request: Request) -> Json | None:
        if self.store.find(request.params.get("sessionId")) is None:
            return {"status": "saved"}
        return super().status(request)


@defects.add("SESS-57", versions=(1, 2))
class ReplacesTitles(UnstableAgent):
    """A turn replaces the title that the user gave."""

    def report_title(self, session: Session, text: str) -> None:
        session.title = None
        super().report_title(session, text)


@defects.add("SESS-57", versions=(1, 2))
class TakesAnyTitle(UnstableAgent):
    """A title may be a number."""

    def set_title(self, request: Request) -> Json | None:
        request.params["title"] = str(request.params.get("title"))
        return super().set_title(request)
