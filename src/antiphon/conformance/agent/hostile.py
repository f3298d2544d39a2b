"""Scenarios about input that no correct client sends: the agent refuses it and stays usable."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import (
    Conversation,
    is_idle,
    select_first_allow,
    stop_reason,
    text,
)
from antiphon.conformance.link import BARRIER, METHOD_NOT_FOUND, Link, NotSeen, Refused, why_unseen
from antiphon.conformance.recording import RecordedFrame, same_id
from antiphon.conformance.scenario import Collection

scenarios = Collection("hostile")
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
SECRET = "antiphon-judge-secret"
UNREADABLE = {
    "half an object": b'{"jsonrpc":"2.0","id":7,"method":',
    "text": b"hello",
}
NOT_UTF8 = b'{"jsonrpc":"2.0","id":7,"method":"\xff\xfe"}'
NOT_A_MESSAGE = {"a number": b"7", "text": b'"hello"', "an empty object": b"{}"}


class Reaction:
    """What the agent did after some frames, until it answered a request that came after them."""

    def __init__(self, sent: list[RecordedFrame], replies: list[RecordedFrame], *, alive: bool) -> None:
        self.sent = sent
        self.replies = replies
        self.alive = alive
        """Whether the agent still answers requests."""
        self.errors = [frame for frame in replies if frame.error is not UNSET and frame.id in (None, UNSET)]
        """Errors without the id of a request."""

    @property
    def frames(self) -> list[RecordedFrame]:
        return [*self.sent, *self.replies]


async def react(link: Link, *lines: bytes) -> Reaction:
    """Send frames as they are, and wait for the answer to a request after them."""
    sent = [link.send_raw(line) for line in lines]
    try:
        end = await link.barrier()
    except NotSeen:
        return Reaction(sent, link.since(sent[0]), alive=False)
    replies = [frame for frame in link.since(sent[0]) if frame is not end]
    return Reaction(sent, replies, alive=True)


def _got(reaction: Reaction) -> str:
    """Say in a few words what the agent did."""
    if not reaction.alive:
        return "but the agent answers nothing any more"
    codes = [str(frame.error_code) for frame in reaction.replies]
    return f"got {', '.join(codes) or 'no answer'}"


async def refused(
    case: AgentCase, agent: Conversation, requirement: str, code: int, name: str, line: bytes
) -> bool:
    """Check that a line is refused with one error that has no id, and that the connection stays usable.

    Return whether it is usable.
    """
    reaction = await react(agent.link, line)
    case.decide.check(
        requirement, reaction.alive,
        f"expected the connection to stay usable after {name}", *reaction.frames,
    )  # fmt: skip
    codes = [frame.error_code for frame in reaction.errors]
    if reaction.alive:
        case.decide.check(
            requirement, codes == [code],
            f"expected one error {code} with `id: null` for {name}, got {codes or 'none'}", *reaction.frames,
        )  # fmt: skip
    return reaction.alive


@scenarios.add("RPC-10")
async def unreadable_lines_are_refused(case: AgentCase) -> None:
    """A line that is not JSON gets -32700, and the connection goes on."""
    agent = await case.open()
    for name, line in UNREADABLE.items():
        if not await refused(case, agent, "RPC-10", PARSE_ERROR, name, line):
            agent = await case.open()
    if case.target.stdio:  # other transports may carry text only
        reaction = await react(agent.link, NOT_UTF8)
        # A reader may replace what is not UTF-8: then the line is a request for an unknown method.
        case.decide.check(
            "RPC-10", reaction.alive,
            "expected the connection to stay usable after bytes that are not UTF-8", *reaction.frames,
        )  # fmt: skip


@scenarios.add("RPC-11")
async def other_values_are_refused(case: AgentCase) -> None:
    """JSON that is no message gets -32600, and the connection goes on."""
    agent = await case.open()
    for name, line in NOT_A_MESSAGE.items():
        if not await refused(case, agent, "RPC-11", INVALID_REQUEST, name, line):
            agent = await case.open()


@scenarios.add("RPC-14", "RPC-16")
async def arrays_are_refused(case: AgentCase) -> None:
    """An array gets one -32600, and none of its entries runs."""
    agent = await case.open()
    empty = await react(agent.link, b"[]")
    case.decide.check(
        "RPC-16" if case.version == 2 else "RPC-14",
        [(frame.id, frame.error_code) for frame in empty.replies] == [(None, INVALID_REQUEST)],
        f"expected one error -32600 with `id: null` for an empty array, {_got(empty)}", *empty.frames,
    )  # fmt: skip
    ids = ("array-1", "array-2")
    entries = [{"jsonrpc": "2.0", "id": id, "method": BARRIER, "params": {}} for id in ids]
    reaction = await react(agent.link, msgspec.json.encode(entries))
    ran = [frame for frame in reaction.replies if frame.id in ids or isinstance(frame.value, list)]
    case.decide.check("RPC-14", not ran, "expected no entry of an array to run", *reaction.frames)
    codes = [frame.error_code for frame in reaction.errors]
    case.decide.check(
        "RPC-14", codes == [INVALID_REQUEST] and reaction.alive,
        f"expected one error -32600 with `id: null` for an array, got {codes or 'none'}", *reaction.frames,
    )  # fmt: skip


@scenarios.add("RPC-04", versions=(2,))
async def unusable_ids_are_refused(case: AgentCase) -> None:
    """A v2 request with `null` or a fraction as id gets -32600 with `id: null`, and does not run."""
    agent = await case.open()
    for id in (None, 1.5):
        params = {"cwd": agent.cwd}
        line = {"jsonrpc": "2.0", "id": id, "method": "session/new", "params": params}
        reaction = await react(agent.link, msgspec.json.encode(line))
        answers = [frame for frame in reaction.replies if frame.is_response]
        ok = [(frame.id, frame.error_code) for frame in answers] == [(None, INVALID_REQUEST)]
        case.decide.check(
            "RPC-04", ok,
            f"expected one error -32600 with `id: null` for a request with the id {id}", *reaction.frames,
        )  # fmt: skip
        if not reaction.alive:
            agent = await case.open()


@scenarios.add("RPC-05", shares=True)
async def ids_are_repeated_exactly(case: AgentCase) -> None:
    """A response has the id of its request, with its JSON type."""
    agent = await case.open()
    for id in ("1", 1000, "", -5, 2**53 + 1, "ünïcode \N{SNOWMAN}", "1e3"):
        request = agent.link.send({"id": id, "method": BARRIER, "params": {}})
        await agent.link.barrier()
        answers = [frame for frame in agent.link.since(request) if frame.is_response]
        case.decide.check(
            "RPC-05", any(same_id(frame.id, id) for frame in answers),
            f"expected a response with the id {id!r}", request, *answers,
        )  # fmt: skip


@scenarios.add("RPC-12")
async def stray_responses_are_dropped(case: AgentCase) -> None:
    """Responses that answer nothing, and malformed ones, are never answered."""
    agent = await case.open()
    strays: list[dict[str, Any]] = [
        {"id": "nobody", "result": {}},
        {"id": 4711, "error": {"code": -32603, "message": "Internal error"}},
        {"id": "nobody", "result": {}, "error": {"code": 1, "message": "both"}},
        {"id": 4712, "error": "text"},
    ]
    lines = [msgspec.json.encode({"jsonrpc": "2.0", **stray}) for stray in strays]
    reaction = await react(agent.link, *lines)
    answers = [frame for frame in reaction.replies if frame.is_response]
    case.decide.check(
        "RPC-12", not answers and reaction.alive,
        "expected no answer to responses that nobody asked for", *reaction.frames,
    )  # fmt: skip


@scenarios.add("RPC-18", "RPC-20", shares=True)
async def erroneous_requests_are_refused(case: AgentCase) -> None:
    """An unknown method gets -32601, and after erroneous requests the connection goes on."""
    agent = await case.open()
    request, response = await agent.link.exchange("antiphon_judge/unknown", {"deep": _nested(10)})
    case.decide.check(
        "RPC-18", response.error_code == METHOD_NOT_FOUND,
        f"expected -32601 for an unknown method, got {response.error_code}", request, response,
    )  # fmt: skip
    wrong = [
        agent.link.request("session/new", {"cwd": 7}),
        agent.link.request("session/prompt", {"sessionId": "antiphon-judge-none", "prompt": "text"}),
        agent.link.send({"id": "no-params", "method": "session/prompt"}),
        agent.link.send({"id": "list-params", "method": "session/new", "params": []}),
    ]
    reason = await why_unseen(agent.new_session())
    case.decide.need("login" not in reason, reason)
    case.decide.check(
        "RPC-20", not reason, f"expected `session/new` to work after erroneous requests; {reason}",
        *wrong, *agent.link.since(wrong[0]),
    )  # fmt: skip


@scenarios.add("RPC-08", "RPC-19")
async def unknown_notifications_are_ignored(case: AgentCase) -> None:
    """Notifications get no response, also unknown and malformed ones."""
    agent = await case.open()
    notifications = [
        {"method": "antiphon_judge/unknown", "params": {"a": 1}},
        {"method": "session/cancel", "params": {"sessionId": "antiphon-judge-none"}},
        {"method": "session/cancel", "params": {}},
        {"method": "session/prompt", "params": {}},
        {"method": "$/cancel_request", "params": {"requestId": "antiphon-judge-none"}},
        {"method": "$/antiphon_judge", "params": {}},
    ]
    lines = [msgspec.json.encode({"jsonrpc": "2.0", **each}) for each in notifications]
    reaction = await react(agent.link, *lines)
    answers = [frame for frame in reaction.replies if frame.is_response]
    case.decide.check("RPC-08", not answers, "expected no response to a notification", *reaction.frames)
    case.decide.check(
        "RPC-19", reaction.alive,
        "expected the connection to stay usable after unknown notifications", *reaction.frames,
    )  # fmt: skip


async def question_of(case: AgentCase, *, id: str) -> tuple[Conversation, RecordedFrame, RecordedFrame]:
    """Start a turn that asks for permission. Return the connection, the prompt with its id, and the question.

    Raises `NotSeen` if the agent does not ask.
    """
    case.decide.need(bool(case.prompts.permission), "no prompt `permission` is given")
    agent = await case.open()
    agent.link.on_request("session/request_permission", None)
    params = {"sessionId": await agent.new_session(), "prompt": [text(case.prompts.permission)]}
    prompt = agent.link.send({"id": id, "method": "session/prompt", "params": params})

    def asks_or_ends(frame: RecordedFrame) -> bool:
        answered = frame.is_response and same_id(frame.id, prompt.id)
        ended = answered and (agent.version == 1 or frame.error is not UNSET)
        asks = frame.method == "session/request_permission"
        return ended or (frame.session_id == prompt.session_id and (asks or is_idle(frame)))

    frame = await agent.link.wait(asks_or_ends, "a permission request", after=prompt)
    if frame.method != "session/request_permission":
        raise NotSeen("the agent did not ask for permission; `--prompt permission=TEXT` sets another prompt")
    return agent, prompt, frame


async def ends(agent: Conversation, prompt: RecordedFrame) -> bool:
    """Whether the turn of a prompt ends, however that is."""
    try:
        await agent.turn_end(prompt)
    except Refused:
        return True
    except NotSeen:
        return False
    return True


@scenarios.add("RPC-07", shares=True)
async def ids_of_both_sides_are_apart(case: AgentCase) -> None:
    """A request of the client may have the id of an open request of the agent."""
    agent, prompt, question = await question_of(case, id="judge-7")
    request = {"jsonrpc": "2.0", "id": question.id, "method": BARRIER, "params": {}}
    reaction = await react(agent.link, msgspec.json.encode(request))
    case.decide.check(
        "RPC-07", any(frame.is_response and same_id(frame.id, question.id) for frame in reaction.replies),
        "expected a response to a request whose id is that of an open request of the agent",
        question, *reaction.frames,
    )  # fmt: skip
    answer = agent.link.answer(question, {"outcome": {"outcome": "cancelled"}})
    case.decide.check(
        "RPC-07", await ends(agent, prompt), "expected the turn to end after its question was answered",
        prompt, question, *reaction.frames, answer,
    )  # fmt: skip


@scenarios.add("RPC-29", versions=(2,), shares=True)
async def only_requests_of_the_sender_are_cancelled(case: AgentCase) -> None:
    """`$/cancel_request` with the id of a request of the agent cancels nothing."""
    agent, prompt, question = await question_of(case, id="judge-29")
    cancel = agent.link.notify("$/cancel_request", {"requestId": question.id})
    await agent.link.barrier()
    select_first_allow(agent.link, question)
    end = await agent.turn_end(prompt)
    case.decide.check(
        "RPC-29", stop_reason(end) != "cancelled",
        "expected nothing to be cancelled: the id in `$/cancel_request` is not one of the client",
        prompt, question, cancel, end,
    )  # fmt: skip


@scenarios.add("RPC-26", shares=True)
async def any_error_data_is_accepted(case: AgentCase) -> None:
    """An error may have any JSON as `data`: the turn that gets one still ends."""
    agent, prompt, question = await question_of(case, id="judge-26")
    error = {"code": -32603, "message": "Internal error", "data": [1, {"a": None}, "\u2028"]}
    answer = agent.link.send({"id": question.id, "error": error})
    case.decide.check(
        "RPC-26", await ends(agent, prompt),
        "expected the turn to end after an error whose `data` is an array", prompt, question, answer,
    )  # fmt: skip


@scenarios.add("RPC-27", shares=True)
async def errors_repeat_no_secret(case: AgentCase) -> None:
    """The refusal of an MCP server does not contain its headers or environment."""
    agent = await case.open()
    server = {
        "type": "antiphon_judge", "name": "judge", "url": "https://example.invalid", "command": 7,
        "headers": [{"name": "Authorization", "value": SECRET}],
        "env": [{"name": "TOKEN", "value": SECRET}], "args": [],
    }  # fmt: skip
    request, response = await agent.link.exchange("session/new", {"cwd": agent.cwd, "mcpServers": [server]})
    case.decide.need(response.error is not UNSET, "the agent accepted an MCP server of an unknown transport")
    case.decide.check(
        "RPC-27", SECRET.encode() not in response.raw,
        "expected the error not to repeat a header or an environment variable", request, response,
    )  # fmt: skip


@scenarios.add("RPC-40", shares=True)
async def malformed_options_are_forgiven(case: AgentCase) -> None:
    """A malformed optional capability counts as absent, and `initialize` succeeds."""
    await case.open()
    capabilities: dict[str, Any] = {"elicitation": "yes"}
    if case.version == 1:
        capabilities |= {"fs": "yes", "terminal": {}}
    link = await case.link()
    if case.version == 1:
        params: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": capabilities}
    else:
        info = {"name": "antiphon-judge", "version": "1"}
        params = {"protocolVersion": 2, "info": info, "capabilities": capabilities}
    request, response = await link.exchange("initialize", params)
    case.decide.check(
        "RPC-40", response.error is UNSET,
        "expected `initialize` to read malformed optional capabilities as absent", request, response,
    )  # fmt: skip


def _nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value
