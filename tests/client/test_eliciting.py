"""What an agent asks of the user, as a client gets it and answers it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Client, Elicitation, Permission, Permissions, connect
from antiphon.errors import LinkLost, LocalError
from antiphon.transports.memory import memory_pair
from tests.client.driving import WAYS, ByHand, by_hand, driven, opened
from tests.requirements.marks import requirement

CREATE = "elicitation/create"
Elicit = Callable[[Elicitation], Awaitable[Any]]


class Answers(Permissions):
    def __init__(self, elicit: Elicit, elicits: tuple[str, ...] = ("form", "url")) -> None:
        super().__init__()
        self._elicit = elicit
        self.elicits = elicits

    async def elicit(self, elicitation: Elicitation) -> Any:
        return await self._elicit(elicitation)


async def never(elicitation: Elicitation) -> Any:
    await asyncio.Event().wait()


def answering(values: dict[str, Any], seen: list[Elicitation] | None = None) -> Answers:
    async def elicit(elicitation: Elicitation) -> Any:
        if seen is not None:
            seen.append(elicitation)
        return elicitation.accept(**values)

    return Answers(elicit)


def form(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    required = {"required": more.pop("required")} if "required" in more else {}
    schema = {"type": "object", "properties": properties, **required}
    scope = {} if "requestId" in more else {"sessionId": "s"}
    return {"mode": "form", "message": "Tell me", "requestedSchema": schema, **scope, **more}


def url(**more: Any) -> dict[str, Any]:
    place = {"url": "https://example.com/in?state=1", "elicitationId": "e1"}
    return {"mode": "url", "message": "Go there", "sessionId": "s", **place, **more}


async def reply(agent: ByHand, id: str) -> dict[str, Any]:
    while True:
        frame = await agent.receive()
        if frame.get("id") == id and "method" not in frame:
            return frame


async def ask(agent: ByHand, params: dict[str, Any], id: str = "q") -> dict[str, Any]:
    agent.send(id=id, method=CREATE, params=params)
    return await reply(agent, id)


NAME = {"name": {"type": "string"}}


# --- what is said --------------------------------------------------------------------------------


class Leaving:
    """A target of `connect` that leaves when it is asked to begin."""

    params: dict[str, Any]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        yield

    async def serve(self, transport: Any) -> None:
        self.params = (await ByHand(transport).expect("initialize"))["params"]
        await transport.aclose()


async def offered(version: int | None, answers: Any) -> tuple[Any, Any]:
    """What a client says of elicitations in `initialize`, in the shape of v1 and of v2."""
    target = Leaving()
    with pytest.raises(LinkLost):
        async with connect(target, version=version, answers=answers):
            pass
    params = target.params
    old, new = params.get("clientCapabilities", {}), params.get("capabilities", {})
    return old.get("elicitation"), new.get("elicitation")


@requirement("ELIC-01", "INIT-18", "INIT-22")
@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (None, None),
        (Permissions(), None),
        (Answers(never), {"form": {}, "url": {}}),
        (Answers(never, ("form",)), {"form": {}}),
        (Answers(never, ("url",)), {"url": {}}),
        (Answers(never, ()), None),
    ],
)
async def test_exactly_what_can_be_answered_is_offered(answers: Any, said: Any) -> None:
    assert await offered(1, answers) == (said, None)
    assert await offered(2, answers) == (said, said)
    assert await offered(None, answers) == (said, said)


@requirement("ELIC-01")
async def test_who_does_not_say_answers_forms_alone() -> None:
    class Plain(Permissions):
        async def elicit(self, elicitation: Elicitation) -> None:
            return None

    assert await offered(2, Plain()) == ({"form": {}}, {"form": {}})
    with pytest.raises(LocalError, match="smell"):
        Client(memory_pair()[0], answers=Answers(never, ("smell",)))


@requirement("ELIC-03", "ELIC-09")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("answers", "params"),
    [
        (None, form(NAME)),
        (None, url()),
        (Answers(never, ("url",)), form(NAME)),
        (Answers(never, ("form",)), url()),
        (Answers(never), {"mode": "_smell", "message": "Sniff", "sessionId": "s"}),
        (Answers(never), form(NAME, sessionId="other")),
        (Answers(never), {"mode": "form", "message": "x", "sessionId": "s"}),
        (Answers(never), form({"name": {"type": "string", "minLength": "two"}})),
        (Answers(never), form(NAME, sessionId="s", requestId=1)),
    ],
)
async def test_what_is_not_offered_or_not_known_is_refused(
    version: int, answers: Any, params: dict[str, Any]
) -> None:
    async with by_hand(version, answers=answers) as (session, agent):
        assert (await ask(agent, params))["error"]["code"] == -32602
        assert session.questions == []


# --- addresses -----------------------------------------------------------------------------------


@requirement("ELIC-10", "ELIC-12", "ELIC-14")
@pytest.mark.parametrize("version", [1, 2])
async def test_an_address_is_shown_whole_and_may_be_completed(version: int) -> None:
    seen: list[Elicitation] = []
    async with by_hand(version, answers=answering({}, seen)) as (session, agent):
        agent.send(method="elicitation/complete", params={"elicitationId": "e1"})
        given = await ask(agent, url())
        assert given["result"] == {"action": "accept"}
        (elicitation,) = seen
        assert elicitation.url == "https://example.com/in?state=1"
        assert elicitation.host == "example.com"
        assert elicitation.agent == ("unknown agent" if version == 1 else "agent")
        assert elicitation.fields == ()
        assert elicitation.problems({"a": 1}) == {"a": "is not a field of this form"}
        waiting = asyncio.ensure_future(elicitation.completed())
        agent.send(method="elicitation/complete", params={"elicitationId": "another"})
        await agent.settled(session)
        assert not waiting.done()
        agent.send(method="elicitation/complete", params={"elicitationId": "e1"})
        agent.send(method="elicitation/complete", params={"elicitationId": "e1"})
        assert await waiting is True
        assert await elicitation.completed() is True


@requirement("ELIC-14")
@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://EXAMPLE.com:8443/", "example.com"),
        ("https://bank.com@evil.example/", "evil.example"),
        ("https://аpple.com/", "xn--pple-43d.com"),
        ("https://[::1]/", "::1"),
        ("nonsense", None),
        ("https://[nonsense", None),
    ],
)
async def test_the_host_of_an_address_cannot_be_mistaken(address: str, host: str | None) -> None:
    seen: list[Elicitation] = []
    async with by_hand(answers=answering({}, seen)) as (_, agent):
        await ask(agent, url(url=address))
    assert (seen[0].url, seen[0].host) == (address, host)


async def test_a_visit_that_was_not_agreed_to_or_whose_link_ends_is_not_completed() -> None:
    seen: list[Elicitation] = []

    async def elicit(elicitation: Elicitation) -> Any:
        seen.append(elicitation)
        return elicitation.accept() if len(seen) > 1 else elicitation.decline()

    async with by_hand(answers=Answers(elicit)) as (_, agent):
        await ask(agent, url())
        assert await seen[0].completed() is False
        await ask(agent, url(), "again")
        waiting = asyncio.ensure_future(seen[1].completed())
    assert await waiting is False


# --- when it is over -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("params", [form(NAME), url()])
async def test_a_question_that_the_agent_takes_back_is_answered_cancel(
    version: int, params: dict[str, Any]
) -> None:
    async with by_hand(version, answers=Answers(never)) as (session, agent):
        agent.send(id="q", method=CREATE, params=params)
        await agent.settled(session)
        assert [question.method for question in session.questions] == [CREATE]
        agent.send(method="$/cancel_request", params={"requestId": "q"})
        assert (await reply(agent, "q"))["result"] == {"action": "cancel"}
        assert session.questions == []


@pytest.mark.parametrize("version", [1, 2])
async def test_so_is_one_that_is_taken_back_before_anybody_was_asked(version: int) -> None:
    async with by_hand(version, answers=Answers(never)) as (session, agent):
        for n in range(50):
            agent.say(f"{n}")
        agent.send(id="q", method=CREATE, params=form(NAME))
        agent.send(method="$/cancel_request", params={"requestId": "q"})
        assert (await reply(agent, "q"))["result"] == {"action": "cancel"}
        assert session.questions == []


@pytest.mark.parametrize("version", [1, 2])
async def test_cancelling_the_turn_answers_its_question_and_no_other(version: int) -> None:
    async with by_hand(version, answers=Answers(never)) as (session, agent):
        agent.send(id="before", method=CREATE, params=form(NAME))
        await agent.settled(session)
        prompting = asyncio.ensure_future(session.prompt("hi"))
        id = await agent.prompted()
        if version == 2:
            agent.takes(id, "u1")
            agent.shows("u1")
            agent.state("running")
        turn = await prompting
        agent.send(id="q", method=CREATE, params=form(NAME))
        await agent.settled(session)
        if version == 1:
            assert session.state == "requires_action"
        assert len(session.questions) == 2
        await turn.cancel()
        assert (await reply(agent, "q"))["result"] == {"action": "cancel"}
        assert len(session.questions) == 1


async def test_a_client_that_leaves_answers_nothing() -> None:
    async with opened(answers=Answers(never)) as (client, agent):
        new = asyncio.ensure_future(client.new_session("/"))
        agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": "s"})
        session = await new
        agent.send(id="q", method=CREATE, params=form(NAME))
        await agent.settled(session)
        client.leave_session(session, "gone")
        agent.send(id="late", method=CREATE, params=form(NAME))
        agent.send(id="x", method="_x", params={})
        while (await agent.receive()).get("id") != "x":
            pass
        assert session.questions == []
        agent.send(method="$/cancel_request", params={"requestId": "late"})
        assert (await reply(agent, "late"))["result"] == {"action": "cancel"}, "unless it is taken back"


# --- requests ------------------------------------------------------------------------------------


@requirement("ELIC-04")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_question_may_belong_to_a_request(version: int) -> None:
    seen: list[Elicitation] = []

    async def elicit(elicitation: Elicitation) -> Any:
        seen.append(elicitation)
        if len(seen) == 2:
            await asyncio.Event().wait()
        return elicitation.accept(name="Ada")

    async with opened(version, answers=Answers(elicit)) as (client, agent):
        new = asyncio.ensure_future(client.new_session("/"))
        request = await agent.expect("session/new")
        given = await ask(agent, form(NAME, requestId=request["id"]))
        assert given["result"] == {"action": "accept", "content": {"name": "Ada"}}
        assert seen[0].session is None
        assert seen[0].request_id == request["id"]
        assert seen[0].tool_call is None
        agent.send(id="q", method=CREATE, params=form(NAME, requestId=request["id"]))
        agent.send(method="$/cancel_request", params={"requestId": "q"})
        assert (await reply(agent, "q"))["result"] == {"action": "cancel"}
        agent.send(id=request["id"], result={"sessionId": "s"})
        await new


# --- both together -------------------------------------------------------------------------------


class Trip(Struct):
    to: Annotated[str, Meta(title="Where to?")]
    people: Annotated[int, Meta(ge=1)] = 1
    by: Literal["train", "bus"] = "train"


@pytest.mark.parametrize("way", WAYS)
async def test_an_agent_and_a_client_understand_each_other(way: str) -> None:
    agent = Agent("guide")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Plan a trip") as call:
            answer = await call.ask("A trip?", Trip)
        assert answer.value is not None
        await turn.say(f"{answer.value.people} to {answer.value.to} by {answer.value.by}")
        consent = await turn.ask_url("Pay", "https://example.com/pay")
        await consent.complete()
        await turn.say(consent.action)

    seen: list[Elicitation] = []

    async def elicit(elicitation: Elicitation) -> Any:
        seen.append(elicitation)
        assert elicitation.agent == "guide"
        return elicitation.accept() if elicitation.url else elicitation.accept(to="Ulm", people=2)

    async with driven(agent, way, answers=Answers(elicit)) as session:
        turn = await session.prompt("go")
        events = [event async for event in turn.events()]
        assert turn.text == "2 to Ulm by train\n\naccept"
        assert await seen[1].completed()
        states = [str(event.question.state) for event in events if event.question is not None]
        assert states == ["open", "answered", "open", "answered"]
        assert seen[0].tool_call is not None
        assert seen[0].tool_call.title == "Plan a trip"


async def test_permissions_are_decided_beside_it() -> None:
    agent = Agent("both")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Act", kind="edit") as call:
            allowed = await call.request_permission()
            answer = await call.ask("A trip?", Trip)
            await turn.say(f"{allowed} {answer.action}")

    class Mine(Permissions):
        async def elicit(self, elicitation: Elicitation) -> Any:
            return elicitation.decline()

    async def allow(permission: Permission) -> Any:
        return permission.allow()

    async with driven(agent, answers=Mine(ask=allow)) as session:
        turn = await session.prompt("go")
        await turn.drained()
        assert turn.text == "True decline"
