"""Scenarios about who gets in. They need a token: without one, the judge cannot know who should."""

from __future__ import annotations

from antiphon.conformance.agent.conversation import Conversation, initialize_params
from antiphon.conformance.hub.case import HubCase
from antiphon.conformance.link import Link, NotSeen
from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.conformance.rules.rule import agreed_version
from antiphon.conformance.scenario import Collection
from antiphon.errors import LinkLost

scenarios = Collection("access")
WRONG = "antiphon-judge-wrong-token"
NO_TOKEN = "the judge has no token: give one with --token"


@scenarios.add("HTTP-22")
async def tokens(case: HubCase) -> None:
    """Nobody makes a session without a token, or with a wrong one."""
    case.decide.need(bool(case.place.token), NO_TOKEN)
    for token, who in (("", "without a token"), (WRONG, "with a wrong token")):
        proof = await _gets_in(case, token)
        case.decide.check("HTTP-22", not proof, f"expected a client {who} to be refused", *proof)


async def _gets_in(case: HubCase, token: str) -> list[RecordedFrame]:
    """Try to make a session with a token. Return the frames that made it; none if the hub refused."""
    try:
        transport = await case.place.open(token=token)
    except LinkLost:
        return []
    link = Link(transport, role=Role.CLIENT, timeout=case.timeout, name=f"client {len(case.links) + 1}")
    case.links.append(link)
    try:
        result = await link.call("initialize", initialize_params(case.version, {}))
        if not isinstance(result, dict) or agreed_version(result) != case.version:
            return []
        client = Conversation(link, result, cwd=case.cwd)
        created = await client.created_session()
    except NotSeen:  # refused, or closed
        return []
    return [*client.introduction, created]


@scenarios.add("HTTP-22")
async def foreign_sessions(case: HubCase) -> None:
    """A token that is not for a session does not open it."""
    case.decide.need(bool(case.place.token), NO_TOKEN)
    case.decide.need(bool(case.other_token), "the judge has no second token: give one with --other-token")
    owner = await case.client()
    session = await owner.new_session()
    stranger = await case.client(token=case.other_token)
    request = stranger.load(session)
    response = await stranger.link.response(request)
    case.decide.check(
        "HTTP-22", response.error_code is not None,
        "expected an error for a session that the token is not for", request, response,
    )  # fmt: skip
