"""SessionsElsewhere: what the other hubs said of the sessions that they serve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from antiphon.hub.cluster.announcements import News, Seen
from antiphon.server.distant.elsewhere import Glance


class SessionsElsewhere:
    def __init__(self) -> None:
        self._seen: dict[str, dict[str, tuple[int, Seen]]] = {}
        """By session and hub: what was said, and the number of the news that said it."""
        self._last: dict[str, int] = {}
        """The number of the last news of each hub."""

    @property
    def hubs(self) -> list[str]:
        return list(self._last)

    def of(self, session_id: str) -> Mapping[str, Seen]:
        """Return what the hubs said of a session, by hub."""
        return {hub: seen for hub, (_, seen) in self._seen.get(session_id, {}).items()}

    def glance(self, session_id: str) -> Glance | None:
        """Return what a list shows of a session that its owner has open."""
        seen = self.of(session_id).values()
        state = next((each.state for each in seen if each.state is not None), None)
        clients = {client.client_id for each in seen for client in each.clients}
        return None if state is None else Glance(state, len(clients))

    def owned(self) -> Counter[str]:
        """Return how many open sessions each hub owns."""
        return Counter(
            hub for hubs in self._seen.values() for hub, (_, seen) in hubs.items() if seen.state is not None
        )

    def is_current(self, hub: str, number: int) -> bool:
        """Return whether all news of a hub up to a number have come."""
        return self._last.get(hub, 0) == number

    def apply(self, hub: str, news: News) -> set[str]:
        """Apply news, and return the ids of the sessions that they are about. News may come in another order
        than they were sent: what was said last counts."""
        told = {each.session_id for each in news.seen}
        if news.whole:
            known = {id for id, hubs in self._seen.items() if hub in hubs and hubs[hub][0] <= news.number}
            told |= known
            self._put(hub, news.number, (Seen(session_id=id) for id in known))
        self._put(hub, news.number, news.seen)
        self._last[hub] = max(news.number, self._last.get(hub, 0))
        return told

    def _put(self, hub: str, number: int, seen: Iterable[Seen]) -> None:
        for each in seen:
            hubs = self._seen.setdefault(each.session_id, {})
            if hub not in hubs or hubs[hub][0] <= number:
                hubs[hub] = number, each
            if hubs[hub][1] == Seen(session_id=each.session_id):
                del hubs[hub]
            if not hubs:
                del self._seen[each.session_id]

    def forget(self, hub: str) -> set[str]:
        """Forget a hub, and return the ids of the sessions that it served."""
        self._last.pop(hub, None)
        served = {id for id, hubs in self._seen.items() if hub in hubs}
        for id in served:
            del self._seen[id][hub]
            if not self._seen[id]:
                del self._seen[id]
        return served
