"""Scenarios about permission requests that several clients are asked."""

from __future__ import annotations

from antiphon.conformance.agent.conversation import Conversation
from antiphon.conformance.hub.case import HubCase
from antiphon.conformance.hub.turn import PlayedTurn
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame, same_id
from antiphon.conformance.scenario import Collection

scenarios = Collection("questions")


@scenarios.add("PROXY-10")
async def first_answer_wins(case: HubCase) -> None:
    """The first answer to a permission request counts, and the copies of the other clients are withdrawn."""
    session, (first, second, mixed) = await case.shared_session(case.version, case.version, case.other)
    turn = await case.begin(first, session, case.prompts.permission)
    await turn.ask()
    copies = {}
    for client in (first, second, mixed):
        try:
            copies[client] = await client.link.wait(
                lambda frame: frame.method == "session/request_permission", "a permission request"
            )
        except NotSeen as unseen:
            case.decide.need(bool(copies), f"{unseen}: `--prompt permission=TEXT` names a better prompt")
    case.decide.applies(len(copies) > 1, "the hub asks one client only")
    winner, *losers = copies
    question = turn.question if isinstance(turn, PlayedTurn) else None
    answered = answer(winner, copies[winner], "allow")
    for client in losers:
        if not await _is_withdrawn(case, client, copies[client], answered):
            break
    for client in losers:
        answer(client, copies[client], "reject")  # too late
        await client.link.barrier()
    if isinstance(turn, PlayedTurn) and question is not None:
        await turn.agent.link.response(question)
        await turn.agent.link.barrier()
        _judge_answers(case, turn.agent.answers(question), question, answered)
    await turn.end()


def answer(client: Conversation, question: RecordedFrame, kind: str) -> RecordedFrame:
    """Answer a permission request with the first option of a kind; `cancelled` if there is none."""
    options = question.get("params", "options")
    for option in options if isinstance(options, list) else []:
        if isinstance(option, dict) and str(option.get("kind")).startswith(kind):
            outcome = {"outcome": "selected", "optionId": option.get("optionId")}
            return client.link.answer(question, {"outcome": outcome})
    return client.link.answer(question, {"outcome": {"outcome": "cancelled"}})


async def _is_withdrawn(
    case: HubCase, client: Conversation, copy: RecordedFrame, answered: RecordedFrame
) -> bool:
    sentence = "expected `$/cancel_request` for the copy of a permission request that another client answered"
    try:
        withdrawn = await client.link.wait(
            lambda frame: frame.method == "$/cancel_request"
            and same_id(frame.get("params", "requestId"), copy.id),
            "`$/cancel_request`", after=copy,
        )  # fmt: skip
        return case.decide.check("PROXY-10", True, sentence, copy, answered, withdrawn)
    except NotSeen as unseen:
        return case.decide.check("PROXY-10", False, f"{sentence}; {unseen}", copy, answered)


def _judge_answers(
    case: HubCase, answers: list[RecordedFrame], question: RecordedFrame, answered: RecordedFrame
) -> None:
    """Check that the agent got the first answer, and no other."""
    chosen = [frame.get("result", "outcome", "optionId") for frame in answers]
    case.decide.check(
        "PROXY-10", chosen == ["judge-allow"],
        f"expected the first answer, `judge-allow`, to reach the agent, and no other; it got {chosen}",
        question, answered, *answers,
    )  # fmt: skip
