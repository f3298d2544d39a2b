"""Agents that break rules of v2 about resuming, replay and message ids."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.broken.defect import Defects
from tests.conformance.good import params as check
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import Json, Request
from tests.conformance.good.session import Session

defects = Defects()


@defects.add("SESS-16", versions=(2,))
class LoadsInV2(GoodAgent):
    """`session/load` works on a v2 connection."""

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        return super().requests() | {"session/load": self.load_session}


@defects.add("SESS-17", versions=(2,))
class ReplaysUnasked(GoodAgent):
    """A resume without `replayFrom` replays the history."""

    def resume_session(self, request: Request) -> Json | None:
        if request.params.get("replayFrom") is None and self.saved_session(request).turn is None:
            self.replay(self.saved_session(request))
        return super().resume_session(request)


@defects.add("SESS-18", versions=(2,))
class ReplaysAfterTheAnswer(GoodAgent):
    """The answer to a resume comes before the replay."""

    def resume_session(self, request: Request) -> Json | None:
        replays = check.replay_from_start(request.params)
        super().resume_session(Request(request.id, request.method, request.params | {"replayFrom": None}))
        if replays:
            self.replay(self.saved_session(request))
        return None


@defects.add("SESS-19", versions=(2,))
class ReadsAnUnknownCursorAsNone(GoodAgent):
    """A resume with an unknown cursor succeeds without replay."""

    def resume_session(self, request: Request) -> Json | None:
        known = request.params if request.params.get("replayFrom") == {"type": "start"} else {}
        params = request.params | {"replayFrom": known.get("replayFrom")}
        return super().resume_session(Request(request.id, request.method, params))


@defects.add("SESS-21", versions=(2,))
class ResumesWithoutAState(GoodAgent):
    """A resume does not report the state."""

    def resume_session(self, request: Request) -> Json | None:
        session = self.saved_session(request)
        if check.replay_from_start(request.params):
            self.replay(session)
        self.open_session(request, session)
        return None


@defects.add("SESS-21", versions=(2,))
class ReportsTheStateBeforeTheReplay(GoodAgent):
    """The state of a resumed session comes before the replay."""

    def resume_session(self, request: Request) -> Json | None:
        session = self.saved_session(request)
        replays = check.replay_from_start(request.params)
        self.state_update(session, session.state)
        if replays:
            self.replay(session)
        self.open_session(request, session)
        return None


@defects.add("SESS-21", versions=(2,))
class SaysIdleWhileItWorks(GoodAgent):
    """A resume during work reports `idle`."""

    def resume_session(self, request: Request) -> Json | None:
        self.saved_session(request).state = "idle"
        return super().resume_session(request)


@defects.add("SESS-22", versions=(2,))
class ReplaysThePromptUnderAnotherId(GoodAgent):
    """A replayed prompt has another id than its answer named."""

    def replay_message(self, session: Session, kind: str, id: str, content: list[Json]) -> None:
        super().replay_message(session, kind, f"{id}-again" if kind == "user_message" else id, content)


@defects.add("SESS-23", versions=(2,))
class ReplaysChunksWithoutAReset(GoodAgent):
    """Replayed chunks do not follow a message with `content: []`."""

    def send_message(self, session: Session, kind: str, id: str, content: list[Json]) -> None:
        if content:
            super().send_message(session, kind, id, content)


@defects.add("MSG-12", versions=(2,))
class ReplaysMessagesUnderOtherIds(GoodAgent):
    """Replayed messages of the agent have new ids."""

    def replay_message(self, session: Session, kind: str, id: str, content: list[Json]) -> None:
        super().replay_message(session, kind, id if kind == "user_message" else f"{id}-again", content)


@defects.add("MSG-04", versions=(2,))
class ChangesTheIdInTheMiddle(GoodAgent):
    """The last chunk of a message has an id of its own."""

    def send_chunk(self, session: Session, kind: str, id: str, block: Json) -> None:
        live = session.turn is not None and block["text"] == "one sentence."
        super().send_chunk(session, kind, f"{id}-rest" if live else id, block)
