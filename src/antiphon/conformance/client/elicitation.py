"""Scenarios about elicitation, for clients that advertise it."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.frames import goes_on_in_silence
from antiphon.conformance.client.played_agent import SESSION, PlayedAgent
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("elicitation")

INVALID_PARAMS = -32602
MODES = ("form", "url")


def _create(agent: PlayedAgent, mode: str, **field: Any) -> RecordedFrame:
    params: dict[str, Any] = {"sessionId": SESSION, "mode": mode, "message": "The judge asks"}
    if mode == "form":
        properties = {"answer": {"type": "string", "default": "yes", **field}}
        params["requestedSchema"] = {"type": "object", "properties": properties}
    else:
        params |= {"elicitationId": "judge-visit", "url": "https://example.invalid/judge"}
    return agent.link.request("elicitation/create", params)


@scenarios.add("ELIC-03", "ELIC-07", "ELIC-12", "ELIC-19")
async def forms_and_visits(case: ClientCase) -> None:
    """A client answers the modes that it advertises, and refuses the others."""
    agent, prompt = await case.begin_turn()
    advertised = agent.client_capabilities.get("elicitation")
    modes = [mode for mode in MODES if isinstance(advertised, dict) and advertised.get(mode) is not None]
    if not modes:
        agent.finish(prompt)
    case.decide.applies(bool(modes), "the client does not advertise elicitation")
    await agent.link.barrier()
    await _refuses_others(case, agent, modes)
    complete = agent.link.notify("elicitation/complete", {"elicitationId": "judge-never-asked"})
    ignored = await goes_on_in_silence(agent.link, complete)
    case.decide.check(
        "ELIC-12", ignored,
        "expected the client to ignore the completion of an elicitation that it does not know", complete,
    )  # fmt: skip
    await _answers(case, agent, modes[0])
    await agent.complete(prompt)


async def _refuses_others(case: ClientCase, agent: PlayedAgent, modes: list[str]) -> None:
    others = [mode for mode in MODES if mode not in modes]
    if not others:
        case.decide.not_applicable("ELIC-03", "the client advertises every mode")
        return
    request = _create(agent, others[0])
    answer = await agent.link.response(request)
    case.decide.check(
        "ELIC-03", answer.error_code == INVALID_PARAMS,
        f"expected the error {INVALID_PARAMS} for the mode {others[0]!r}, which the client did not advertise",
        request, answer,
    )  # fmt: skip


async def _answers(case: ClientCase, agent: PlayedAgent, mode: str) -> None:
    # A format that nobody knows is an annotation (ELIC-19).
    field = {"format": "_judge"} if case.version == 2 and mode == "form" else {}
    request = _create(agent, mode, **field)
    try:
        answer = await agent.link.response(request)
    except NotSeen:
        raise NotSeen("the client did not answer the elicitation; it may ask a person") from None
    if case.version == 2 and field:
        case.decide.check(
            "ELIC-19", answer.error is UNSET,
            f"expected the client to take an unknown string format, got the error {answer.error_code}",
            request, answer,
        )  # fmt: skip
    case.decide.need(answer.error is UNSET, "the client refused the elicitation")
    action, content = answer.get("result", "action"), answer.get("result", "content")
    accepted = action == "accept" and (content is UNSET or isinstance(content, dict))
    case.decide.check(
        "ELIC-07", accepted or action in ("decline", "cancel"),
        f"expected the action `accept`, `decline` or `cancel`, got {action!r} with the content {content!r}",
        request, answer,
    )  # fmt: skip
