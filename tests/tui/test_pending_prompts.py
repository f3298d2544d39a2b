"""Prompts that the agent has not confirmed: into a lost link, into a frozen one, and at the end."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from antiphon.client import Link, Reconnect
from antiphon.client.link import LinkInput
from antiphon.errors import AntiphonError, LinkLost
from antiphon.tui.history import History
from antiphon.tui.pending_prompts import PendingPrompts
from antiphon.tui.unsent import farewell
from tests.hub.running import served
from tests.tui.conftest import AGENT, scene


class Sent:
    """What was sent, over a link of the test's own."""

    def __init__(self) -> None:
        self.link = Link()
        self.texts: list[str] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.pending = PendingPrompts(self.link, self.send, idle=lambda: True)

    async def send(self, text: str, delivery: str) -> str | None:
        self.texts.append(text)
        await self.answers.wait()
        return delivery


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_prompts_wait_for_the_link_and_are_sent_once_in_order_and_a_withdrawn_one_never() -> None:
    sent = Sent()
    running = asyncio.ensure_future(sent.pending.run())
    sent.link._step(LinkInput.LOST, "gone")
    given = [asyncio.ensure_future(sent.pending.deliver(text, "queue")) for text in "abcd"]
    await settle()
    assert [each.text for each in sent.pending.shown] == ["a", "b", "c", "d"]
    first, second, third, _ = sent.pending.entries
    assert sent.pending.withdraw(second.id)
    assert not sent.pending.withdraw(second.id)
    sent.pending.move(third.id, -1)
    assert sent.texts == []
    sent.link._step(LinkInput.RESTORED)
    assert await asyncio.gather(*given) == ["queue", None, "queue", "queue"]
    assert sent.texts == ["c", "a", "d"]
    assert sent.pending.entries == []
    assert first.sending is not None
    running.cancel()


async def test_behind_a_frozen_link_only_the_first_prompt_is_handed_over() -> None:
    sent = Sent()
    running = asyncio.ensure_future(sent.pending.run())
    sent.answers.clear()
    given = [asyncio.ensure_future(sent.pending.deliver(text, "queue")) for text in "ab"]
    await settle()
    assert sent.texts == ["a"]
    assert sent.pending.withdraw(sent.pending.entries[1].id)
    sent.answers.set()
    assert await asyncio.gather(*given) == ["queue", None]
    assert sent.texts == ["a"]
    running.cancel()


async def test_when_the_link_is_gone_for_good_every_prompt_is_given_back() -> None:
    sent = Sent()
    running = asyncio.ensure_future(sent.pending.run())
    sent.link._step(LinkInput.LOST, "gone")
    given = [asyncio.ensure_future(sent.pending.deliver(text, "queue")) for text in "ab"]
    await settle()
    sent.link._step(LinkInput.ENDED, "no patience")
    outcomes = await asyncio.gather(*given, return_exceptions=True)
    assert [type(each) for each in outcomes] == [LinkLost, LinkLost]
    assert sent.texts == []
    assert issubclass(LinkLost, AntiphonError)
    running.cancel()


def test_what_is_said_at_the_end() -> None:
    again = "In the next antiphon chat, press Up in an empty prompt to get the text back."
    assert farewell(0, 0) is None
    assert farewell(1, 0) == f"A prompt was not sent. {again}"
    assert farewell(2, 1) == (
        f"2 prompts were not sent. A prompt was sent but not confirmed: it may still arrive. {again}"
    )
    assert farewell(1, 0, ["a\x1b[2Jb"]) == (
        "A prompt was not sent. This text could not be stored:\na⟨U+001B⟩[2Jb"
    )


def test_a_text_of_any_length_is_kept_as_the_latest_prompt(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    history = History(path)
    history.add("one")
    assert history.keep("x" * 30_000)
    assert History(path).previous("") == "x" * 30_000
    assert not History(None).keep("lost")


async def test_prompts_into_a_frozen_and_a_lost_hub_stay_visible_and_arrive_once(tmp_path: Path) -> None:
    history = tmp_path / "prompts.jsonl"
    with served(tmp_path, agent=AGENT) as hub:
        how = Reconnect(first=0.05, longest=0.1, find=lambda: (hub.acp, hub.token))
        async with scene(hub.acp, token=hub.token, version=2, reconnect=how, history=history) as stage:
            await stage.write("say before")
            await stage.shows("heard say before")
            os.kill(hub.process.pid, signal.SIGSTOP)
            try:
                await stage.write("say frozen")
                await stage.shows("not confirmed yet  say frozen")
                await stage.write("say second")
                await stage.shows("not sent yet  say second")
                await stage.write("say withdrawn")
                await stage.shows("not sent yet  say withdrawn")
                await stage.shows("● no answer for")
                stage.chat.queue.focus()
                await stage.pilot.press("end", "d")
                await stage.until(lambda: "say withdrawn" not in stage.text)
            finally:
                os.kill(hub.process.pid, signal.SIGCONT)
            await stage.shows("heard say second")
            await stage.until(lambda: "not confirmed" not in stage.text and "not sent yet" not in stage.text)
            await stage.rests()
            screen = stage.text
            assert screen.count("▌ say frozen") == 1
            assert screen.count("heard say frozen") == 1

            hub.kill()
            await stage.shows("reconnecting…")
            await stage.write("say lost")
            screen = await stage.shows("not sent yet  say lost")
            assert "● reconnecting…" in screen
            assert "1 not sent yet" in screen
            hub.restart()
            await stage.until(lambda: stage.text.count("▌ say lost") == 1)
            await stage.until(lambda: "not sent yet" not in stage.text)
            await stage.rests()
            assert stage.text.count("▌ say lost") == 1

            hub.kill()
            await stage.shows("reconnecting…")
            await stage.write("say never")
            await stage.shows("not sent yet  say never")
            stage.chat.composer.put("a draft")
            stage.app.exit()
            told = "".join(str(each) for each in stage.app._exit_renderables)
            assert told.startswith("2 prompts were not sent.")
        hub.restart()
    later = History(history)
    assert [later.previous(""), later.previous("")] == ["a draft", "say never"]
