"""Broken clients: how they open a connection."""

from __future__ import annotations

import os
from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good.client import ClientFailed, GoodClient

defects = Defects()


@defects.add("INIT-01", versions=(1,))
class MakesASessionFirst(GoodClient):
    """It asks for its sessions before `initialize`."""

    def start(self) -> None:
        self.request("_good.client/hello", {}, print)
        super().start()

    def on_refused(self, done: Any, error: Any) -> None:
        if done is not print:
            super().on_refused(done, error)


@defects.add("INIT-06", versions=(1,))
class TakesAnyVersion(GoodClient):
    """It goes on with a version that it does not speak."""

    def agree(self, result: dict[str, Any]) -> int:
        return 2 if "info" in result else 1


@defects.add("INIT-15", versions=(1,))
class NeedsCapabilities(GoodClient):
    """It fails if the agent leaves out its capabilities."""

    def initialized(self, result: dict[str, Any]) -> None:
        super().initialized({**result, "agentCapabilities": result["agentCapabilities"]})


@defects.add("INIT-15", versions=(2,))
class NeedsPlainAgents(GoodClient):
    """It fails if the agent advertises more than it must."""

    def initialized(self, result: dict[str, Any]) -> None:
        if result.get("capabilities", {}).get("session"):
            raise ClientFailed("too many capabilities")
        super().initialized(result)


@defects.add("INIT-28", versions=(2,))
class ReadsEveryAuthMethod(GoodClient):
    """It fails on a login method that it cannot read."""

    def initialized(self, result: dict[str, Any]) -> None:
        for method in result.get("authMethods", []):
            method["methodId"]
        super().initialized(result)


@defects.add("SESS-04", versions=(1,))
class UsesARelativeFolder(GoodClient):
    """Its `cwd` is relative."""

    def session_params(self) -> dict[str, Any]:
        return {**super().session_params(), "cwd": os.path.curdir}


@defects.add("INIT-13", versions=(2,))
class HasNoVersion(GoodClient):
    """It does not tell its own version."""

    def initialize_params(self) -> dict[str, Any]:
        return {**super().initialize_params(), "info": {"name": "good-client"}}


@defects.add("SESS-01", versions=(1,))
class SendsNoListOfServers(GoodClient):
    """It leaves out `mcpServers`."""

    def session_params(self) -> dict[str, Any]:
        return {"cwd": os.getcwd()}


@defects.add("EXT-03", versions=(2,))
class AddsARootField(GoodClient):
    """It adds a field of its own to `session/new`."""

    def session_params(self) -> dict[str, Any]:
        return {**super().session_params(), "colour": "blue"}


@defects.add("EXT-12", versions=(1,))
class CallsAnUndefinedMethod(GoodClient):
    """It calls a method that no version has."""

    def make_session(self) -> None:
        self.notify("session/hello", {})
        super().make_session()


@defects.add("CONT-02", versions=(1,))
class SendsAnImage(GoodClient):
    """It sends an image to an agent that takes none."""

    def prompt_params(self) -> dict[str, Any]:
        image = {"type": "image", "mimeType": "image/png", "data": ""}
        return {**super().prompt_params(), "prompt": [image]}


@defects.add("PROMPT-V1-01", versions=(1,))
class PromptsAnotherSession(GoodClient):
    """It prompts a session that the agent did not name."""

    def prompt_params(self) -> dict[str, Any]:
        return {**super().prompt_params(), "sessionId": "made-up"}


@defects.add("PROMPT-V2-01", versions=(2,))
class SendsAnEmptyPrompt(GoodClient):
    """Its prompt has no content."""

    def prompt_params(self) -> dict[str, Any]:
        return {**super().prompt_params(), "prompt": []}


@defects.add("AUTH-06", versions=(1,), also=("EXT-12",))
class LogsInAsInV2(GoodClient):
    """It logs in to a v1 agent with the method of v2."""

    def log_in(self) -> None:
        method = self.auth_methods[0]["id"]
        self.request("auth/login", {"methodId": method}, lambda result: self.make_session())


@defects.add("AUTH-07", versions=(2,), also=("EXT-12",))
class LogsInAsInV1(GoodClient):
    """It logs in to a v2 agent with the method of v1."""

    def log_in(self) -> None:
        method = self.auth_methods[0]["methodId"]
        self.request("authenticate", {"methodId": method}, lambda result: self.make_session())


@defects.add("AUTH-08", versions=(2,))
class InventsALoginMethod(GoodClient):
    """It logs in with a method that the agent did not offer."""

    def log_in(self) -> None:
        name = "auth/login" if self.version == 2 else "authenticate"
        self.request(name, {"methodId": "made-up"}, lambda result: self.make_session())


@defects.add("AUTH-10", versions=(2,))
class LogsInUnasked(GoodClient):
    """It logs in though the agent offers no login."""

    def on_refused(self, done: Any, error: Any) -> None:
        if done == self.session_made and not self.auth_methods:
            self.request("auth/login", {"methodId": "made-up"}, lambda result: self.make_session())
        else:
            super().on_refused(done, error)
