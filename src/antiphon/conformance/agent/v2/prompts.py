"""Scenarios about v2 requests that an agent has to accept or refuse: prompt content and unknown sessions."""

from __future__ import annotations

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import text
from antiphon.conformance.agent.v2.work import INVALID_PARAMS
from antiphon.conformance.link import METHOD_NOT_FOUND
from antiphon.conformance.scenario import Collection

scenarios = Collection("v2-prompts", shares=True)
NOT_FOUND = -32002
UNKNOWN_BLOCK = {"type": "_antiphon.judge/unknown", "payload": {"key": "value"}}
LINK = {"type": "resource_link", "uri": "file:///antiphon/judge.txt", "name": "judge.txt"}


@scenarios.add("PROMPT-V2-09", "CONT-08", versions=(2,))
async def unknown_content_is_refused(case: AgentCase) -> None:
    """A prompt with a block of an unknown type is refused with -32602, alone or beside a text.

    Content that the agent does not advertise is not tried: it may support it all the same.
    """
    agent, session = await case.open_session()
    for requirement, blocks in (
        ("PROMPT-V2-09", [UNKNOWN_BLOCK]),
        ("CONT-08", [text(case.prompts.plain), UNKNOWN_BLOCK]),
    ):
        prompt = agent.prompt(session, "", prompt=blocks)
        response = await agent.link.response(prompt)
        case.decide.check(
            requirement, response.error_code == INVALID_PARAMS,
            "expected `-32602` for a prompt with a content block of an unknown type", prompt, response,
        )  # fmt: skip


@scenarios.add("CONT-01", versions=(2,))
async def text_and_links_are_accepted(case: AgentCase) -> None:
    """A prompt with a text and a resource link is accepted."""
    agent, session = await case.open_session()
    prompt = agent.prompt(session, "", prompt=[text(case.prompts.plain), LINK])
    response = await agent.link.response(prompt)
    case.decide.check(
        "CONT-01", response.error is UNSET or response.error_code != INVALID_PARAMS,
        "expected every agent to accept text and resource links in a prompt", prompt, response,
    )  # fmt: skip


@scenarios.add("RPC-25", versions=(2,))
async def an_unknown_session_is_not_found(case: AgentCase) -> None:
    """Requests for a session that does not exist fail with -32002 and its id."""
    agent = await case.open()
    case.decide.need(agent.offers("session"), "the agent does not offer sessions")
    unknown = f"judge-{case.random.getrandbits(64):x}"
    for request in (agent.prompt(unknown, case.prompts.plain), agent.resume(unknown)):
        response = await agent.link.response(request)
        if response.error_code == METHOD_NOT_FOUND:
            continue  # That is another requirement: SESS-30.
        case.decide.check(
            "RPC-25",
            response.error_code == NOT_FOUND and response.get("error", "data", "sessionId") == unknown,
            f"expected `-32002` with the session id in `data` for `{request.method}` of an unknown session",
            request, response,
        )  # fmt: skip
