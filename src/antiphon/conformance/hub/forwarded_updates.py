"""Scenarios about what a hub passes on between its clients and the agent that the judge plays."""

from __future__ import annotations

import os
from typing import Any

from antiphon.conformance.agent.conversation import Conversation
from antiphon.conformance.hub.case import HubCase
from antiphon.conformance.hub.turn import PlayedTurn
from antiphon.conformance.link import Link
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("forwarding")

META = {"judge.example/kept": {"nested": [1, None, {"deep": "é"}]}}
CUSTOM_UPDATE = {"sessionUpdate": "_judge_update", "payload": {"numbers": [1, 2.5, None], "word": "é"}}
CUSTOM_BLOCK = {"type": "_judge_block", "payload": [1, {"deep": True}]}
CUSTOM_METHOD = "_judge.example/forwarded"
REASONS = ("max_tokens", "refusal")


@scenarios.add("EXT-09", versions=(2,))
async def unknown_values(case: HubCase) -> None:
    """Custom updates and content blocks reach every v2 client as the agent wrote them."""
    session, clients = await case.shared_session(2, 2)
    turn = await case.begin_played(clients[0], session)
    for sent in (CUSTOM_UPDATE, {"sessionUpdate": "agent_message_chunk", "content": CUSTOM_BLOCK}):
        turn.agent.send(sent if sent is CUSTOM_UPDATE else {**sent, "messageId": turn.message})
        word = turn.say_now().encode()
        for client in clients:
            last = await client.link.wait(lambda frame: word in frame.raw, "a chunk of the agent")  # noqa: B023
            case.decide.check(
                "EXT-09", any(_holds(frame.update, sent) for frame in client.updates(session)),
                f"expected an update with unknown values unchanged before the next one: {sent}", last,
            )  # fmt: skip
    await turn.end()


@scenarios.add("OBS-02")
async def meta(case: HubCase) -> None:
    """`_meta` of prompts reaches the agent, and that of updates every client."""
    session, clients = await case.shared_session(case.version, case.version)
    turn = await case.begin_played(clients[0], session, _meta=META)
    sentence = f"expected {META} in the `_meta` of"
    case.decide.check(
        "OBS-02", _holds(turn.received.get("params", "_meta"), META), f"{sentence} the prompt at the agent",
        turn.prompt, turn.received,
    )  # fmt: skip
    word = turn.say_now(_meta=META).encode()
    for client in clients:
        chunk = await client.link.wait(lambda frame: word in frame.raw, "a chunk of the agent")
        case.decide.check(
            "OBS-02", _holds(chunk.update.get("_meta"), META), f"{sentence} the chunk at a client", chunk
        )
    await turn.end()


@scenarios.add("PROXY-05")
async def custom_methods(case: HubCase) -> None:
    """A custom request that names a session reaches its agent, and the answer comes back."""
    session, (client,) = await case.shared_session(case.version)
    agent = await case.played(client)
    result = {"answer": ["é", None]}

    def answer(link: Link, request: RecordedFrame) -> None:
        if request.session_id == agent.id:
            link.answer(request, result)

    agent.link.on_request(CUSTOM_METHOD, answer)
    request, response = await client.link.exchange(CUSTOM_METHOD, {"sessionId": session, "question": 1})
    case.decide.check(
        "PROXY-05", response.result == result,
        f"expected the answer of the agent, {result}, to a method that the hub does not know",
        request, response,
    )  # fmt: skip


@scenarios.add("PROXY-06")
async def equal_ids(case: HubCase) -> None:
    """Two clients use the same request ids at the same time, and each gets its own answer."""
    clients = [await case.client(), await case.client()]
    turns: list[tuple[Conversation, str, PlayedTurn]] = []
    for client, name in zip(clients, ("one", "two"), strict=True):
        client.cwd = os.path.join(case.cwd, name)
        os.mkdir(client.cwd)
        session = await client.new_session()
        turns.append((client, session, await case.begin_played(client, session)))
    ids = {turn.prompt.id for _, _, turn in turns}
    case.decide.need(len(ids) == 1, "the clients did not use the same ids")
    for (_, _, turn), reason in zip(turns, REASONS, strict=True):
        turn.agent.finish(turn.received, reason)
    for (client, session, turn), reason in zip(turns, REASONS, strict=True):
        await client.turn_end(turn.prompt)
        response = await client.link.response(turn.prompt)
        if case.version == 1:
            key, expected = "stopReason", [reason]
        else:
            key, expected = "messageId", _prompts_of(client, session)
        got = response.get("result", key)
        case.decide.check(
            "PROXY-06", got in expected,
            f"expected the answer to the client's own prompt, with `{key}` {expected}, got {got!r}: another "
            "client has sent a prompt to another session under the same id", turn.prompt, response,
        )  # fmt: skip


def _prompts_of(client: Conversation, session: str) -> list[Any]:
    """Return the ids of the user messages in a session."""
    return [
        frame.update.get("messageId") for frame in client.updates(session)
        if frame.update_kind in ("user_message", "user_message_chunk")
    ]  # fmt: skip


@scenarios.add("PROXY-09")
async def offered_content(case: HubCase) -> None:
    """The hub does not offer prompts with images if its agent does not."""
    first = await case.client()
    await first.new_session()
    await case.played(first)
    second = await case.client()  # the hub knows the agent now
    base = ("session", "prompt") if case.version == 2 else ("promptCapabilities",)
    offered = [kind for kind in ("image", "audio", "embeddedContext") if second.offers(*base, kind)]
    case.decide.check(
        "PROXY-09", not offered,
        f"expected no prompt capability that the only agent lacks; the hub offers {', '.join(offered)}",
        *second.introduction,
    )  # fmt: skip


def _holds(value: Any, part: Any) -> bool:
    """Whether a value has everything of `part`; keys may have been added to objects."""
    if isinstance(value, dict) and isinstance(part, dict):
        return all(key in value and _holds(value[key], part[key]) for key in part)
    return bool(value == part)
