"""Which prompts of a recording have a turn of their own, and that it is found in reasonable time."""

from __future__ import annotations

import msgspec
import pytest

from antiphon.conformance.recording import Recording, Role
from antiphon.conformance.rules.turn_complete import prompt_turns
from tests.cpu_growth import assert_grows_in_proportion


@pytest.mark.parametrize("answered", [True, False])
def test_turns_are_found_in_time_that_grows_with_the_recording(answered: bool) -> None:
    def find(count: int) -> None:
        recording = Recording(lambda: 0.0)
        for id in range(count):
            prompt = {"id": id, "method": "session/prompt", "params": {"sessionId": "s"}}
            recording.add(Role.CLIENT, msgspec.json.encode(prompt))
            if answered:
                recording.add(Role.AGENT, msgspec.json.encode({"id": id, "result": {}}))
        turns = [turn.prompt.id for turn in prompt_turns(recording)]
        assert turns == (list(range(count)) if answered else [])

    assert_grows_in_proportion(find, 100, times=16)


def test_prompts_that_overlap_are_no_turns() -> None:
    recording = Recording(lambda: 0.0)

    def add(sender: Role, id: int, **fields: object) -> None:
        recording.add(sender, msgspec.json.encode({"id": id, **fields}))

    def prompt(id: int, session: str = "s") -> None:
        add(Role.CLIENT, id, method="session/prompt", params={"sessionId": session})

    prompt(1)
    prompt(2, "other")
    add(Role.AGENT, 1, result={})
    prompt(3)
    prompt(4)
    add(Role.AGENT, 4, result={})
    prompt(5)
    add(Role.AGENT, 5, result={})
    add(Role.AGENT, 3, result={})
    add(Role.AGENT, 2, result={})
    prompt(6)
    add(Role.AGENT, 6, result={})
    prompt(7)
    prompt(8)
    add(Role.AGENT, 8, result={})
    assert [turn.prompt.id for turn in prompt_turns(recording)] == [1, 2, 6]
