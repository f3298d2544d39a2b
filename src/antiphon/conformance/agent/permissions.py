"""Scenarios about the permission requests of a v1 agent."""

from __future__ import annotations

from functools import partial
from typing import Any

from antiphon.conformance.agent.cancel import PERMISSION, is_question, under_way
from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("permissions", shares=True)


def rejection(question: RecordedFrame) -> dict[str, Any]:
    """Return the answer that selects the first rejecting option; `cancelled` if there is none."""
    options = question.get("params", "options")
    for option in options if isinstance(options, list) else []:
        if isinstance(option, dict) and str(option.get("kind")).startswith("reject"):
            return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return {"outcome": {"outcome": "cancelled"}}


@scenarios.add("PROMPT-V1-02", versions=(1,))
async def a_turn_ends_whatever_the_answer(case: AgentCase) -> None:
    """A turn ends after its permission request was rejected, and after it was dismissed."""
    agent = await case.open()
    for dismissed in (False, True):
        session = await agent.new_session()
        agent.link.on_request(PERMISSION, None)
        prompt = agent.prompt(session, case.prompts.permission)
        await under_way(
            agent,
            prompt,
            partial(is_question, session),
            "a permission request",
            option="permission",
        )

        def answer(link: Any, question: RecordedFrame, dismissed: bool = dismissed) -> None:
            cancelled = {"outcome": {"outcome": "cancelled"}}
            link.answer(question, cancelled if dismissed else rejection(question))

        agent.link.on_request(PERMISSION, answer)
        for question in agent.link.since(prompt):
            if is_question(session, question):
                answer(agent.link, question)
        await case.answered("PROMPT-V1-02", agent.link, prompt)
    case.decide.check("PROMPT-V1-02", True, "the prompt was answered")
