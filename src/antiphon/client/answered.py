"""Answered: what this client has answered to which question, so that it answers the same when asked again.

Who answers just as the link is lost cannot know whether that arrived; a hub that did not hear it asks again,
under the same question id, and the user has decided already.
"""

from __future__ import annotations

from typing import Any

from antiphon.schema.version import ours_in

REMEMBERED = 256


class Answered:
    def __init__(self) -> None:
        self._results: dict[tuple[str, str], Any] = {}

    def get(self, session_id: str, question_id: str | None) -> Any:
        """The result that was given; `None` if none was."""
        return None if question_id is None else self._results.get((session_id, question_id))

    def keep(self, session_id: str, question_id: str | None, result: Any) -> None:
        if question_id is not None:
            self._results[session_id, question_id] = result
            if len(self._results) > REMEMBERED:
                del self._results[next(iter(self._results))]


def question_id_in(params: Any) -> str | None:
    """The id that the agent's side has for what it asks, where it says."""
    named = ours_in(params.meta).get("questionId")
    return named if isinstance(named, str) else None
