"""Broken clients: the order of updates, and the end of a turn."""

from __future__ import annotations

from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good.client import ClientFailed, GoodClient

defects = Defects()


@defects.add("RPC-37", versions=(2,))
class AppliesUpdatesInPairs(GoodClient):
    """It applies the second of two chunks before the first, as a task for each may do."""

    first: dict[str, Any] | None = None

    def apply(self, update: dict[str, Any]) -> None:
        words = self.text_of(update.get("content"))
        if "long enough" not in words:
            super().apply(update)
        elif self.first is None:
            self.first = update
        else:
            super().apply(update)
            super().apply(self.first)
            self.first = None


@defects.add("PROMPT-V1-04", versions=(1,))
class LosesTheLastChunks(GoodClient):
    """It has not applied the last chunks when it takes the turn as ended."""

    def __init__(self, agent: Any) -> None:
        super().__init__(agent)
        self.behind: list[dict[str, Any]] = []

    def apply(self, update: dict[str, Any]) -> None:
        if "long enough" not in self.text_of(update.get("content")):
            super().apply(update)
            return
        self.behind.append(update)
        if len(self.behind) > 100:
            super().apply(self.behind.pop(0))


@defects.add("PROMPT-V2-52", versions=(2,))
class EndsWithTheAnswer(GoodClient):
    """It takes the answer to the prompt as the end of the turn."""

    def prompted(self, result: dict[str, Any]) -> None:
        super().prompted(result)
        self.end_turn()


@defects.add("PROMPT-V2-19", versions=(2,))
class PairsIdleWithItsPrompt(GoodClient):
    """It takes the end of any work as the end of its prompt, answered or not."""

    def on_state(self, update: dict[str, Any]) -> None:
        if update.get("state") == "idle" and self.worked:
            self.end_turn()
        super().on_state(update)


@defects.add("PROMPT-V2-20", versions=(2,))
class EndsWithARepeatedIdle(GoodClient):
    """It takes a repeated idle state as the end of its prompt."""

    idles = 0

    def on_state(self, update: dict[str, Any]) -> None:
        if update.get("state") == "idle":
            self.idles += 1
            if self.idles == 2:
                self.end_turn()
        super().on_state(update)


@defects.add("PROMPT-V2-14", versions=(2,))
class NeedsAStopReason(GoodClient):
    """It rejects an idle state without a stop reason."""

    def on_state(self, update: dict[str, Any]) -> None:
        if update.get("state") != "idle" or not self.worked or isinstance(update.get("stopReason"), str):
            super().on_state(update)


@defects.add("PROMPT-V2-05", versions=(2,))
class NeedsTheAnswerFirst(GoodClient):
    """It fails if the user's message comes back before the prompt is answered."""

    def patch(self, role: str, update: dict[str, Any]) -> None:
        if role == "user" and not self.prompt_answered:
            raise ClientFailed("a message that nobody sent")
        super().patch(role, update)


@defects.add("SESS-07", versions=(2,))
class KnowsNoSessionYet(GoodClient):
    """It fails if an update comes before its session is known."""

    def apply(self, update: dict[str, Any]) -> None:
        if not self.session:
            raise ClientFailed("an update of an unknown session")
        super().apply(update)


@defects.add("PROMPT-V2-29", versions=(2,))
class TakesUpdatesInTurnsOnly(GoodClient):
    """It fails if a message comes while the session is idle."""

    def patch(self, role: str, update: dict[str, Any]) -> None:
        if self.session and role == "agent" and not self.worked:
            raise ClientFailed("a message outside of a turn")
        super().patch(role, update)


@defects.add("PROMPT-V2-55", versions=(2,))
class WaitsForIdleAfterARefusal(GoodClient):
    """It waits for an idle state after its prompt was refused."""

    def on_refused(self, done: Any, error: Any) -> None:
        if done != self.prompted:
            super().on_refused(done, error)


@defects.add("RPC-23", versions=(1,))
class KnowsItsErrorCodesOnly(GoodClient):
    """It drops an error whose code it does not know."""

    def on_refused(self, done: Any, error: Any) -> None:
        if error["code"] < 0:
            super().on_refused(done, error)


@defects.add("RPC-26", versions=(2,))
class NeedsAnObjectAsData(GoodClient):
    """It drops an error whose data is no object."""

    def on_refused(self, done: Any, error: Any) -> None:
        if isinstance(error.get("data", {}), dict):
            super().on_refused(done, error)


@defects.add("RPC-36", versions=(1,))
class WaitsForADeadAgent(GoodClient):
    """It waits for ever when the agent has died."""

    def on_death(self) -> None:
        import threading

        threading.Event().wait()


@defects.add("TRANS-07", versions=(1,))
class NeedsTheLastNewline(GoodClient):
    """It drops the last line if the agent ends without a newline."""

    def receive_line(self, line: bytes) -> None:
        if line.endswith(b"\n"):
            super().receive_line(line)
