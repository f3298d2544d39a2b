"""What a hub knows of the sessions of others, from news that may be lost or late."""

from __future__ import annotations

from antiphon.hub.cluster.announcements import News, Seen
from antiphon.hub.cluster.sessions_elsewhere import SessionsElsewhere
from antiphon.schema.antiphon.clients import Present
from antiphon.server.distant.elsewhere import Glance

ANN, BOB = Present(client_id="ann"), Present(client_id="bob")


def news(number: int, *seen: Seen, whole: bool = False) -> News:
    return News(number=number, seen=seen, whole=whole)


def test_the_owner_says_the_state_and_every_hub_its_clients() -> None:
    known = SessionsElsewhere()
    assert known.apply("a", news(1, Seen(session_id="s", state="running", clients=(ANN,)))) == {"s"}
    known.apply("b", news(1, Seen(session_id="s", clients=(ANN, BOB))))
    assert known.glance("s") == Glance("running", 2), "a client with two hubs is one client"
    assert known.forget("a") == {"s"}
    assert known.glance("s") is None, "nobody owns it"
    assert list(known.of("s")) == ["b"]


def test_a_session_that_a_hub_serves_no_more_is_forgotten() -> None:
    known = SessionsElsewhere()
    known.apply("a", news(1, Seen(session_id="s", state="idle")))
    assert known.apply("a", news(2, Seen(session_id="s"))) == {"s"}
    assert known.of("s") == {}
    assert known.owned() == {}


def test_missing_news_are_noticed() -> None:
    known = SessionsElsewhere()
    assert known.is_current("a", 0), "of an unknown hub nothing was missed before its first news"
    known.apply("a", news(1, Seen(session_id="s", state="idle")))
    assert known.is_current("a", 1)
    assert not known.is_current("a", 2)


def test_a_late_list_of_all_sessions_does_not_undo_later_news() -> None:
    known = SessionsElsewhere()
    known.apply("a", news(1, Seen(session_id="gone", state="idle"), Seen(session_id="s", state="idle")))
    known.apply("a", news(3, Seen(session_id="s", state="running"), Seen(session_id="new", state="idle")))
    told = known.apply("a", news(2, Seen(session_id="s", state="idle"), whole=True))
    assert told == {"s", "gone"}
    assert known.glance("s") == Glance("running", 0)
    assert known.glance("new") == Glance("idle", 0)
    assert known.glance("gone") is None
    assert known.is_current("a", 3)
