"""Scenarios about extensions: custom methods, unknown properties, `_meta`, and ordinary work with them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import initialize_params, text
from antiphon.conformance.link import BARRIER, METHOD_NOT_FOUND, NotSeen, why_unseen
from antiphon.conformance.scenario import Collection

scenarios = Collection("extensions", shares=True)
INVALID_REQUEST, INVALID_PARAMS = -32600, -32602
META = {"antiphon.judge": {"deep": [1, {"a": None}]}}
LARGE = 1024 * 1024


@scenarios.add("EXT-01")
async def custom_requests_are_answered(case: AgentCase) -> None:
    """A custom method that the agent does not know gets -32601, whatever its params are."""
    agent = await case.open()
    for params in ({}, {"text": "x" * LARGE}, {"emoji": "\N{GRINNING FACE}\u2028\x00"}):
        request = agent.link.request("_antiphon.judge/unknown", params)
        try:
            response = await agent.link.response(request)
        except NotSeen as unseen:
            case.decide.check("EXT-01", False, f"expected a response to a custom request; {unseen}", request)
            return
        case.decide.check(
            "EXT-01", response.error_code == METHOD_NOT_FOUND,
            f"expected -32601 for an unknown custom method, got {response.error_code}", request, response,
        )  # fmt: skip


@scenarios.add("EXT-02")
async def custom_notifications_are_ignored(case: AgentCase) -> None:
    """Unknown custom notifications change nothing."""
    agent = await case.open()
    sent = [agent.link.notify("_antiphon.judge/unknown", params) for params in ({}, {"a": [1]})]
    reason = await why_unseen(agent.link.barrier()) or await why_unseen(agent.new_session())
    case.decide.need("login" not in reason, reason)
    case.decide.check(
        "EXT-02", not reason, f"expected custom notifications to be ignored; {reason}",
        *sent, *agent.link.since(sent[0]),
    )  # fmt: skip


@scenarios.add("RPC-39")
async def unknown_properties_are_ignored(case: AgentCase) -> None:
    """Properties that the schema does not have do not make a request fail."""
    await (await case.open()).new_session()  # without them it works
    extra: dict[str, Any] = {"antiphonJudge": {"a": 1}, "another": None}
    await _converse(case, "RPC-39", extra, "expected unknown properties to be ignored")


@scenarios.add("EXT-11")
async def meta_is_accepted(case: AgentCase) -> None:
    """`_meta` on a request does not make it fail."""
    await (await case.open()).new_session()
    await _converse(case, "EXT-11", {"_meta": META}, "expected `_meta` to be accepted")


async def _converse(case: AgentCase, requirement: str, extra: dict[str, Any], expected: str) -> None:
    """Initialize, make a session, prompt and cancel, each with extra properties. No step may fail."""
    link = await case.link()
    capabilities = {"_meta": META} if "_meta" in extra else dict(extra)
    request = link.request("initialize", initialize_params(case.version, capabilities) | extra)
    response = await link.response(request)
    case.decide.check(requirement, response.error is UNSET, f"{expected} in `initialize`", request, response)
    if response.error is not UNSET:
        return
    setup = {"cwd": case.cwd, "mcpServers": []} | extra
    request, response = await link.exchange("session/new", setup)
    case.decide.check(requirement, response.error is UNSET, f"{expected} in `session/new`", request, response)
    session = response.get("result", "sessionId")
    if not isinstance(session, str):
        return
    prompt = {"sessionId": session, "prompt": [text(case.prompts.plain)]} | extra
    request, response = await link.exchange("session/prompt", prompt)
    case.decide.check(
        requirement, response.error_code not in (INVALID_PARAMS, INVALID_REQUEST),
        f"{expected} in `session/prompt`", request, response,
    )  # fmt: skip
    cancel = link.notify("session/cancel", {"sessionId": session} | extra)
    await case.answered(requirement, link, link.request(BARRIER))
    complaints = [frame for frame in link.since(cancel) if frame.error is not UNSET and frame.id is None]
    case.decide.check(requirement, not complaints, f"{expected} in `session/cancel`", cancel, *complaints)


@scenarios.add("EXT-08", versions=(2,))
async def known_tags_with_bad_payloads_are_errors(case: AgentCase) -> None:
    """A text block without text is refused, not read as an unknown block."""
    agent, session = await case.open_session()
    params = {"sessionId": session, "prompt": [{"type": "text", "text": 7}]}
    request, response = await agent.link.exchange("session/prompt", params)
    case.decide.check(
        "EXT-08", response.error is not UNSET,
        "expected an error for a text block whose `text` is a number", request, response,
    )  # fmt: skip


@scenarios.add("CONT-01")
async def ordinary_work(case: AgentCase) -> None:
    """Prompts with text and links are accepted. The rest of the traffic is for the rules."""
    agent, session = await case.open_session()
    link = {"type": "resource_link", "uri": "file:///tmp/README.md", "name": "README.md"}
    params = {"sessionId": session, "prompt": [text(case.prompts.plain), link]}
    request, response = await agent.link.exchange("session/prompt", params)
    case.decide.need(response.error_code != METHOD_NOT_FOUND, "`session/prompt` does not exist")
    case.decide.check(
        "CONT-01", response.error_code != INVALID_PARAMS,
        "expected a prompt with text and a resource link to be accepted", request, response,
    )  # fmt: skip
    if response.error is UNSET and agent.version == 2:
        await agent.turn_end(request)
    for words in (case.prompts.tool, case.prompts.permission):
        if words:
            await agent.run_turn(session, words)
    if agent.offers("session") or agent.offers("sessionCapabilities", "list"):
        await agent.link.response(agent.link.request("session/list"))
    await _work_for_an_able_client(case)


async def _work_for_an_able_client(case: AgentCase) -> None:
    """Offer what an agent may use by itself, decline every elicitation, and run a turn."""
    offered: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
    if case.version == 1:
        offered["session"] = {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}}
    agent = await case.open(**offered)
    agent.link.on_request(
        "elicitation/create", lambda link, request: link.answer(request, {"action": "decline"})
    )
    await agent.run_turn(await agent.new_session(), case.prompts.plain)
