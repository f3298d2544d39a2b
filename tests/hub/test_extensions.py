"""Extension methods through the hub: real processes on both ends, every pair of versions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.agent.talk import Talk
from tests.hub.parrots import begin, ended, join, new_session, parrot, prompt, said
from tests.hub.running import DEADLINE, kill_agents, served
from tests.requirements.marks import requirement

PAIRS = pytest.mark.parametrize(
    ("agent", "client"), [(1, 1), (1, 2), (2, 1), (2, 2)], ids=lambda version: f"v{version}"
)


async def call(talk: Talk, id: str, method: str, **params: Any) -> Any:
    async with asyncio.timeout(DEADLINE):
        return await talk.call(id, method, **params)


async def refused(talk: Talk, id: str, method: str, **params: Any) -> int:
    talk.send(id=id, method=method, params=params)
    async with asyncio.timeout(DEADLINE):
        code: int = (await talk.answer_to(id))["error"]["code"]
        return code


@requirement("EXT-01", "OBS-02")
@PAIRS
async def test_a_client_s_own_methods_reach_the_agent_and_come_back(
    tmp_path: Path, agent: int, client: int
) -> None:
    with served(tmp_path, "--acp-version", str(agent), agent=parrot(agent)) as hub:
        async with hub.talk(client) as talk:
            session = await new_session(talk)
            given = {"_meta": {"traceparent": "00-1", "deep": {"x": None}}, "list": [1, None, {"y": "é"}]}
            assert await call(talk, "1", "_parrot/echo", **given) == given
            named = {"sessionId": session, **given}
            assert await call(talk, "2", "_parrot/echo", **named) == named  # mapped there and back
            talk.send(method="_parrot/told", params=named)
            talk.send(method="_antiphon/unheard_of", params=named)
            told = {"heard": []}
            async with asyncio.timeout(DEADLINE):
                number = 0
                while not told["heard"] or told["heard"][-1][0] != "_parrot/told":
                    number += 1  # it is told behind us: nothing says when
                    told = await call(talk, f"h{number}", "_parrot/heard", sessionId=session)
            params = told["heard"][-1][1]
            assert params == {**named, "sessionId": "parrot-session-0"}
            assert await refused(talk, "3", "_parrot/unknown", sessionId=session) == -32601
            assert await refused(talk, "4", "_antiphon/unknown", sessionId=session) == -32601
            assert await refused(talk, "5", "_parrot/echo", sessionId="nobody's") == -32002
            assert await refused(talk, "6", "unknown/method") == -32601


@requirement("EXT-01", "OBS-02", "PROXY-07")
@PAIRS
async def test_an_agent_s_own_methods_reach_the_clients_of_its_session(
    tmp_path: Path, agent: int, client: int
) -> None:
    beside = {"_meta": {"traceparent": "00-2"}, "n": [1]}
    with served(tmp_path, "--acp-version", str(agent), agent=parrot(agent)) as hub:
        async with hub.talk(client) as first, hub.talk(3 - client) as second, hub.talk(client) as stranger:
            session = await new_session(first)
            await new_session(stranger)
            await join(second, session, version=3 - client)
            say = {"update": {"sessionUpdate": "_vendor_said", "x": 1}}
            if agent == 2:
                say = {"update": {"sessionUpdate": "agent_message_chunk", "messageId": "m",
                                  "content": {"type": "text", "text": "{}"}}}  # fmt: skip
            asks = {"ask": ["_parrot/pick", {"sessionId": "$session", **beside}]}
            tells = {"notify": ["_parrot/news", {"sessionId": "$session", **beside}]}
            begin(first, session, say, tells, asks)
            got = [await talk.request("_parrot/pick") for talk in (first, second)]
            assert [frame["params"] for frame in got] == [{"sessionId": session, **beside}] * 2
            first.send(id=got[0]["id"], error={"code": -32601, "message": "no"})
            second.send(id=got[1]["id"], result={"picked": None, "sessionId": session})
            await ended(first)
            assert {"picked": None, "sessionId": "parrot-session-0"} in said(first)
            for talk in (first, second):
                frames = [f.get("method") for f in talk.seen]
                assert frames.index("_parrot/news") < frames.index("_parrot/pick")
                news = next(f for f in talk.seen if f.get("method") == "_parrot/news")
                assert news["params"] == {"sessionId": session, **beside}
                assert "session/update" in frames[: frames.index("_parrot/news")]
            assert not [f for f in stranger.seen if str(f.get("method")).startswith("_parrot")]


@requirement("EXT-01")
async def test_the_first_answer_counts_and_the_others_are_told(tmp_path: Path) -> None:
    with served(tmp_path, agent=parrot(1)) as hub:
        async with hub.talk(1) as first, hub.talk(2) as second:
            session = await new_session(first)
            await join(second, session, version=2)
            asks = {"ask": ["_parrot/pick", {"sessionId": "$session"}]}
            begin(first, session, asks)
            waits = await first.request("_parrot/pick")
            quick = await second.request("_parrot/pick")
            second.send(id=quick["id"], result="quick")
            gone = await first.request("$/cancel_request")
            assert gone["params"]["requestId"] == waits["id"]
            first.send(id=waits["id"], result="late")
            await ended(first)
            assert said(first) == ["quick"]


@requirement("EXT-01")
async def test_nobody_who_knows_it_is_32601_and_a_client_that_leaves_decides_nothing(
    tmp_path: Path,
) -> None:
    with served(tmp_path, agent=parrot(1)) as hub:
        async with hub.talk(1) as first:
            session = await new_session(first)
            async with hub.talk(2) as second:
                await join(second, session, version=2)
                asks = {"ask": ["_parrot/pick", {"sessionId": "$session"}]}
                begin(first, session, asks)
                await second.request("_parrot/pick")
            waits = await first.request("_parrot/pick")
            first.send(id=waits["id"], error={"code": -32601, "message": "no such"})
            await ended(first)
            assert [answer["code"] for answer in said(first)] == [-32601]
            odd = {"ask": ["_parrot/pick", {"sessionId": "parrot-session-9"}]}
            ours = {"ask": ["_antiphon/pick", {"sessionId": "$session"}]}
            await prompt(first, session, odd, ours, id="again")
            assert [answer["code"] for answer in said(first)] == [-32601] * 3


@requirement("EXT-01")
async def test_a_session_that_goes_on_at_another_agent_is_named_by_its_new_id(tmp_path: Path) -> None:
    with served(tmp_path, agent=parrot(1, capabilities={"loadSession": False})) as hub:
        async with hub.talk(1) as talk:
            session = await new_session(talk)
            await prompt(talk, session, id="1")
            kill_agents(hub)
            begin(talk, session, id="2")
            await talk.answer_to("2")  # it may have been on its way when the agent died
            begin(talk, session, {"ask": ["_parrot/pick", {"sessionId": "$session"}]}, id="3")
            asked = await talk.request("_parrot/pick")
            assert asked["params"] == {"sessionId": session}
            talk.send(id=asked["id"], result=1)
            await ended(talk, "3")
            named = {"sessionId": session}
            assert await call(talk, "e", "_parrot/echo", **named) == named


@requirement("OBS-02")
async def test_what_stands_beside_a_cancel_or_a_choice_reaches_the_agent(tmp_path: Path) -> None:
    modes = [{"id": "ask", "name": "Ask"}, {"id": "do", "name": "Do"}]
    setting = {"modes": {"currentModeId": "ask", "availableModes": modes}}
    with served(tmp_path, agent=parrot(1, new=setting)) as hub:
        async with hub.talk(1) as talk:
            session = await new_session(talk)
            chosen = {"sessionId": session, "modeId": "do", "_meta": {"traceparent": "00-1"}}
            await talk.call("m", "session/set_mode", **chosen)
            begin(talk, session, {"ask": ["_example.com/wait", {"sessionId": "$session"}]})
            asked = await talk.request("_example.com/wait")
            talk.send(
                method="session/cancel",
                params={"sessionId": session, "_meta": {"traceparent": "00-2", "antiphon": {}}},
            )
            talk.send(id=asked["id"], result=1)
            await ended(talk)
            told = await call(talk, "h", "_parrot/heard", sessionId=session)
            metas = {method: (params or {}).get("_meta") for method, params in told["heard"]}
            assert metas["session/set_mode"] == {"traceparent": "00-1"}
            assert {**metas["session/cancel"], "antiphon": {}} == {"traceparent": "00-2", "antiphon": {}}


@requirement("OBS-01", "OBS-02")
@pytest.mark.parametrize("agent", [1, 2])
async def test_what_stands_beside_a_prompt_reaches_the_agent(tmp_path: Path, agent: int) -> None:
    with served(tmp_path, "--acp-version", str(agent), agent=parrot(agent)) as hub:
        async with hub.talk(1) as talk:
            session = await new_session(talk, _meta={"traceparent": "00-3", "antiphon": {"agent": None}})
            await prompt(talk, session, traceparent="00-4", vendor={"x": [None]})
            told = await call(talk, "h", "_parrot/heard", sessionId=session)
            metas = [(method, (params or {}).get("_meta", params)) for method, params in told["heard"]]
            assert metas[0] == ("session/new", {"traceparent": "00-3"})
            prompted = dict(metas[1][1])
            prompted.pop("antiphon", None)
            assert (metas[1][0], prompted) == (
                "session/prompt",
                {"traceparent": "00-4", "vendor": {"x": [None]}},
            )
