"""kill -9 at random points of a busy run: `make faults`, or `python -m tests.faults.campaign [--runs N]`.

A run is one seed. A client prompts an agent, queues more, reads what comes, and at a point that the seed
decides the agent's process is killed; once, or again after its return. Then the store and what the next
process replays are held against everything the client ever saw. At last the prompts that were not answered
are sent again, with their operation ids, and the work is finished: nothing may be missing or there twice.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from antiphon.engine.events import PromptAccepted, Updated, decode_event
from antiphon.engine.prompt_states import PromptState
from antiphon.engine.session import Session
from antiphon.engine.snapshot import parts
from antiphon.engine.turn import TurnState
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.stores import SQLiteStore
from tests.faults.client import Client, Transcript, Violation, check

RUNS = 200
PROMPTS = 6
FRAMES = 2400
"""About what a run without a kill consists of."""
RANK = {None: 0, "pending": 0, "in_progress": 1, "completed": 2, "failed": 2}


class Run:
    """One seed's story."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.store = folder / "store.db"
        self.log = folder / "stderr"
        self.session = ""
        self.seen = Transcript()
        self.sent: list[str] = []
        """Operation ids, in the order in which the prompts were first sent; the prompt's text is the same."""
        self.delivery = {
            self.text(n): "steer" if self.chance.random() < 0.25 else "queue" for n in range(PROMPTS)
        }
        self.answered: dict[str, str] = {}
        """The message id that each answered prompt was given."""
        self.due = False
        """Whether a turn was promised by an answer, and has not begun."""
        self.interrupted = 0
        self.cut = False
        """Whether the last kill cut a turn, by the journal."""

    def text(self, number: int) -> str:
        return f"prompt {number} of {self.seed}"

    def play(self) -> str:
        """Raises `Violation`; returns in a few words what happened."""
        told = []
        for _ in range(self.chance.choice((1, 1, 2))):
            killed = self.live(kill_after=self.chance.randint(1, FRAMES))
            queue = self.look_into_the_store()
            told.append(f"{killed}{' in a turn' * self.cut} with {queue} queued")
        told.append(self.live(kill_after=None))
        self.look_at_the_end()
        return ", ".join(told)

    # --- one life of the process -------------------------------------------------------------------

    def live(self, *, kill_after: int | None) -> str:
        client = Client(self.store, self.log)
        try:
            client.send(
                id="init",
                method="initialize",
                params={
                    "protocolVersion": 2,
                    "info": {"name": "faults", "version": "1"},
                    "capabilities": {},
                },
            )
            client.answer_to("init")
            if self.session:
                self.resume(client)
            else:
                client.send(id="new", method="session/new", params={"cwd": "/", "mcpServers": []})
                self.session = client.answer_to("new")["sessionId"]
            frames = self.work(client, kill_after)
            if kill_after is None:
                return f"finished with {frames} frames"
            time.sleep(self.chance.choice((0, self.chance.random() * 0.003)))  # where in a commit it hits
            for frame in client.kill():
                self.hear(frame, None)
            return f"killed after {frames} frames"
        finally:
            client.close()

    def work(self, client: Client, kill_after: int | None) -> int:
        """Until everything is answered and the session is idle, or so many frames have come."""
        for operation in [one for one in self.sent if one not in self.answered]:
            self.prompt(client, operation)
        later = {self.text(n): self.chance.randint(0, FRAMES // 2) for n in range(PROMPTS)}
        frames = 0
        while kill_after is None or frames < kill_after:
            idle = self.seen.state.get("state", "idle") == "idle" and not self.due
            for operation in [one for one in later if one not in self.sent]:
                if later[operation] <= frames or (idle and len(self.answered) == len(self.sent)):
                    self.prompt(client, operation)
            if idle and len(self.answered) == PROMPTS:
                break
            self.hear(client.next(), client)
            frames += 1
        return frames

    def prompt(self, client: Client, operation: str) -> None:
        if operation not in self.sent:
            self.sent.append(operation)
        ours = {"operationId": operation, "delivery": self.delivery[operation]}
        client.send(
            id=operation,
            method="session/prompt",
            params={
                "sessionId": self.session,
                "prompt": [{"type": "text", "text": operation}],
                "_meta": {"antiphon": ours},
            },
        )

    def hear(self, frame: dict[str, Any], client: Client | None) -> None:
        method = frame.get("method")
        if method == "session/update":
            update = frame["params"]["update"]
            self.seen.apply(update)
            self.due = self.due and update["sessionUpdate"] != "state_update"
        elif method == "session/request_permission" and client is not None:
            chosen = {"outcome": {"outcome": "selected", "optionId": "allow"}}
            client.send(id=frame["id"], result=chosen)
        elif method is None:
            check("result" in frame, f"a prompt was refused: {frame}")
            check(frame["id"] not in self.answered, f"{frame['id']} was answered twice")
            taken = self.answered[frame["id"]] = frame["result"]["messageId"]
            self.due = ("user", taken) not in self.seen.texts

    # --- what has to hold --------------------------------------------------------------------------

    def resume(self, client: Client) -> None:
        """What is replayed is everything that was seen, once, and perhaps more."""
        client.send(
            id="resume",
            method="session/resume",
            params={
                "sessionId": self.session,
                "cwd": "/",
                "mcpServers": [],
                "replayFrom": {"type": "start"},
            },
        )
        replayed = Transcript()
        while "id" not in (frame := client.next()):
            check(frame["method"] == "session/update", f"{frame} in a replay")
            replayed.apply(frame["params"]["update"])
        check(frame["id"] == "resume" and "result" in frame, f"the session did not come back: {frame}")

        twice = [key for key, times in Counter(replayed.whole).items() if times > 1]
        check(not twice, f"replayed twice: {twice}")
        was, now = list(self.seen.texts), list(replayed.texts)
        check(now[: len(was)] == was, f"items are missing or out of order: {was} became {now}")
        for key, text in self.seen.texts.items():
            check(replayed.texts[key].startswith(text), f"{key} was {text!r} and is {replayed.texts[key]!r}")
        for id, call in self.seen.calls.items():
            back = replayed.calls[id]
            check(back.get("title") == call.get("title"), f"the tool call {call} became {back}")
            check(RANK[back.get("status")] >= RANK[call.get("status")], f"the call {call} became {back}")
        check(replayed.plans.keys() >= self.seen.plans.keys(), "a plan is missing")
        numbered(replayed)

        state = replayed.state
        check(state.get("state") == "idle", f"after a resume the state is {state}")
        if self.cut:
            self.interrupted += 1
            data = (state.get("error") or {}).get("data")
            check(
                state.get("stopReason") == "error" and data == {"reason": "interrupted"},
                f"a turn was cut and the state says {state}",
            )
        elif state.get("stopReason") is not None:
            check(state["stopReason"] in ("end_turn", "error"), f"no turn was cut and the state says {state}")
        self.seen, self.due = replayed, False

    def look_into_the_store(self) -> int:
        """Untouched since the kill: the journal, its snapshot and the queue, whose length this is."""
        fold = asyncio.run(self.folded())
        self.cut = fold.state is not TurnState.IDLE
        known = [fold.prompts.of_operation(operation) for operation in self.sent]
        entries = [entry for entry in known if entry is not None]
        check(None not in known[: len(entries)], "a prompt is in the journal, and one sent before it is not")
        states = {entry.state for entry in entries}
        check(states <= {PromptState.ACCEPTED, PromptState.QUEUED}, f"prompts became {states}")
        waiting = [entry.message_id for entry in entries if entry.state is PromptState.QUEUED]
        queue = [entry.message_id for entry in fold.queue]
        check(queue == waiting, f"the queue should hold {waiting} and holds {queue}")
        for operation, message_id in self.answered.items():
            entry = fold.prompts.of_operation(operation)
            check(
                entry is not None and entry.state is PromptState.ACCEPTED and entry.message_id == message_id,
                f"{operation} was answered with {message_id} and is {entry}",
            )
        for entry in fold.queue:
            check(("user", entry.message_id) not in self.seen.texts, f"{entry} was seen, and waits again")
        return len(queue)

    async def folded(self) -> Session:
        """The session as its snapshot and the rest make it, which is what the whole journal makes it."""
        async with SQLiteStore(self.store) as store:
            fold = (await LiveSession.open(store, self.session, clock=lambda: 0)).fold
            whole, accepted, cut = Session(), Counter[str](), 0
            while (page := await store.read(self.session, whole.last_seq)).batches:
                for event in (decode_event(raw) for batch in page.batches for raw in batch.events):
                    check(event.seq == whole.last_seq + 1, f"event {event.seq} follows {whole.last_seq}")
                    whole.apply(event)
                    if isinstance(event.body, PromptAccepted):
                        accepted[event.body.message_id] += 1
                    elif isinstance(event.body, Updated) and isinstance(event.body.update, v2.StateUpdate):
                        error = event.body.update.error
                        cut += error is not None and error.data == {"reason": "interrupted"}
        check(whole.last_seq == fold.last_seq, "the snapshot and the rest do not reach the journal's end")
        check(parts(whole) == parts(fold), "the snapshot and the rest are not what the journal is")
        check(all(times == 1 for times in accepted.values()), f"a prompt was taken twice: {accepted}")
        check(
            cut == self.interrupted, f"{self.interrupted} turns were cut, and {cut} are told as interrupted"
        )
        return whole

    def look_at_the_end(self) -> None:
        """Every prompt was taken once, under the id it was answered with, and the queue is empty."""
        said = {key: text for key, text in self.seen.texts.items() if key[0] == "user"}
        wanted = {("user", self.answered[operation]): operation for operation in self.sent}
        check(said == wanted, f"the user said {wanted}, and the session holds {said}")
        check(self.seen.state.get("state") == "idle", f"it ended with {self.seen.state}")
        numbered(self.seen)
        fold = asyncio.run(self.folded())
        check(not fold.queue, f"left in the queue: {fold.queue}")


def numbered(transcript: Transcript) -> None:
    """The agent counts in everything it says: a chunk that is missing or doubled breaks the row."""
    for (kind, id), text in transcript.texts.items():
        if kind == "user":
            continue
        numbers = [int(word) for word in text.split()]
        rows = numbers.index(0, 1) if kind == "agent" and 0 in numbers[1:] else len(numbers)
        right = [*range(rows), *range(len(numbers) - rows)]
        check(numbers == right, f"{kind} {id} does not count: {text!r}")


def run(seed: int) -> str:
    """Raises `Violation`, with the seed and what the agent logged."""
    with tempfile.TemporaryDirectory() as folder:
        story = Run(seed, Path(folder))
        try:
            told = story.play()
            logged = story.log.read_text()
            check(not logged, "the agent complained")
        except Violation as violation:
            logged = story.log.read_text() if story.log.exists() else ""
            raise Violation(f"seed {seed}: {violation}\n{logged}") from None
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, help="the seed of the first run; by default one by chance")
    given = parser.parse_args()
    first = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    began = time.monotonic()
    for number in range(given.runs):
        try:
            told = run(first + number)
        except Violation as violation:
            print(f"VIOLATION after {number} good runs, {violation}")
            return 1
        print(f"{number + 1}/{given.runs} seed {first + number}: {told}", flush=True)
    print(f"{given.runs} runs without a violation in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
