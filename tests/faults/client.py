"""One client of the run's session, through all lives of the agent: what it asks, and what it hears."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.faults.ledger import Change, ChangeKind, Ledger, Prompt
from tests.faults.links import Frame, Link
from tests.faults.transcript import Transcript
from tests.faults.violation import check

INFO = {"name": "faults", "version": "1"}
SHAPES: dict[int, dict[str, Any]] = {
    1: {"clientInfo": INFO, "clientCapabilities": {}},
    2: {"info": INFO, "capabilities": {}},
}
ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow"}}

Receive = Callable[[Link], Frame]
"""Waits for the next frame of a link."""


class Client:
    def __init__(self, name: str, version: int, ledger: Ledger) -> None:
        self.name = name
        self.version = version
        self.seen = Transcript()
        self.link: Link | None = None
        self.joined = False
        self.session = ""
        self._ledger = ledger
        self._sent: list[Prompt] = []
        self._pending: dict[str, Prompt | Change] = {}
        self._mine: list[Prompt] = []

    # --- joining and leaving -----------------------------------------------------------------------

    def connect(self, link: Link, receive: Receive) -> None:
        self.link = link
        self._sent = []
        self._ledger.sendings.append(self._sent)
        self.send(
            id="init", method="initialize", params={"protocolVersion": self.version, **SHAPES[self.version]}
        )
        self._answer("init", receive(link))

    def new_session(self, receive: Receive) -> str:
        assert self.link is not None
        self.send(id="new", method="session/new", params={"cwd": "/", "mcpServers": []})
        self.session = self._answer("new", receive(self.link))["sessionId"]
        self.joined = True
        return self.session

    def replay(self, session: str, receive: Receive) -> Transcript:
        """Join, from the start: what comes before the answer is what the session holds."""
        assert self.link is not None
        self.session = session
        setup: dict[str, Any] = {"sessionId": session, "cwd": "/", "mcpServers": []}
        if self.version == 1:
            self.send(id="join", method="session/load", params=setup)
        else:
            self.send(id="join", method="session/resume", params={**setup, "replayFrom": {"type": "start"}})
        replayed = Transcript()
        while "id" not in (frame := receive(self.link)):
            check(frame["method"] == "session/update", f"{frame} in a replay")
            replayed.apply(frame["params"]["update"])
        self._answer("join", frame)
        return replayed

    def join(self, replayed: Transcript) -> None:
        """Go on from a replay, and ask again for what was not answered."""
        self.seen, self.joined = replayed, True
        for prompt in self._mine:
            if not prompt.answered:
                self.ask(prompt)

    def leave(self) -> None:
        """The connection is lost: what is not answered stays open."""
        if self.link is not None:
            self.link.close()
        self.link, self.joined = None, False
        self._pending.clear()

    # --- asking ------------------------------------------------------------------------------------

    def send(self, **frame: Any) -> None:
        assert self.link is not None
        self.link.send({"jsonrpc": "2.0", **frame})

    def ask(self, prompt: Prompt) -> None:
        if not prompt.asked:
            prompt.asked = True
            self._mine.append(prompt)
            self._sent.append(prompt)
            self._ledger.prompts[prompt.operation] = prompt
        content = [{"type": "text", "text": prompt.operation}]
        params: dict[str, Any] = {"sessionId": self.session}
        if prompt.injected:
            params |= {"content": content, "mode": prompt.delivery, "operationId": prompt.operation}
        else:
            ours = {"operationId": prompt.operation, "delivery": prompt.delivery}
            params |= {"prompt": content, "_meta": {"antiphon": ours}}
        self._pending[prompt.operation] = prompt
        self.send(
            id=prompt.operation,
            method="_antiphon/inject" if prompt.injected else "session/prompt",
            params=params,
        )

    def change(self, change: Change) -> None:
        params: dict[str, Any] = {"sessionId": self.session, "messageId": change.message_id}
        if change.kind is ChangeKind.REPLACE:
            params["content"] = [{"type": "text", "text": change.text}]
        elif change.before is not None:
            params["before"] = change.before
        id = f"change {len(self._ledger.changes)}"
        self._ledger.changes.append(change)
        self._pending[id] = change
        self.send(id=id, method=f"_antiphon/{change.kind}_inject", params=params)

    def ask_for_queue(self, receive: Receive) -> list[tuple[str, str]]:
        """What waits after a restart, by message id and text. Only where nothing else is on its way."""
        assert self.link is not None
        self.send(id="queue", method="_antiphon/list_inject", params={"sessionId": self.session})
        listed = self._answer("queue", receive(self.link))
        waits = "after a restart what waits is paused, and nothing else is"
        check(listed["paused"] is bool(listed["entries"]), waits)
        return [(entry["messageId"], entry["content"][0]["text"]) for entry in listed["entries"]]

    def start_queue(self, receive: Receive) -> None:
        assert self.link is not None
        self.send(id="go", method="_antiphon/resume_queue", params={"sessionId": self.session})
        while (frame := receive(self.link)).get("id") != "go" or "method" in frame:
            self.hear(frame)
        self._answer("go", frame)

    # --- hearing -----------------------------------------------------------------------------------

    def hear(self, frame: Frame, *, answering: bool = True) -> None:
        method = frame.get("method")
        if method == "session/update":
            self.seen.apply(frame["params"]["update"])
        elif method == "session/request_permission":
            if answering:
                self.send(id=frame["id"], result=ALLOW)
        elif method is None:
            if frame["id"] == "go":
                return  # the kill came while this was waited for
            check(frame["id"] in self._pending, f"{self.name} asked for nothing and was answered {frame}")
            self._pending.pop(frame["id"]).answer(frame)
        else:
            # Another client was quicker to answer, or the turn was cancelled.
            check(method == "$/cancel_request", f"{self.name} was sent {frame}")

    def hear_the_rest(self) -> None:
        """What was on its way when the agent was killed; a replay that was cut tells nothing."""
        if self.joined and self.link is not None:
            self.link.read_to_the_end()
            for frame in self.link.waiting:
                self.hear(frame, answering=False)

    def _answer(self, id: str, frame: Frame) -> dict[str, Any]:
        check(frame.get("id") == id and "result" in frame, f"{self.name} asked {id} and was answered {frame}")
        return dict(frame["result"])

    @property
    def at_rest(self) -> bool:
        """Whether everything asked is answered and, as far as this client is told, nothing is at work."""
        if self._pending:
            return False
        if self.version == 1:
            return not self.seen.running
        given = {prompt.message_id for prompt in self._ledger.prompts.values()} - {None}
        owed = {("user", id) for id in given - self._ledger.revoked}
        return self.seen.idle and owed <= self.seen.texts.keys()
