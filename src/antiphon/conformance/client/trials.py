"""Trials: several stimuli in one turn, each for one requirement.

After each stimulus the agent says one more word and waits for a barrier. So the judge knows which of them a
client did not survive, and which words it lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import PlayedAgent, say
from antiphon.conformance.client.printed import WORD, Words, printed_words
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame

Stimulus = Callable[[Words], list[dict[str, Any]]]


class Trial(Struct, frozen=True):
    """`stimulus` returns the updates to send. A client must show every word in them.

    `expected` is what the client should do; it follows "expected the client to".
    """

    requirement: str
    expected: str
    stimulus: Stimulus


class _Result(Struct, frozen=True):
    trial: Trial
    words: Sequence[Sequence[str]]
    """The words of each message. A client may print message by message, or all as they come."""
    frames: Sequence[RecordedFrame]


async def run_trials(case: ClientCase, trials: Sequence[Trial]) -> None:
    """Run all trials in one turn of the client and decide their requirements."""
    agent, prompt = await case.begin_turn()
    await agent.link.barrier()
    words = Words()
    results = []
    for number, trial in enumerate(trials):
        results.append(await _try(case, agent, trial, words, last_message=f"judge-after-{number}"))
    end = agent.finish(prompt)
    output = await agent.output()
    for result in results:
        found = [printed_words(output, words) for words in result.words]
        missing = [word for each in found for word in each.missing]
        seen = (
            f"it did not print {', '.join(missing)}" if missing else "it printed the words in another order"
        )
        case.decide.check(
            result.trial.requirement, all(each.complete for each in found),
            f"expected the client to {result.trial.expected}; {seen}", *result.frames, end,
        )  # fmt: skip


async def _try(
    case: ClientCase, agent: PlayedAgent, trial: Trial, words: Words, *, last_message: str
) -> _Result:
    updates = [*trial.stimulus(words), say(f"{words()} ", last_message)]
    frames = [agent.update(update) for update in updates]
    try:
        await agent.link.barrier()
    except NotSeen as unseen:
        expected = f"expected the client to {trial.expected} and to go on; {unseen}"
        case.decide.check(trial.requirement, False, expected, *frames)
        raise NotSeen(f"the client did not survive the check of {trial.requirement}") from None
    messages: dict[Any, list[str]] = {}
    for frame in frames:
        messages.setdefault(frame.update.get("messageId"), []).extend(WORD.findall(frame.raw.decode()))
    return _Result(trial, list(messages.values()), frames)
