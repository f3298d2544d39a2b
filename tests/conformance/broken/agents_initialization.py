"""Agents that are broken at `initialize`: versions, capabilities and login methods."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.broken.defect import Defects
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    UNSUPPORTED_VERSION,
    Json,
    Refused,
    Request,
)

defects = Defects()
AUTH_REQUIRED = -32000


# --- versions ---


@defects.add("INIT-04", versions=(1, 2))
class RepeatsAnyVersion(GoodAgent):
    """The version of the answer is the one that was asked for, whatever it is."""

    def initialize(self, request: Request) -> Json:
        return super().initialize(request) | {"protocolVersion": request.params["protocolVersion"]}


@defects.add("INIT-02", versions=(1,))
class RefusesLaterVersions(GoodAgent):
    """A request for a later version is refused."""

    def choose_version(self, requested: int) -> int:
        if requested > 2:
            raise Refused(INVALID_PARAMS, "the version does not exist")
        return super().choose_version(requested)


@defects.add("INIT-02", versions=(1,))
class CountsVersionsFromZero(GoodAgent):
    """The answer to version 1 is 0."""

    def introduce(self) -> Json:
        return super().introduce() | ({"protocolVersion": 0} if self.version == 1 else {})


@defects.add("INIT-03", versions=(2,))
class AnswersWithAHigherVersion(GoodAgent):
    """A client that asks for version 0 gets version 2."""

    def choose_version(self, requested: int) -> int:
        return 2 if requested == 0 else super().choose_version(requested)


@defects.add("INIT-08", versions=(2,))
class ForgetsV1(GoodAgent):
    """A v1 client is turned away."""

    def choose_version(self, requested: int) -> int:
        if requested < 2:
            data = {"requested": requested, "supported": [2]}
            raise Refused(UNSUPPORTED_VERSION, "the protocol version is not supported", data)
        return 2


@defects.add("RPC-24", versions=(2,))
class KeepsItsVersionsSecret(GoodAgent):
    """The refusal of a version does not say which ones are supported."""

    def choose_version(self, requested: int) -> int:
        if requested == 0:
            raise Refused(UNSUPPORTED_VERSION, "the protocol version is not supported")
        return super().choose_version(requested)


# --- before and after ---


@defects.add("INIT-24", versions=(2,))
class WorksBeforeInitialize(GoodAgent):
    """A session can be made before `initialize`."""

    def handle(self, request: Request) -> Json | None:
        if request.method != "initialize":
            self.version = self.version or 2
        return super().handle(request)


@defects.add("INIT-25", versions=(2,))
class TripsOverEarlyNotifications(GoodAgent):
    """After an early notification, `initialize` is refused."""

    def receive_notification(self, method: str, params: object) -> None:
        self.begun = self.begun or not self.version
        super().receive_notification(method, params)


@defects.add("INIT-28", versions=(2,))
class RefusesMalformedCapabilities(GoodAgent):
    """Capabilities that cannot be read make `initialize` fail."""

    def initialize(self, request: Request) -> Json:
        if isinstance(request.params.get("capabilities"), str):
            raise Refused(INVALID_PARAMS, "`capabilities` is an object")
        return super().initialize(request)


@defects.add("INIT-09", versions=(2,))
class NeedsTheInfoOfLaterVersions(GoodAgent):
    """A client of a later version is refused if it has no `info`."""

    def initialize(self, request: Request) -> Json:
        if request.params.get("protocolVersion") == 65535:
            self.check_info(request.params)
        return super().initialize(request)


@defects.add("INIT-15", versions=(1, 2))
class FailsForAbleClients(GoodAgent):
    """A client that can show forms cannot make a session."""

    def new_session(self, request: Request) -> Json | None:
        if "elicitation" in self.client:
            raise Refused(INTERNAL_ERROR, "something went wrong")
        return super().new_session(request)


# --- the introduction ---


@defects.add("INIT-20", versions=(1,))
class HasNoPrompts(GoodAgent):
    """The method `session/prompt` does not exist."""

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        return {name: run for name, run in super().requests().items() if name != "session/prompt"}


@defects.add("INIT-19", versions=(2,), also=("SESS-30",))
class HasNoList(GoodAgent):
    """The method `session/list` does not exist."""

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        return {name: run for name, run in super().requests().items() if name != "session/list"}


@defects.add("INIT-11", versions=(1,))
class ListsLoginsAsAnObject(GoodAgent):
    """`authMethods` is an object."""

    def introduce(self) -> Json:
        return super().introduce() | {"authMethods": {}}


@defects.add("INIT-12", versions=(1,))
class HasNoName(GoodAgent):
    """The agent does not say who it is."""

    def introduce(self) -> Json:
        return {key: value for key, value in super().introduce().items() if key != "agentInfo"}


@defects.add("INIT-13", versions=(2,))
class HasAnEmptyName(GoodAgent):
    """The name of the agent is empty."""

    def info(self) -> Json:
        return {"name": "", "version": "1"}


@defects.add("INIT-16", versions=(2,))
@defects.add("INIT-17", versions=(1,))
class MarksWithBooleans(GoodAgent):
    """A capability that is marked with an object is `true`."""

    def capabilities(self) -> Json:
        offered = super().capabilities()
        offered["session" if self.version == 2 else "sessionCapabilities"]["additionalDirectories"] = True
        return offered


@defects.add("INIT-21", versions=(2,))
class MarksWithWords(GoodAgent):
    """A v2 marker is a string."""

    def capabilities(self) -> Json:
        offered = super().capabilities()
        if self.version == 2:
            offered["session"]["additionalDirectories"] = "yes"
        return offered


@defects.add("INIT-23", versions=(1, 2))
class InventsACapability(GoodAgent):
    """A custom capability is declared among those of the protocol, not under `_meta`."""

    def capabilities(self) -> Json:
        return super().capabilities() | {"telepathy": {}}


# --- logging in ---


class AgentWithLogin(GoodAgent):
    """A good agent that lists a way to log in, and needs none."""

    def introduce(self) -> Json:
        return super().introduce() | {"authMethods": self.login_methods()}

    def login_methods(self) -> list[Json]:
        if self.version == 1:
            return [{"id": "account", "name": "Log in"}]
        return [{"type": "agent", "methodId": "account", "name": "Log in"}]

    def asks_for_terminals(self) -> bool:
        return self.client_object("auth").get("terminal") in (True, {})

    def terminal_method(self) -> Json:
        method: Json = {"type": "terminal", "name": "In a terminal", "args": ["--login"]}
        if self.version == 1:
            return method | {"id": "terminal", "env": {"LOGIN": "1"}}
        return method | {"methodId": "terminal", "env": [{"name": "LOGIN", "value": "1"}]}

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        if self.version == 1:
            return super().requests() | {"authenticate": self.login}
        return super().requests() | {"auth/login": self.login, "auth/logout": lambda request: {}}

    def login(self, request: Request) -> Json | None:
        if request.params.get("methodId") != "account":
            raise Refused(INVALID_PARAMS, "the method does not exist")
        return {}


@defects.add("AUTH-02", versions=(1,))
@defects.add("AUTH-03", versions=(2,))
class HasNamelessLogins(AgentWithLogin):
    """A login method has no name."""

    def login_methods(self) -> list[Json]:
        return [
            {key: value for key, value in method.items() if key != "name"}
            for method in super().login_methods()
        ]


@defects.add("AUTH-03", versions=(2,))
class RepeatsAVariable(AgentWithLogin):
    """A terminal login sets a variable twice."""

    def login_methods(self) -> list[Json]:
        if not self.asks_for_terminals():
            return super().login_methods()
        method = self.terminal_method()
        return [method | {"env": method["env"] * 2}]


@defects.add("AUTH-04", versions=(2,))
class InventsALoginType(AgentWithLogin):
    """A login method has a type of its own without `_`."""

    def login_methods(self) -> list[Json]:
        return [{"type": "oauth", "methodId": "account", "name": "Log in"}]


@defects.add("AUTH-05", versions=(1, 2))
class RepeatsALoginId(AgentWithLogin):
    """Two login methods have the same id."""

    def login_methods(self) -> list[Json]:
        return super().login_methods() * 2


@defects.add("AUTH-13", versions=(1, 2))
class OffersTerminalsToAll(AgentWithLogin):
    """A terminal login is offered to clients that have no terminal."""

    def login_methods(self) -> list[Json]:
        return [*super().login_methods(), self.terminal_method()]


@defects.add("AUTH-16", versions=(1, 2))
class NamesAProgram(AgentWithLogin):
    """A terminal login names the program to start."""

    def login_methods(self) -> list[Json]:
        return [self.terminal_method() | {"command": "/bin/sh"}] if self.asks_for_terminals() else []


@defects.add("AUTH-09", versions=(2,))
class CannotLogIn(AgentWithLogin):
    """There are login methods, but `auth/login` does not exist."""

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        return GoodAgent.requests(self)


@defects.add("AUTH-12", versions=(2,))
class MarksLoggingOut(AgentWithLogin):
    """A v2 agent has the v1 marker for logging out."""

    def capabilities(self) -> Json:
        return super().capabilities() | {"auth": {"_meta": {}, "logout": {}}}


@defects.add("AUTH-19", versions=(1, 2))
class AsksForAnImpossibleLogin(GoodAgent):
    """A session needs a login, but there is no way to log in."""

    def new_session(self, request: Request) -> Json | None:
        raise Refused(AUTH_REQUIRED, "log in first")


@defects.add("AUTH-23", versions=(1, 2))
class HidesItsLoginStatus(AgentWithLogin):
    """The login status can be read only after a login."""

    def capabilities(self) -> Json:
        return super().capabilities() | {"auth": {"status": {}}}

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        return super().requests() | {"auth/status": self.status}

    def status(self, request: Request) -> Json | None:
        raise Refused(AUTH_REQUIRED, "log in first")
