"""PushMessage: an alert as the page's service worker reads it (`web/static/sw.js`), and how it is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.hub.alerts.alert import Alert
from antiphon.hub.alerts.push.rights import SECONDS

TURN_SECONDS = 4 * 3600
"""How long a push service keeps the news of an ended turn."""


class PushMessage(Struct, frozen=True, kw_only=True):
    content: bytes
    urgency: str
    ttl: int
    """Seconds that the push service keeps it for a browser that is not reachable."""
    topic: str
    """A later message of the same topic replaces one that waits at the push service."""


def write_message(alert: Alert, codes: Mapping[str, str]) -> PushMessage:
    """Write the message of an alert. `codes` are those of the buttons, by the names of these."""
    question = alert.news.question
    asks = question is not None
    tag = f"{alert.session.id}/{'turn' if question is None else question.id}"
    content: dict[str, Any] = {
        "type": str(alert.kind),
        "session": alert.session.id,
        "title": alert.session.title,
        "text": alert.text,
        "details": "" if question is None else question.details,
        "tag": tag,
        "codes": codes,
    }
    return PushMessage(
        content=msgspec.json.encode(content),
        urgency="high" if asks else "normal",
        ttl=int(SECONDS) if asks else TURN_SECONDS,
        topic=hashlib.sha256(tag.encode()).hexdigest()[:32],
    )
