"""The good agent: a small agent that keeps every promise of the protocol that can be seen from outside.

It speaks v1 and v2, as the client asks, over stdio: `python tests/conformance/good/agent.py`. A broken agent
is a subclass that overrides one method, and is started with `--agent module:Class`. `Worker.work` says which
text in a prompt makes it do what.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":  # a script finds its own folder only
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)).rsplit(os.sep, 3)[0])

from tests.conformance.good import params as check
from tests.conformance.good.peer import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_FOUND,
    UNSUPPORTED_VERSION,
    Json,
    Refused,
    Request,
)
from tests.conformance.good.session import Prompt, Session, Store
from tests.conformance.good.stdio import serve_stdio, write_line
from tests.conformance.good.worker import Worker

NAME, VERSION = "good-agent", "1.0"
SUPPORTED = (1, 2)
OPTIONS = {
    "mode": ("Mode", {"ask": "Ask before changes", "code": "Change files"}),
    "model": ("Model", {"small": "Small", "large": "Large"}),
}
"""The config options that are a choice, with their values."""


class GoodAgent(Worker):
    page_size = 20
    """How many sessions one page of `session/list` has."""

    def __init__(self, write: Callable[[Json], None], store: Store | None = None) -> None:
        super().__init__(write, store)
        self.begun = False
        """Whether the client sent a request after `initialize`."""
        self.client: Json = {}
        """The capabilities of the client."""

    def requests(self) -> dict[str, Callable[[Request], Json | None]]:
        methods: dict[str, Callable[[Request], Json | None]] = {
            "session/new": self.new_session,
            "session/resume": self.resume_session,
            "session/list": self.list_sessions,
            "session/close": self.close_session,
            "session/delete": self.delete_session,
            "session/prompt": self.prompt,
            "session/set_config_option": self.set_config_option,
        }
        if self.version == 1:
            return methods | {"session/load": self.load_session, "session/set_mode": self.set_mode}
        return methods | {
            "tool_call/cancel": self.cancel_tool_call,
            "terminal/cancel": self.cancel_terminal,
        }

    def notifications(self) -> dict[str, Callable[[Json], None]]:
        if not self.version:
            return {}  # INIT-25
        return {"session/cancel": self.on_cancel, "$/cancel_request": self.on_cancel_request}

    # --- initialize ---

    def handle(self, request: Request) -> Json | None:
        if request.method == "initialize":
            return self.initialize(request)
        if not self.version:
            raise Refused(INVALID_REQUEST, "the first request is `initialize`")  # INIT-24
        self.begun = True
        return super().handle(request)

    def version_of(self, frame: Json) -> int:
        if self.version or frame["method"] != "initialize":
            return self.version or 2
        params = frame.get("params")
        return 1 if isinstance(params, dict) and params.get("protocolVersion") == 1 else 2

    def initialize(self, request: Request) -> Json:
        requested = request.params.get("protocolVersion")
        check.require(
            type(requested) is int and 0 <= requested <= 65535, "`protocolVersion` is an integer up to 65535"
        )
        assert isinstance(requested, int)
        if self.begun or requested < self.version:
            raise Refused(INVALID_REQUEST, "`initialize` comes first")  # INIT-26, INIT-27
        version = self.choose_version(requested)
        if version == requested == 2:
            self.check_info(request.params)
        self.version = version
        capabilities = request.params.get("clientCapabilities" if version == 1 else "capabilities")
        self.client = capabilities if isinstance(capabilities, dict) else {}
        if self.asks_for_turn_complete():
            self.sends_turn_complete = True
        return self.introduce()

    def choose_version(self, requested: int) -> int:
        """Return the highest supported version that is not above the requested one (INIT-02, INIT-03)."""
        found = max((version for version in SUPPORTED if version <= requested), default=None)
        if found is None:
            data = {"requested": requested, "supported": list(SUPPORTED)}
            raise Refused(UNSUPPORTED_VERSION, "the protocol version is not supported", data)  # RPC-24
        return found

    def check_info(self, params: Json) -> None:
        info = params.get("info")
        check.require(isinstance(info, dict), "`info` is an object")  # INIT-09, INIT-13
        assert isinstance(info, dict)
        for key in ("name", "version"):
            check.text(info, key)

    def asks_for_turn_complete(self) -> bool:
        """Return whether a v1 client opted in (TC-10, TC-11)."""
        return self.version == 1 and bool(self.client_object("_meta", "antiphon").get("turnComplete"))

    def client_object(self, *path: str) -> Json:
        """Return a nested object of the client's capabilities; an empty one if it is not there."""
        found: Any = self.client
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def introduce(self) -> Json:
        """Return the answer to `initialize`."""
        shared = {"protocolVersion": self.version, "authMethods": []}
        if self.version == 1:
            return shared | {"agentInfo": self.info(), "agentCapabilities": self.capabilities()}
        return shared | {"info": self.info(), "capabilities": self.capabilities()}

    def info(self) -> Json:
        return {"name": NAME, "title": "The good agent", "version": VERSION}

    def capabilities(self) -> Json:
        """v1 marks prompts with booleans, v2 marks all with objects (INIT-16, INIT-17)."""
        prompt = ("image", "audio", "embeddedContext")
        if self.version == 2:
            marked: Json = {"prompt": {key: {} for key in prompt}, "mcp": {"stdio": {}}}
            return {"session": marked | {"delete": {}, "additionalDirectories": {}}}
        sessions: Json = {key: {} for key in ("list", "resume", "close", "delete", "additionalDirectories")}
        if self.sends_turn_complete:
            sessions["turnComplete"] = {}  # TC-05
        return {
            "loadSession": True,
            "promptCapabilities": dict.fromkeys(prompt, True),
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": sessions,
        }

    # --- sessions ---

    def next_session_id(self) -> str:
        return f"sess_{os.urandom(8).hex()}"

    def new_session(self, request: Request) -> Json | None:
        cwd, extra = check.absolute_path(request.params, "cwd"), check.directories(request.params)
        servers = check.servers(request.params, self.version, needed=self.version == 1)
        session = self.store.new(self.next_session_id(), cwd, extra)
        self.opened[session.id] = session
        self.connect_servers(session, servers)
        self.answer(request.id, {"sessionId": session.id, **self.setup(session)})
        self.announce_commands(session)
        return None

    def setup(self, session: Session) -> Json:
        """Return what the answers to new, load and resume have in common."""
        if self.version == 2:
            return {"configOptions": self.config_options(session), "availableCommands": self.commands()}
        return {"configOptions": self.config_options(session), "modes": self.modes(session)}

    def commands(self) -> list[Json]:
        command: Json = {"name": "echo", "description": "Say the text again", "input": {"hint": "a text"}}
        if self.version == 2:
            command |= {"type": "command", "input": {"type": "text", "hint": "a text"}}
        return [command]

    def announce_commands(self, session: Session) -> None:
        """v1 has no other place for the commands."""
        if self.version == 1:
            update = {"sessionUpdate": "available_commands_update", "availableCommands": self.commands()}
            self.send_update(session, update)

    def saved_session(self, request: Request) -> Session:
        """Return the session that a load or resume names, and check that nothing about it would change."""
        id, cwd = check.text(request.params, "sessionId"), check.absolute_path(request.params, "cwd")
        extra = check.directories(request.params)
        needed = request.method == "session/load"
        servers = check.servers(request.params, self.version, needed=needed)
        session = self.store.find(id)
        if session is None:
            raise self.unknown_session(id)
        check.require(os.path.normpath(cwd) == os.path.normpath(session.cwd), "`cwd` is that of the session")
        session.additional_directories = extra  # SESS-10: the complete list
        self.connect_servers(session, servers)
        return session

    def unknown_session(self, id: str) -> Refused:
        return Refused(NOT_FOUND, "the session does not exist or is not open", {"sessionId": id})  # RPC-25

    def load_session(self, request: Request) -> Json | None:
        """Replay, then answer (SESS-13)."""
        session = self.saved_session(request)
        self.replay(session)
        self.open_session(request, session)
        self.announce_commands(session)
        return None

    def resume_session(self, request: Request) -> Json | None:
        """v2 replays if asked, then reports the state, then answers (SESS-18, SESS-21)."""
        from_start = self.version == 2 and check.replay_from_start(request.params)
        session = self.saved_session(request)
        if from_start:
            self.replay(session)
        self.state_update(session, session.state)
        self.open_session(request, session)
        return None

    def open_session(self, request: Request, session: Session) -> None:
        self.opened[session.id] = session
        self.answer(request.id, self.setup(session))

    def replay(self, session: Session) -> None:
        for entry in session.history:
            if "message" in entry:
                self.replay_message(session, entry["message"], entry["id"], entry["content"])
            elif "call" in entry:
                self.create_tool_call(session, entry["id"], entry["call"])
            else:
                self.send_plan(session, entry["id"], entry["plan"])

    def replay_message(self, session: Session, kind: str, id: str, content: list[Json]) -> None:
        """Send a message again, under its id. v2 sends prompts whole, and the agent's messages in chunks."""
        if self.version == 2 and kind == "user_message":
            return self.send_message(session, kind, id, content)
        if self.version == 2:
            self.send_message(session, kind, id, [])  # SESS-23
        for block in content:
            self.send_chunk(session, kind, id, block)
        return None

    def list_sessions(self, request: Request) -> Json:
        given = {key: value for key, value in request.params.items() if value is not None}
        cwd = check.absolute_path(given, "cwd") if "cwd" in given else None
        below = self.read_cursor(check.text(given, "cursor")) if "cursor" in given else None
        sessions, following = self.store.page(cwd, below, self.page_size)
        page: Json = {"sessions": [self.listed(session) for session in sessions]}
        return page if following is None else page | {"nextCursor": f"below-{following}"}

    def read_cursor(self, cursor: str) -> int:
        number = cursor.removeprefix("below-")
        check.require(number != cursor and number.isdecimal(), "`cursor` is one of this list")  # SESS-35
        return int(number)

    def listed(self, session: Session) -> Json:
        row: Json = {"sessionId": session.id, "cwd": session.cwd, "updatedAt": session.updated_at}
        if session.additional_directories:
            row["additionalDirectories"] = session.additional_directories
        return row if session.title is None else row | {"title": session.title}

    def close_session(self, request: Request) -> Json | None:
        """Closing an unknown session succeeds (SESS-44)."""
        return self.stop_and(request, lambda session: None)

    def delete_session(self, request: Request) -> Json | None:
        """Deleting an unknown session succeeds (SESS-48). An open one is closed first."""
        return self.stop_and(request, self.remove)

    def remove(self, session: Session) -> None:
        self.store.delete(session.id)

    def stop_and(self, request: Request, finish: Callable[[Session], None]) -> Json | None:
        session = self.store.find(check.text(request.params, "sessionId"))
        if session is None:
            return {}
        if self.opened.pop(session.id, None) is None:
            finish(session)
            return {}
        self.spawn(self.stop_then_answer(request, session, finish))
        return None

    async def stop_then_answer(
        self, request: Request, session: Session, finish: Callable[[Session], None]
    ) -> None:
        """Answer after the last update of the session (SESS-38, SESS-40, SESS-42)."""
        await self.stop(session)
        finish(session)
        self.answer(request.id, {})

    def opened_session(self, request: Request) -> Session:
        id = check.text(request.params, "sessionId")
        if id not in self.opened:
            raise self.unknown_session(id)
        return self.opened[id]

    # --- prompts ---

    def prompt(self, request: Request) -> Json | None:
        session = self.opened_session(request)
        self.submit(Prompt(session, request.id, self.prompt_content(request)))
        return None

    def prompt_content(self, request: Request) -> list[Json]:
        return check.content(request.params, self.version)

    def on_cancel(self, params: Json) -> None:
        session = self.store.find(params.get("sessionId"))
        if session is not None and session.id in self.opened:
            self.cancel_session(session)

    def on_cancel_request(self, params: Json) -> None:
        """Cancel an open prompt of the client; other requests are answered at once (RPC-29, RPC-31)."""
        if "requestId" not in params:
            return
        for session in self.opened.values():
            for prompt in [*session.held]:
                if same_id(prompt.request_id, params["requestId"]):
                    session.held.remove(prompt)
                    self.refuse_cancelled(prompt)  # PROMPT-V2-33
            turn = session.turn
            if self.version == 1 and turn and same_id(turn.prompt.request_id, params["requestId"]):
                self.cancel_turn(turn)

    def cancel_tool_call(self, request: Request) -> Json | None:
        """Cancel background work; nothing else advertises it (TOOL-V2-13, TOOL-V2-14)."""
        session, id = self.opened_session(request), check.text(request.params, "toolCallId")
        check.require(id in session.watched, "the tool call cannot be cancelled")
        session.watched[id].cancel()
        return {}

    def cancel_terminal(self, request: Request) -> Json | None:
        self.opened_session(request)
        raise Refused(INVALID_PARAMS, "the terminal cannot be cancelled")  # TERMV2-11

    def end_of_input(self) -> None:
        """Abort all open prompts and work (RPC-34, RPC-36)."""
        for session in self.opened.values():
            if self.version == 1 and session.turn is not None:
                self.refuse_cancelled(session.turn.prompt)
            for prompt in session.held:
                self.refuse_cancelled(prompt)
        super().end_of_input()
        for session in self.opened.values():
            session.rest()
        self.store.save()

    # --- modes and options ---

    def modes(self, session: Session) -> Json:
        modes = [{"id": id, "name": name} for id, name in OPTIONS["mode"][1].items()]
        return {"currentModeId": session.config["mode"], "availableModes": modes}

    def config_options(self, session: Session) -> list[Json]:
        """Return all options of a session; v1 names them by `id` (CONF-V1-07, CONF-V2-01)."""
        key = "id" if self.version == 1 else "configId"
        options: list[Json] = [
            {
                key: id, "name": name, "category": id, "type": "select", "currentValue": session.config[id],
                "options": [{"value": value, "name": title} for value, title in values.items()],
            }
            for id, (name, values) in OPTIONS.items()
        ]  # fmt: skip
        if self.offers_booleans():
            verbose = {key: "verbose", "name": "Verbose", "type": "boolean"}
            options.append(verbose | {"currentValue": session.config["verbose"]})
        return options

    def offers_booleans(self) -> bool:
        """v1 clients have to advertise boolean options (CONF-V1-06)."""
        options = self.client_object("session", "configOptions")
        return self.version == 2 or isinstance(options.get("boolean"), dict)

    def set_mode(self, request: Request) -> Json | None:
        session, mode = self.opened_session(request), check.text(request.params, "modeId")
        check.require(mode in OPTIONS["mode"][1], "`modeId` is one of the offered modes")
        session.config["mode"] = mode
        self.store.save()
        self.report_options(session)
        return {}

    def report_options(self, session: Session) -> None:
        """Keep the option equal to a mode that was set (CONF-V1-04)."""
        options = self.config_options(session)
        self.send_update(session, {"sessionUpdate": "config_option_update", "configOptions": options})

    def report_mode(self, session: Session) -> None:
        """Keep the mode equal to an option that was set (CONF-V1-04)."""
        update = {"sessionUpdate": "current_mode_update", "currentModeId": session.config["mode"]}
        self.send_update(session, update)

    def set_config_option(self, request: Request) -> Json | None:
        session, id = self.opened_session(request), check.text(request.params, "configId")
        session.config[id] = self.config_value(id, request.params)
        self.store.save()
        if self.version == 1 and id == "mode":
            self.report_mode(session)
        return {"configOptions": self.config_options(session)}

    def config_value(self, id: str, params: Json) -> Any:
        """Return a valid value for an option; refuse any other (CONF-V2-02)."""
        kind, value = params.get("type"), params.get("value")
        if id == "verbose" and self.offers_booleans():
            check.require(kind == "boolean" and isinstance(value, bool), "`value` is a boolean")
            return value
        check.require(id in OPTIONS, "`configId` is one of the offered options")
        has_type = kind == "id" if self.version == 2 else kind != "boolean"
        check.require(has_type, "`type` is that of the option")
        check.require(isinstance(value, str) and value in OPTIONS[id][1], "`value` is an offered one")
        return value


def same_id(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other  # RPC-05: 1 is not "1"


def main(agent_class: type[GoodAgent] = GoodAgent) -> None:
    """Serve stdio with an agent of this class, or of the one that `--agent` names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", metavar="FILE", help="keep the sessions in this file")
    parser.add_argument("--turn-complete", action="store_true", help="send `turn_complete` to v1 clients")
    parser.add_argument("--agent", metavar="MODULE:CLASS", help="a subclass to run instead")
    options = parser.parse_args()
    if options.agent:
        module, _, name = options.agent.partition(":")
        agent_class = getattr(importlib.import_module(module), name)
    agent = agent_class(write_line, Store(options.state))
    agent.sends_turn_complete = options.turn_complete
    asyncio.run(serve_stdio(agent))


if __name__ == "__main__":
    main()
