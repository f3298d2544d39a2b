"""A good client by hand: one session, one prompt, the agent's messages on stdout.

It asks for version 2 and speaks version 1 as well. Its last argument is the command line of an agent.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from typing import Any

from tests.conformance.good.client_terminals import Terminals

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
RESOURCE_NOT_FOUND, AUTH_REQUIRED = -32002, -32000
MESSAGES = {"agent_message": "agent", "agent_thought": "thought", "user_message": "user"}


class ClientFailed(Exception):
    """The client ends with an error."""


class RequestRefused(Exception):
    """A request of the agent is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class GoodClient:
    """Each behaviour is one small method, so that a broken client can replace it."""

    terminals_class = Terminals

    def __init__(self, agent: subprocess.Popen[bytes]) -> None:
        self.agent = agent
        self.version = 2
        self.session = ""
        self.next_id = 0
        self.pending: dict[Any, Any] = {}
        """What to do with the result of each open request."""
        self.questions: dict[Any, Any] = {}
        """Open permission requests of the agent, by id."""
        self.messages: dict[tuple[str, Any], list[str]] = {}
        self.last_kind = ""
        self.auth_methods: list[Any] = []
        self.agent_capabilities: dict[str, Any] = {}
        self.prompt_answered = False
        self.worked = False
        self.finished = False
        self.terminals = self.terminals_class(self.answer)

    # --- frames ------------------------------------------------------------------------------------

    def write(self, frame: Any) -> None:
        data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        os.write(self.agent.stdin.fileno(), data + b"\n")

    def request(self, method: str, params: dict[str, Any], done: Any) -> None:
        self.next_id += 1
        self.pending[self.next_id] = done
        self.write({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, id: Any, result: Any) -> None:
        self.write({"jsonrpc": "2.0", "id": id, "result": result})

    def refuse(self, id: Any, code: int, message: str) -> None:
        self.write({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})

    def receive_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            frame = json.loads(line)
        except ValueError:
            self.on_unparsed(line)
            return
        if not isinstance(frame, dict):
            self.on_invalid(frame)
        elif isinstance(frame.get("method"), str):
            self.receive_call(frame)
        elif "result" in frame or "error" in frame:
            self.receive_response(frame)
        elif "id" not in frame:
            self.on_invalid(frame)

    def on_unparsed(self, line: bytes) -> None:
        self.refuse(None, PARSE_ERROR, "Parse error")

    def on_invalid(self, value: Any) -> None:
        self.refuse(None, INVALID_REQUEST, "Invalid request")

    def receive_response(self, frame: dict[str, Any]) -> None:
        done = self.pending.pop(self.response_id(frame), None)
        if done is None:
            self.on_unmatched(frame)
        elif "error" in frame:
            self.on_refused(done, frame["error"])
        else:
            done(frame["result"])

    def response_id(self, frame: dict[str, Any]) -> Any:
        id = frame.get("id")
        return id if type(id) is int else None

    def on_unmatched(self, frame: dict[str, Any]) -> None:
        """Drop a response that nobody waits for."""

    def on_refused(self, done: Any, error: Any) -> None:
        if done == self.session_made and error.get("code") == AUTH_REQUIRED and self.auth_methods:
            self.log_in()
        else:
            raise ClientFailed(f"the agent refused: {error.get('message')}")

    def receive_call(self, frame: dict[str, Any]) -> None:
        method, params = frame["method"], frame.get("params") or {}
        if "id" not in frame:
            self.receive_notification(method, params)
        elif self.version == 2 and not self.is_usable(frame["id"]):
            self.on_unusable_id(frame)
        else:
            try:
                self.receive_request(frame["id"], method, params)
            except RequestRefused as refused:
                self.refuse(frame["id"], refused.code, str(refused))

    def is_usable(self, id: Any) -> bool:
        return type(id) in (int, str)

    def on_unusable_id(self, frame: dict[str, Any]) -> None:
        self.refuse(None, INVALID_REQUEST, "Invalid request id")

    # --- opening -----------------------------------------------------------------------------------

    def start(self) -> None:
        self.request("initialize", self.initialize_params(), self.initialized)

    def initialize_params(self) -> dict[str, Any]:
        info = {"name": "good-client", "version": "1"}
        return {
            "protocolVersion": 2,
            "info": info,
            "capabilities": {"elicitation": {"form": {}}},
            "clientInfo": info,
            "clientCapabilities": {
                "fs": {"readTextFile": True, "writeTextFile": True},
                "terminal": True,
                "elicitation": {"form": {}},
            },
        }

    def initialized(self, result: dict[str, Any]) -> None:
        self.version = self.agree(result)
        methods = result.get("authMethods")
        key = "methodId" if self.version == 2 else "id"
        self.auth_methods = [each for each in methods or [] if isinstance(each, dict) and key in each]
        self.agent_capabilities = (
            result.get("capabilities" if self.version == 2 else "agentCapabilities") or {}
        )
        self.make_session()

    def agree(self, result: dict[str, Any]) -> int:
        version = result.get("protocolVersion")
        if version not in (1, 2):
            raise ClientFailed(f"the agent speaks version {version}")
        return version

    def make_session(self) -> None:
        self.request("session/new", self.session_params(), self.session_made)

    def session_params(self) -> dict[str, Any]:
        return {"cwd": os.getcwd(), "mcpServers": []} if self.version == 1 else {"cwd": os.getcwd()}

    def log_in(self) -> None:
        method = next(each for each in self.auth_methods if each.get("type") != "terminal")
        name, key = ("auth/login", "methodId") if self.version == 2 else ("authenticate", "id")
        self.request(name, {"methodId": method[key]}, lambda result: self.make_session())

    def session_made(self, result: dict[str, Any]) -> None:
        self.session = result["sessionId"]
        self.request("session/prompt", self.prompt_params(), self.prompted)

    def prompt_params(self) -> dict[str, Any]:
        return {"sessionId": self.session, "prompt": [{"type": "text", "text": "Hello."}]}

    # --- the turn ----------------------------------------------------------------------------------

    def prompted(self, result: dict[str, Any]) -> None:
        """The prompt was answered: in v1 that is the end of the turn."""
        self.prompt_answered = True
        if self.version == 1:
            self.end_turn()

    def end_turn(self) -> None:
        self.finished = True

    def on_state(self, update: dict[str, Any]) -> None:
        state = update.get("state")
        if state in ("running", "requires_action"):
            self.worked = True
        elif state == "idle" and self.prompt_answered and self.worked:
            self.end_turn()

    def receive_notification(self, method: str, params: dict[str, Any]) -> None:
        if method == "session/update":
            self.apply(params["update"])
        elif method == "$/cancel_request":
            self.cancel_question(params.get("requestId"))
        else:
            self.on_unknown_notification(method)

    def on_unknown_notification(self, method: str) -> None:
        """Ignore it."""

    def apply(self, update: dict[str, Any]) -> None:
        kind = update.get("sessionUpdate", "")
        if kind == "state_update":
            self.on_state(update)
        elif kind.endswith("_chunk") and kind[:-6] in MESSAGES:
            self.append(MESSAGES[kind[:-6]], update)
        elif kind in MESSAGES and self.version == 2:
            self.patch(MESSAGES[kind], update)
        self.last_kind = kind

    def append(self, role: str, update: dict[str, Any]) -> None:
        id = update.get("messageId")
        if id is None:
            # Without ids, another kind of update ends a message.
            again = self.last_kind == update["sessionUpdate"]
            id = len(self.messages) - 1 if again else len(self.messages)
        self.message(role, id).append(self.text_of(update.get("content")))

    def patch(self, role: str, update: dict[str, Any]) -> None:
        content = self.message(role, update["messageId"])
        new = update.get("content", ...)
        if new is None or isinstance(new, list):
            content[:] = [self.text_of(block) for block in new or []]

    def message(self, role: str, id: Any) -> list[str]:
        return self.messages.setdefault(self.message_key(role, id), [])

    def message_key(self, role: str, id: Any) -> tuple[str, Any]:
        return role, id

    def text_of(self, block: Any) -> str:
        words = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
        return words if isinstance(words, str) else ""

    def output(self) -> str:
        return "\n".join("".join(parts) for (role, _), parts in self.messages.items() if role == "agent")

    # --- what the agent asks for -------------------------------------------------------------------

    def receive_request(self, id: Any, method: str, params: dict[str, Any]) -> None:
        if method == "session/request_permission":
            self.on_permission(id, params)
        elif method == "elicitation/create":
            self.on_elicitation(id, params)
        elif method == "fs/read_text_file" and self.version == 1:
            self.answer(id, {"content": self.read_file(params)})
        elif method == "fs/write_text_file" and self.version == 1:
            self.write_file(params)
            self.answer(id, {})
        elif method.startswith("terminal/") and self.version == 1:
            self.on_terminal(id, method, params)
        else:
            self.on_unknown_request(id, method)

    def on_unknown_request(self, id: Any, method: str) -> None:
        self.refuse(id, METHOD_NOT_FOUND, "Method not found")

    def on_permission(self, id: Any, params: dict[str, Any]) -> None:
        options = params.get("options")
        if not isinstance(options, list) or not options:
            raise RequestRefused(INVALID_PARAMS, "Expected options")
        self.ask(id, options)

    def ask(self, id: Any, options: list[dict[str, Any]]) -> None:
        self.answer(id, {"outcome": self.decide(options)})

    def decide(self, options: list[dict[str, Any]]) -> dict[str, Any]:
        for option in options:
            if str(option.get("kind")).startswith("allow"):
                return {"outcome": "selected", "optionId": option["optionId"]}
        return {"outcome": "cancelled"}

    def cancel_question(self, id: Any) -> None:
        """Answer an open question whose request the agent cancels."""
        if self.questions.pop(id, None):
            self.answer(id, {"outcome": {"outcome": "cancelled"}})

    def cancel(self) -> None:
        """Cancel the turn, as the user asked with Ctrl-C."""
        self.notify("session/cancel", {"sessionId": self.session})
        if self.version == 1:
            for id in list(self.questions):
                self.cancel_question(id)

    def on_elicitation(self, id: Any, params: dict[str, Any]) -> None:
        if params.get("mode") != "form":
            raise RequestRefused(INVALID_PARAMS, "Expected the mode form")
        self.answer(id, self.fill_in(params["requestedSchema"]))

    def fill_in(self, schema: dict[str, Any]) -> dict[str, Any]:
        content = {name: field.get("default", "") for name, field in schema["properties"].items()}
        return {"action": "accept", "content": content}

    def read_file(self, params: dict[str, Any]) -> str:
        try:
            with open(params["path"], encoding="utf-8") as file:
                lines = file.readlines()
        except FileNotFoundError:
            raise RequestRefused(RESOURCE_NOT_FOUND, "No such file") from None
        first = (params.get("line") or 1) - 1
        limit = params.get("limit")
        return "".join(lines[first : None if limit is None else first + limit])

    def write_file(self, params: dict[str, Any]) -> None:
        with open(params["path"], "w", encoding="utf-8") as file:
            file.write(params["content"])

    def on_terminal(self, id: Any, method: str, params: dict[str, Any]) -> None:
        try:
            self.terminals.receive(id, method, params)
        except KeyError:
            raise RequestRefused(RESOURCE_NOT_FOUND, "No such terminal") from None

    # --- the process -------------------------------------------------------------------------------

    def run(self) -> int:
        signal.signal(signal.SIGINT, lambda number, frame: self.cancel())
        self.start()
        try:
            for line in self.agent.stdout:
                self.receive_line(line)
                if self.finished:
                    break
            else:
                self.on_death()
        except ClientFailed as failed:
            print(failed, file=sys.stderr)
            return 1
        print(self.output())
        return 0

    def on_death(self) -> None:
        raise ClientFailed("the agent ended")


class PatientClient(GoodClient):
    """Asks a person for permission, who never decides."""

    def ask(self, id: Any, options: list[dict[str, Any]]) -> None:
        self.questions[id] = options


def main(client_class: type[GoodClient] = GoodClient) -> None:
    pipe = subprocess.PIPE
    agent = subprocess.Popen(shlex.split(sys.argv[-1]), stdin=pipe, stdout=pipe)
    client = client_class(agent)
    code = client.run()
    client.terminals.close()
    agent.stdin.close()
    agent.wait()
    sys.exit(code)


if __name__ == "__main__":
    main()
