"""Restores the config options of a session in a fork, or in a session that its agent has opened again.

An agent may begin there with its defaults. A lost mode may allow the agent more than before, so every option
is set to the value that the session had before anything is prompted. If that fails, a fork is refused, and a
reopened session gets a notice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec import Struct

from antiphon.engine.configuration import Value, config_id, find_option, takes
from antiphon.errors import AntiphonError, CallFailed, InvalidResult, LocalError, RequestError
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.schema import v2

logger = logging.getLogger("antiphon.hub")

MOST_TRIES = 2
"""How often one option is set: setting another one may reset it."""


class LostOption(Struct, frozen=True):
    """An option that lost the value that the session had."""

    id: str
    name: str
    value: Value
    now: Value | None
    """The value that it has instead; `None` where the option is gone."""

    def __str__(self) -> str:
        if self.now is None:
            return f"{self.name} was {self.value!r}, which is not offered any more"
        if self.now == self.value:
            return f"{self.name} was {self.value!r}, which could not be set again"
        return f"{self.name} was {self.value!r} and is now {self.now!r}"


async def restore_options(
    session: UpstreamSession, chosen: Sequence[v2.SessionConfigOption], *, reopened: bool
) -> list[LostOption]:
    """Give every option of a session at an agent the value that it has in `chosen`; return those for which
    that failed. `reopened`: the session is not new, so an agent of v1 may have options that it did not name.
    """
    wanted = {
        id: value
        for option in chosen
        if (id := config_id(option)) is not None and (value := _value(option)) is not None
    }
    unsure = set(session.config.assume(list(chosen))) if reopened else set()
    tries = dict.fromkeys(wanted, 0)

    def is_due(id: str, value: Value) -> bool:
        option = find_option(session.config_options, id)
        if option is None or not takes(option, value) or tries[id] >= MOST_TRIES:
            return False
        return id in unsure or _value(option) != value

    # One after the other: an option may appear, or change, when another one is set.
    while due := next((id for id, value in wanted.items() if is_due(id, value)), None):
        tries[due] += 1
        try:
            await session.config.set(due, wanted[due])
        except (CallFailed, InvalidResult, LocalError) as error:
            logger.warning("config option %r of session %s not restored: %s", due, session.id, error)
            tries[due] = MOST_TRIES
            unsure.add(due)
        else:
            unsure.discard(due)
    return [
        LostOption(id, _name(option), wanted[id], _now(session, id))
        for option in chosen
        if (id := config_id(option)) in wanted and (id in unsure or _now(session, id) != wanted[id])
    ]


def refusal(lost: Sequence[LostOption]) -> RequestError:
    """The error of a fork that cannot keep its options."""
    return RequestError(
        AntiphonError.code,
        f"The fork cannot keep the options of the session: {_listed(lost)}",
        data={
            "reason": "options_lost",
            "options": [{"configId": each.id, "value": each.value} for each in lost],
        },
    )


def warning(lost: Sequence[LostOption]) -> v2.Notice:
    return v2.Notice(
        severity=v2.NoticeSeverity.WARNING,
        title="Options of this session could not be restored",
        description=f"{_listed(lost)}. Check them before you go on.",
    )


def _listed(lost: Sequence[LostOption]) -> str:
    return "; ".join(map(str, lost))


def _now(session: UpstreamSession, id: str) -> Value | None:
    option = find_option(session.config_options, id)
    return None if option is None else _value(option)


def _value(option: v2.SessionConfigOption) -> Value | None:
    """`None` for an option of an unknown type, which cannot be set."""
    return None if isinstance(option, dict) else option.current_value


def _name(option: v2.SessionConfigOption) -> str:
    return str(option.get("name")) if isinstance(option, dict) else option.name
