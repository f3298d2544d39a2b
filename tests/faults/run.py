"""One run: the story of a seed, played against real processes, and checked after every kill."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from tests.faults.agent_process import AgentProcess
from tests.faults.checks import (
    check_cuts,
    check_end,
    check_ledger,
    check_reopened,
    check_replay,
    check_seen,
    read_store,
)
from tests.faults.client import Client
from tests.faults.journal import Journal
from tests.faults.ledger import Change, ChangeKind, Ledger, Prompt
from tests.faults.links import Frame, Link, wait_for_any
from tests.faults.story import Act, Kill, Presence, Story
from tests.faults.transcript import Key, Transcript
from tests.faults.violation import Silence, Violation, check

LATE = "a late response to an abandoned session/request_permission was dropped"
"""Another client was quicker to answer, or the turn was cancelled meanwhile: no complaint."""


class KillPoint(Exception):
    """The moment in which the agent is killed, after a pause in seconds."""

    def __init__(self, *, pause: float = 0) -> None:
        super().__init__()
        self.pause = pause


class Run:
    def __init__(self, seed: int, folder: Path) -> None:
        self.story = Story(seed)
        self.store = folder / "store.db"
        self.log = folder / "stderr"
        self.ledger = Ledger()
        versions = self.story.mix.versions
        self.clients = [Client(f"client {n} (v{v})", v, self.ledger) for n, v in enumerate(versions)]
        self.acts = self.story.acts()
        self.session = ""
        self.journal = Journal()
        """As it was at the last kill."""
        self.cuts: list[int] = []
        """The turns that were open at a kill."""
        self._heard = 0
        self._kill: Kill | None = None

    def play(self) -> str:
        """Raises `Violation`; returns in a few words what happened."""
        told = [self.story.mix.name]
        for kill in self.story.kills:
            told.append(self._live(kill))
            self._look_into_the_store()
            told.append(self._how_it_was())
        told.append(self._live(None))
        self._look_into_the_store()
        check_end(self.ledger, self.journal, self.clients)
        return ", ".join(told)

    # --- one life of the process -------------------------------------------------------------------

    def _live(self, kill: Kill | None) -> str:
        self._heard, self._kill = 0, kill
        process = AgentProcess(self.store, self.log, websocket=self.story.mix.websocket)
        try:
            self._play_until_killed(process)
            process.kill()
            for client in self.clients:
                client.hear_the_rest()
        except Silence:
            process.say_where()
            raise
        finally:
            for client in self.clients:
                client.leave()
            process.close()
        return f"{'finished' if kill is None else 'killed'} after {self._heard} frames"

    def _play_until_killed(self, process: AgentProcess) -> None:
        try:
            self._open(process)
            self._work(process)
            if self._kill is None:
                self._compare()
        except KillPoint as point:
            time.sleep(point.pause)

    def _open(self, process: AgentProcess) -> None:
        """The first client makes the session, or brings it back."""
        client = self.clients[0]
        if not self.session:
            link = process.connect()
            client.connect(link, _next_of)
            self.session = client.new_session(_next_of)
            return
        client.connect(process.connect(), self._next)
        replayed = client.replay(self.session, self._next)
        check_replay(client, replayed)
        if client.version == 2:
            check_reopened(replayed, self.journal)
        waiting = [(id, self.journal.texts[id]) for id in self.journal.queue]
        listed = client.ask_for_queue(self._next)
        check(listed == waiting, f"the queue was {waiting}, and after the restart it is {listed}")
        check(not replayed.running, f"{replayed.running} run on, and nobody is there to end them")
        client.join(replayed)
        client.start_queue(self._next)

    def _work(self, process: AgentProcess) -> None:
        """Until all is done and the session at rest."""
        later = self.story.comings_and_goings()
        while True:
            act = self._due(later) or self._due(self.acts)
            if act is not None:
                self._do(act, process)
            elif self._at_rest:
                return
            else:
                self._hear_one()

    @property
    def _at_rest(self) -> bool:
        return all(client.at_rest for client in self.clients if client.joined)

    def _due(self, acts: list[Act]) -> Act | None:
        """The next act whose time has come; where nothing else happens it comes at once."""
        for act in acts:
            able = act.deed is Presence.JOIN or self.clients[act.client].joined
            if able and (act.at <= self._heard or self._at_rest):
                acts.remove(act)
                return act
        return None

    def _do(self, act: Act, process: AgentProcess) -> None:
        client = self.clients[act.client]
        match act.deed:
            case Presence.JOIN:
                client.connect(process.connect(), self._next)
                replayed = client.replay(self.session, self._next)
                check_replay(client, replayed)
                client.join(replayed)
            case Presence.LEAVE:
                client.leave()
            case Prompt() as prompt:
                client.ask(prompt)
            case ChangeKind() as kind:
                self._change(client, kind)

    def _change(self, client: Client, kind: ChangeKind) -> None:
        """Of a prompt that was injected, and seems to wait; it may be too late."""
        waiting = [id for id in self.ledger.injected if ("user", id) not in self.clients[0].seen.texts]
        candidates = waiting or self.ledger.injected
        if not candidates:
            return
        id = self.story.chance.choice(candidates)
        others = [other for other in candidates if other != id]
        before = self.story.chance.choice([None, *others]) if kind is ChangeKind.MOVE else None
        client.change(Change(kind, id, text=f"edit {len(self.ledger.changes)} of {id}", before=before))

    # --- hearing -----------------------------------------------------------------------------------

    def _hear_one(self) -> None:
        by_link = {client.link: client for client in self.clients if client.joined and client.link}
        link = self.story.chance.choice(wait_for_any([*by_link]))
        frame = self._next(link)
        by_link[link].hear(frame)
        if "method" not in frame and self._due_to_die(on_answer=True):
            raise KillPoint

    def _next(self, link: Link) -> Frame:
        if self._due_to_die(on_answer=False):
            # Where in a commit it hits is left to chance.
            raise KillPoint(pause=self.story.chance.choice((0, self.story.chance.random() * 0.003)))
        self._heard += 1
        return _next_of(link)

    def _due_to_die(self, *, on_answer: bool) -> bool:
        kill = self._kill
        return kill is not None and kill.on_answer is on_answer and self._heard >= kill.after

    # --- checking ----------------------------------------------------------------------------------

    def _look_into_the_store(self) -> None:
        self.journal = asyncio.run(read_store(self.store, self.session))
        check_cuts(self.journal, self.cuts)
        check_ledger(self.ledger, self.journal)
        self.ledger.withdrawn = self.journal.withdrawn
        for client in self.clients:
            check_seen(client, self.journal)
        if self.journal.open is not None:
            self.cuts.append(self.journal.open.opened)

    def _how_it_was(self) -> str:
        """What the kill hit."""
        hit = ["in a turn"] if self.journal.open is not None else []
        hit += [f"{len(self.journal.queue)} queued"] if self.journal.queue else []
        hit += [f"{len(self.journal.background)} behind"] if self.journal.background else []
        return " with ".join(hit) or "at rest"

    def _compare(self) -> None:
        """At rest all clients hold the same, and so does who joins now."""
        for client in self.clients:
            while _said(client.seen) != _said(self.clients[0].seen):
                self._hear_one()  # it lags
            assert client.link is not None
            replayed = client.replay(self.session, self._next)
            check_replay(client, replayed)
            same = _said(replayed) == _said(client.seen)
            check(same, f"{client.name} followed {_said(client.seen)}, and is replayed {_said(replayed)}")
            client.seen = replayed


def _said(transcript: Transcript) -> dict[Key, str]:
    """All that the agent said; only its own prompts a client may not be shown."""
    return {key: text for key, text in transcript.texts.items() if key[0] != "user"}


def _next_of(link: Link) -> Frame:
    wait_for_any([link])
    return link.waiting.popleft()


def run(seed: int) -> str:
    """Raises `Violation`, with the seed and what the agent logged."""
    with tempfile.TemporaryDirectory() as folder:
        played = Run(seed, Path(folder))
        try:
            told = played.play()
            complaints = [line for line in played.log.read_text().splitlines() if not line.startswith(LATE)]
            check(not complaints, "the agent complained")
        except Violation as violation:
            logged = played.log.read_text() if played.log.exists() else ""
            raise Violation(f"seed {seed} ({played.story.mix.name}): {violation}\n{logged}") from None
        except Exception as error:
            error.add_note(f"in the run of seed {seed} ({played.story.mix.name})")
            raise
    return told
