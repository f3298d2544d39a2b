"""Agents that are broken in their sessions: ids, setup, lists, loads, closing and deleting."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good import params as check
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Json,
    Refused,
    Request,
)
from tests.conformance.good.session import Session

defects = Defects()


# --- setup ---


@defects.add("SESS-03", versions=(1, 2))
class ReusesItsSession(GoodAgent):
    """Every session of a connection has the same id."""

    def next_session_id(self) -> str:
        return "session"


@defects.add("SESS-10", versions=(1, 2))
class RestoresDirectories(GoodAgent):
    """A session that is resumed without additional directories keeps the old ones."""

    def saved_session(self, request: Request) -> Session:
        known = self.store.find(request.params["sessionId"])
        kept = [] if known is None else known.additional_directories
        session = super().saved_session(request)
        session.additional_directories = session.additional_directories or kept
        return session


@defects.add("SESS-10", versions=(1, 2))
class RefusesDirectories(GoodAgent):
    """Additional directories are advertised and refused."""

    def new_session(self, request: Request) -> Json | None:
        check.require(not request.params.get("additionalDirectories"), "there are no more directories")
        return super().new_session(request)


@defects.add("MCPCFG-01", versions=(1,))
class HasNoServers(GoodAgent):
    """A v1 session cannot have an MCP server."""

    def new_session(self, request: Request) -> Json | None:
        check.require(not request.params.get("mcpServers"), "MCP is not supported")
        return super().new_session(request)


@defects.add("MCPCFG-05", versions=(2,))
class DropsServers(GoodAgent):
    """An MCP server with an unknown transport is left out."""

    def new_session(self, request: Request) -> Json | None:
        servers = request.params.get("mcpServers", [])
        request.params["mcpServers"] = [each for each in servers if each.get("type") in (None, "stdio")]
        return super().new_session(request)


@defects.add("MCPCFG-06", versions=(2,))
class TakesTheFirstOfTwoServers(GoodAgent):
    """Two MCP servers may have one name."""

    def new_session(self, request: Request) -> Json | None:
        del request.params.get("mcpServers", [])[1:]
        return super().new_session(request)


# --- lists ---


@defects.add("SESS-31", versions=(1, 2))
class FindsNothingAndFails(GoodAgent):
    """A list without a session is an error."""

    def list_sessions(self, request: Request) -> Json:
        page = super().list_sessions(request)
        if not page["sessions"]:
            raise Refused(INTERNAL_ERROR, "there are no sessions")
        return page


@defects.add("SESS-31", versions=(1, 2))
class ListsNull(GoodAgent):
    """A list without a session is `null`."""

    def list_sessions(self, request: Request) -> Json:
        page = super().list_sessions(request)
        return page | {"sessions": page["sessions"] or None}


@defects.add("SESS-32", versions=(1, 2))
class ListsRelativeFolders(GoodAgent):
    """The folder of a listed session is a relative path."""

    def listed(self, session: Session) -> Json:
        return super().listed(session) | {"cwd": "."}


@defects.add("SESS-32", versions=(1, 2))
class ListsStrangeTimes(GoodAgent):
    """The time of a listed session is not one of ISO 8601."""

    def listed(self, session: Session) -> Json:
        return super().listed(session) | {"updatedAt": "just now"}


@defects.add("SESS-33", versions=(2,))
class ListsSubfolders(GoodAgent):
    """The list of one folder has the sessions of the folders in it."""

    def list_sessions(self, request: Request) -> Json:
        cwd = request.params.pop("cwd", None) or "/"
        page = super().list_sessions(request)
        return page | {"sessions": [row for row in page["sessions"] if row["cwd"].startswith(cwd)]}


@defects.add("SESS-35", versions=(1, 2))
class TakesAnyCursor(GoodAgent):
    """A cursor that does not exist begins the list again."""

    def read_cursor(self, cursor: str) -> int:
        return super().read_cursor(cursor) if cursor.startswith("below-") else 2**63


@defects.add("SESS-37", versions=(1, 2))
class TouchesWhatItLists(GoodAgent):
    """A list changes the time of its sessions."""

    seconds = count(10)

    def listed(self, session: Session) -> Json:
        session.updated_at = f"2026-01-01T00:00:{next(self.seconds) % 50 + 10}Z"
        return super().listed(session)


@defects.add("SESS-50", versions=(1, 2))
class ChangesItsFolder(GoodAgent):
    """A turn changes the folder of its session."""

    def report_title(self, session: Session, text: str) -> None:
        session.cwd = "/"


# --- load and resume ---


@defects.add("SESS-13", versions=(1,))
class ReplaysTooLate(GoodAgent):
    """The history comes after the answer to `session/load`."""

    def load_session(self, request: Request) -> Json | None:
        session = self.saved_session(request)
        self.open_session(request, session)
        self.replay(session)
        return None


@defects.add("SESS-13", versions=(1,))
class ReplaysHalf(GoodAgent):
    """A load sends the prompts only."""

    def replay_message(self, session: Session, kind: str, id: str, content: list[Json]) -> None:
        if kind != "agent_message":
            super().replay_message(session, kind, id, content)


@defects.add("SESS-13", versions=(1,))
class ReplaysTheLastTurn(GoodAgent):
    """A load sends the last turn only."""

    def replay(self, session: Session) -> None:
        prompts = [entry for entry in session.history if entry.get("message") == "user_message"]
        kept, session.history = session.history, session.history[session.history.index(prompts[-1]) :]
        super().replay(session)
        session.history = kept


@defects.add("SESS-13", versions=(1,))
class LosesWhatHappensDuringALoad(GoodAgent):
    """The first chunks after a load are lost."""

    lost = 0

    def load_session(self, request: Request) -> Json | None:
        super().load_session(request)
        self.lost = 3
        return None

    def send_chunk(self, session: Session, kind: str, id: str, block: Json) -> None:
        self.lost -= 1
        if self.lost < 0:
            super().send_chunk(session, kind, id, block)


@defects.add("SESS-13", versions=(1,))
class RepeatsTheRunningTurn(GoodAgent):
    """A load during a turn sends the turn again after the answer."""

    def load_session(self, request: Request) -> Json | None:
        super().load_session(request)
        session = self.store.sessions[request.params["sessionId"]]
        if session.turn is not None:
            self.replay(session)
        return None


@defects.add("SESS-15", versions=(1,))
class ReplaysOnResume(GoodAgent):
    """A v1 resume sends the history."""

    def resume_session(self, request: Request) -> Json | None:
        if self.version == 1:
            self.replay(self.saved_session(request))
        return super().resume_session(request)


# --- the end ---


@defects.add("SESS-38", versions=(1, 2))
class ClosesWorkingSessionsOnly(GoodAgent):
    """Closing an idle session fails."""

    def close_session(self, request: Request) -> Json | None:
        session = self.opened.get(request.params["sessionId"])
        if session is not None and session.turn is None:
            raise Refused(INTERNAL_ERROR, "there is nothing to close")
        return super().close_session(request)


@defects.add("SESS-38", versions=(1,))
class AdvertisesACloseThatDoesNotExist(GoodAgent):
    """`session/close` is advertised, and does not exist."""

    def close_session(self, request: Request) -> Json | None:
        raise Refused(METHOD_NOT_FOUND, "Method not found")


@defects.add("SESS-38", versions=(1,))
class ForgetsTheWorkOfAClosedSession(GoodAgent):
    """The turn of a closed session is never answered."""

    def close_session(self, request: Request) -> Json | None:
        session = self.opened.pop(request.params["sessionId"], None)
        if session is not None and session.turn is not None:
            for task in (session.turn.work, session.turn.supervisor):
                assert task is not None
                task.cancel()
        return {}


@defects.add("SESS-47", versions=(1, 2))
class ListsTheDeleted(GoodAgent):
    """A deleted session is still in the list."""

    def remove(self, session: Session) -> None:
        pass


@defects.add("SESS-48", versions=(1, 2))
class MissesTheDeleted(GoodAgent):
    """Deleting a session that does not exist fails."""

    def delete_session(self, request: Request) -> Json | None:
        if self.store.find(request.params.get("sessionId")) is None:
            raise Refused(INVALID_PARAMS, "there is no such session")
        return super().delete_session(request)


# --- modes and options ---


@defects.add("CONF-01", versions=(1, 2))
class ReturnsOneOption(GoodAgent):
    """Setting an option returns that option alone."""

    def set_config_option(self, request: Request) -> Json | None:
        answer = super().set_config_option(request)
        assert answer is not None
        key = "id" if self.version == 1 else "configId"
        return {
            "configOptions": [
                each for each in answer["configOptions"] if each[key] == request.params["configId"]
            ]
        }


@defects.add("CONF-01", versions=(1, 2))
class ReturnsTheOldValue(GoodAgent):
    """Setting an option returns the list as it was before."""

    def set_config_option(self, request: Request) -> Json | None:
        before = self.config_options(self.opened_session(request))
        super().set_config_option(request)
        return {"configOptions": before}


@defects.add("CONF-02", versions=(1,))
@defects.add("CONF-V2-04", versions=(2,))
class HasAnImpossibleDefault(GoodAgent):
    """The current value of an option is not among its values."""

    def config_options(self, session: Session) -> list[Json]:
        first, *others = super().config_options(session)
        return [*others, first | {"options": [{"value": "other", "name": "Other"}]}]


@defects.add("CONF-V2-04", versions=(2,))
class OffersAValueTwice(GoodAgent):
    """A select has the same value twice."""

    def config_options(self, session: Session) -> list[Json]:
        first, *others = super().config_options(session)
        return [first | {"options": [*first["options"], first["options"][0]]}, *others]


@defects.add("CONF-V2-01", versions=(2,))
class HasANamelessOption(GoodAgent):
    """The id of an option is empty."""

    def config_options(self, session: Session) -> list[Json]:
        return [option | {"configId": ""} for option in super().config_options(session)[:1]]


@defects.add("CONF-V1-04", versions=(1,))
class ForgetsTheModeOption(GoodAgent):
    """A mode that is set leaves the mode option as it was."""

    def report_options(self, session: Session) -> None:
        mode, session.config["mode"] = session.config["mode"], "ask"
        super().report_options(session)
        session.config["mode"] = mode


@defects.add("CONF-V1-04", versions=(1,))
class BeginsInAnotherMode(GoodAgent):
    """The mode of a new session is not the value of its mode option."""

    def modes(self, session: Session) -> Json:
        return super().modes(session) | {"currentModeId": "code"}


@defects.add("CONF-V1-06", versions=(1,))
class OffersBooleansToAll(GoodAgent):
    """A boolean option is offered to clients that do not know them."""

    def offers_booleans(self) -> bool:
        return True


@defects.add("CONF-V2-02", versions=(2,))
class IgnoresWrongValues(GoodAgent):
    """A value that is not offered is accepted and not used."""

    def config_value(self, id: str, params: Json) -> Any:
        try:
            return super().config_value(id, params)
        except Refused:
            config = self.opened[params["sessionId"]].config
            if id not in config:
                raise
            return config[id]


@defects.add("CONF-V2-02", versions=(2,))
class RejectsTooLate(GoodAgent):
    """A value that is rejected changes its option."""

    def config_value(self, id: str, params: Json) -> Any:
        try:
            return super().config_value(id, params)
        except Refused:
            self.opened[params["sessionId"]].config["mode"] = "code"
            raise


@defects.add("CONF-V2-03", versions=(2,))
class CannotSetOptions(GoodAgent):
    """A session has options, but they cannot be set."""

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        return {name: run for name, run in super().requests().items() if name != "session/set_config_option"}


@defects.add("CONF-V2-06", versions=(2,))
class KeepsModesInV2(GoodAgent):
    """A v2 session has modes."""

    def setup(self, session: Session) -> Json:
        return super().setup(session) | {"modes": self.modes(session)}
