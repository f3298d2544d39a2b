"""The clients of a session: those that are attached here, and those at other hubs."""

from __future__ import annotations

import asyncio
import itertools
import json

from antiphon.live.presence import PACE, Presence, rfc3339
from antiphon.schema.antiphon.clients import Present, Who

DEADLINE = 60.0
START = 1_800_000_000_000


class Follower:
    client_version = None

    def __init__(self, id: str) -> None:
        self.who = Who(client_id=id)
        self.shown = asyncio.Event()

    def show_presence(self) -> None:
        self.shown.set()


def there(id: str, at: int, *, you: bool = False) -> Present:
    return Present(client_id=id, joined_at=rfc3339(START + at), you=you)


def presence(*ids: str) -> tuple[Presence, list[Follower]]:
    """Clients that joined one second after the other."""
    clock = itertools.count(START, 1000)
    made = Presence(lambda: next(clock), on_change=lambda: None)
    followers = [Follower(id) for id in ids]
    for follower in followers:
        made.join(follower)
    return made, followers


def ids(clients: list[Present]) -> list[str]:
    return [one.client_id for one in clients]


async def test_clients_elsewhere_are_listed_where_they_joined() -> None:
    made, _ = presence("a", "b", "c")
    made.set_elsewhere("hub 2", [there("y", 1500), there("x", 500)])
    made.set_elsewhere("hub 3", [there("z", 2500), Present(client_id="unknown", joined_at="soon")])
    assert ids(made.clients()) == ["a", "x", "b", "y", "c", "z", "unknown"]
    assert ids(made.local_clients()) == ["a", "b", "c"]
    made.set_elsewhere("hub 2", [there("x", 500)])
    made.set_elsewhere("hub 3", [])
    assert ids(made.clients()) == ["a", "x", "b", "c"]


async def test_a_client_that_is_here_and_elsewhere_is_listed_once_as_it_is_here() -> None:
    made, (a, _) = presence("a", "b")
    made.set_elsewhere("hub 2", [there("a", -500), there("x", 100)])
    made.set_elsewhere("hub 3", [there("x", -100)])
    assert ids(made.clients()) == ["x", "a", "b"]
    assert [one.joined_at for one in made.clients()] == [rfc3339(START + at) for at in (-100, 0, 1000)]
    made.leave(a)
    assert ids(made.clients()) == ["a", "x", "b"]


async def test_only_the_receiver_of_a_list_is_you() -> None:
    made, (a,) = presence("a")
    made.set_elsewhere("hub 2", [there("x", 500, you=True)])
    assert [one.you for one in made.clients()] == [False, False]
    assert [one.you for one in made.clients(you=a)] == [True, False]
    listed = json.loads(made.update(a.who))["clients"]
    assert [(one["clientId"], one.get("you", False)) for one in listed] == [("a", True), ("x", False)]


async def test_a_change_elsewhere_is_shown_and_the_same_list_again_is_not() -> None:
    made, (a,) = presence("a")
    later = asyncio.Event()
    async with asyncio.timeout(DEADLINE):
        await a.shown.wait()
        a.shown.clear()
        made.set_elsewhere("hub 2", [there("x", 500)])
        await a.shown.wait()
        a.shown.clear()
        made.set_elsewhere("hub 2", [there("x", 500)])
        made.set_elsewhere("hub 3", [])
        asyncio.get_running_loop().call_later(2 * PACE, later.set)  # the timers of a loop ring in order
        await later.wait()
    assert not a.shown.is_set()


async def test_a_client_keeps_its_time_when_it_is_handed_over() -> None:
    made, (a, b) = presence("a", "b")
    other, _ = presence("z")
    before = made.clients()
    made.hand_over(a, other)
    made.hand_over(b, made)
    assert ids(made.clients()) == ["b"]
    assert before[0] in other.clients()
    other.hand_over(b, made)
    assert ids(made.clients()) == ["b"], "who is not there is not handed over"
