"""One session on the screen, over a real agent process: what it shows, and what the keys do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.widgets import Input, RadioSet, SelectionList

from antiphon.tui.history import History
from antiphon.tui.screens.form import FormScreen
from antiphon.tui.screens.help import HelpScreen
from antiphon.tui.story.tool_calls import CallEntry
from antiphon.tui.story.window import LAID_OUT, MOST
from antiphon.tui.widgets import question_card
from antiphon.tui.widgets.key_bar import KeyBar
from tests.tui.conftest import AGENT, scene


@pytest.mark.parametrize("version", [1, 2])
async def test_a_prompt_is_answered_whichever_version_the_agent_speaks(version: int) -> None:
    async with scene(version=version) as stage:
        await stage.write("say hello")
        screen = await stage.shows("heard say hello")
        await stage.rests()
    assert "▌ say hello" in screen


@pytest.mark.parametrize("version", [1, 2])
async def test_a_deleted_message_leaves_a_mark_and_reactions_are_shown(version: int) -> None:
    async with scene(version=version) as stage:
        await stage.write("say hello")
        await stage.shows("heard say hello")
        await stage.rests()
        session = stage.chat.session
        said = session.messages[-1]
        await session.react(said, "+1")
        await session.annotate(said.id, "well said")
        screen = await stage.shows("Note by ")
        assert "+1 " in screen
        assert "well said" in screen
        await stage.write("delete")
        screen = await stage.shows("Message deleted")
        await stage.rests()
    assert "heard say hello" not in screen
    assert "+1 " in screen


async def test_markdown_streams_and_is_laid_out() -> None:
    async with scene() as stage:
        await stage.write("markdown")
        await stage.rests()
        screen = await stage.shows("link (https://example.org/)")
    assert "**" not in screen
    assert "```" not in screen
    for line in ("A title", "Some bold words, code and a", "• one", 'return "la"'):
        assert line in screen


async def test_a_thought_is_folded_until_it_is_wanted() -> None:
    async with scene() as stage:
        await stage.write("think")
        await stage.rests()
        assert "▸ Thought  Let me see" in stage.text
        await stage.pilot.press("tab", "up", "enter")
        assert "▾ Thought\n" in await stage.shows("▾ Thought")


async def test_a_question_is_answered_by_its_number_and_the_diff_is_seen_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene() as stage:
        monkeypatch.setattr(question_card, "TOO_SOON", 1000.0)
        await stage.write("edit")
        screen = await stage.shows("waiting for your answer")
        assert "-le" in screen
        assert "+lu" in screen
        assert "song.txt  +1 −1" in screen
        await stage.pilot.press("1")  # too soon: it was meant for something else
        assert stage.app.asking.open
        monkeypatch.setattr(question_card, "TOO_SOON", 0.0)
        await stage.pilot.press("1")
        screen = await stage.shows("allowed: True")
        assert "you answered: Allow" in screen
        await stage.rests()
        assert stage.app.focused is stage.chat.composer
        assert "✓ Edit song.txt  edit" in stage.text
        assert "song.txt" in await stage.shows("Changed files")  # at 100 columns there is room for it


async def test_the_keys_of_a_question_mean_the_same_in_whatever_order_the_agent_lists_its_options() -> None:
    async with scene(version=2) as stage:
        for key, name in [
            ("y", "Just this once"),
            ("n", "Not now"),
            ("N", "Never"),
            ("4", "Always this server"),
        ]:
            await stage.write(f"choose {key}")
            screen = await stage.shows("5 n  Not now")
            assert "1 N  Never" in screen
            assert "2 a  Always this tool" in screen
            assert "3 y  Just this once" in screen
            assert "4    Always this server" in screen
            await stage.pilot.press(key)
            await stage.until(lambda name=name: stage.text.count(f"you answered: {name}") == 1)
            await stage.rests()


async def test_a_question_does_not_take_the_keys_from_who_is_writing() -> None:
    async with scene() as stage:
        stage.chat.composer.put("1 more thing")
        await stage.chat.session.prompt("edit")
        await stage.until(lambda: stage.chat.card.display)
        await stage.pilot.press("1")
        assert stage.chat.composer.text == "1 more thing1"
        assert stage.app.asking.open


async def test_terminal_output_has_its_colours() -> None:
    async with scene() as stage:
        await stage.write("run")
        await stage.shows("red and plain")
        await stage.rests()
        entry = next(each for each in stage.chat.transcript.window.entries if isinstance(each, CallEntry))
        assert stage.chat.transcript.window.page is not None
        line = next(
            line for line in entry.lines(stage.chat.transcript.window.page) if "red and plain" in line.text
        )
        red = next(segment for segment in line if segment.text == "red")
        assert red.style is not None
        assert red.style.color is not None
        assert red.style.color.name == "#f0857b"


async def test_the_plan_stands_in_the_transcript_and_beside_it() -> None:
    async with scene(size=(120, 30)) as stage:
        await stage.write("plan")
        await stage.shows("Plan")
        await stage.rests()
        assert stage.text.count("✓ Tune") == 2
        await stage.pilot.press("ctrl+b")
        await stage.until(lambda: stage.text.count("✓ Tune") == 1)


async def test_what_waits_can_be_edited_moved_and_withdrawn_and_goes_on() -> None:
    async with scene() as stage:
        await stage.write("hold")
        await stage.shows("holding")
        for text in ("say one", "say two", "say three"):
            await stage.write(text)
        await stage.shows("3 queued  say three")
        assert "3 queued" in stage.text
        await stage.pilot.press("tab")  # past nothing else that could have the focus
        stage.chat.queue.focus()
        await stage.pilot.press("home", "e")
        assert stage.chat.composer.text == "say one"
        stage.chat.composer.put("say ONE")
        await stage.pilot.press("enter")
        await stage.shows("1 queued  say ONE")
        stage.chat.queue.focus()
        await stage.pilot.press("home", "alt+down")
        await stage.shows("2 queued  say ONE")
        await stage.pilot.press("end", "d")
        await stage.until(lambda: "say three" not in stage.text)
        stage.chat.composer.focus()
        await stage.pilot.press("escape")
        await stage.shows("cancelled")
        await stage.shows("queue paused")
        stage.chat.queue.focus()
        await stage.pilot.press("r")
        screen = await stage.shows("heard say ONE")
        assert screen.index("heard say two") < screen.index("heard say ONE")


async def test_where_the_agent_has_no_queue_prompts_wait_here() -> None:
    async with scene([AGENT[0], str(Path(__file__).parent / "plain_agent.py")]) as stage:
        await stage.write("hold")
        await stage.shows("heard hold")
        await stage.write("first")
        await stage.write("second")
        await stage.shows("2 queued  second")
        stage.chat.queue.focus()
        await stage.pilot.press("end", "alt+up")
        await stage.shows("1 queued  second")
        await stage.pilot.press("e")
        stage.chat.composer.put("third")
        await stage.pilot.press("enter")
        await stage.shows("1 queued  third")
        await stage.pilot.press("escape")
        screen = await stage.shows("heard first")
        assert screen.index("heard third") < screen.index("heard first")
        assert "Sessions" not in screen  # it keeps no list of them


async def test_steering_and_interrupting_are_offered_while_it_works() -> None:
    async with scene() as stage:
        assert "Interrupt" not in stage.text
        await stage.write("hold")
        await stage.shows("Interrupt")
        stage.chat.composer.put("say instead")
        await stage.pilot.press("ctrl+g")
        screen = await stage.shows("heard say instead")
        assert "cancelled" in screen


async def test_ctrl_c_stops_the_turn_and_twice_it_quits() -> None:
    async with scene() as stage:
        await stage.write("hold")
        await stage.shows("holding")
        await stage.pilot.press("ctrl+c")
        await stage.shows("cancelled")
        assert stage.app.is_running
        await stage.pilot.press("ctrl+c")
        await stage.until(lambda: stage.app._exit)


async def test_how_a_turn_ended_is_told() -> None:
    async with scene() as stage:
        await stage.write("fail")
        await stage.shows("the turn failed")
        await stage.write("refuse")
        screen = await stage.shows("the agent refused")
    assert "private" not in screen


async def test_commands_are_offered_and_completed() -> None:
    async with scene() as stage:
        await stage.until(lambda: stage.chat.session.commands)
        await stage.pilot.press("slash", "t")
        await stage.shows("Tune the voices")
        await stage.pilot.press("tab")
        assert stage.chat.composer.text == "/tune"
        await stage.pilot.press("enter")
        await stage.shows("tuned")


async def test_prompts_of_before_come_back_also_in_another_process(tmp_path: Path) -> None:
    kept = tmp_path / "state" / "prompts.jsonl"
    async with scene(history=kept) as stage:
        await stage.write("say one")
        await stage.rests()
        await stage.write("say two\nlines")
        await stage.pilot.press("up", "up", "up")
        assert stage.chat.composer.text == "say one"
        await stage.pilot.press("down")
        assert stage.chat.composer.text == "say two\nlines"
    assert kept.stat().st_mode & 0o077 == 0
    assert History(kept).previous("") == "say two\nlines"


async def test_a_message_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as stage:
        copied: list[str] = []
        monkeypatch.setattr(stage.app, "copy_to_clipboard", copied.append)
        await stage.write("say these words")
        await stage.rests()
        await stage.pilot.press("tab", "y")
        await stage.shows("Copied")
    assert copied == ["heard say these words"]


async def test_words_are_found_also_where_nothing_is_laid_out_yet() -> None:
    async with scene() as stage:
        await stage.write("many 300")
        await stage.rests()
        await stage.shows("message 299")
        await stage.pilot.press("ctrl+f")
        await stage.pilot.press(*"message 7")
        await stage.shows("11 matches")
        await stage.shows("message 79")
        for _ in range(10):
            await stage.pilot.press("enter")
        await stage.until(lambda: re.search(r"  message 7 *\S?\n", stage.text))
        await stage.pilot.press("down")
        await stage.shows("message 70")
        await stage.pilot.press("escape", "escape")
        await stage.shows("message 299")
        assert stage.app.focused is stage.chat.composer


async def test_older_parts_are_laid_out_when_one_scrolls_up_to_them() -> None:
    async with scene() as stage:
        await stage.write("many 600")
        await stage.rests()
        await stage.shows("message 599")
        transcript = stage.chat.transcript
        assert len(transcript.window.entries) <= MOST
        await stage.pilot.press("ctrl+l")
        await stage.pilot.press("enter")  # opened again: only its end is laid out
        await stage.opened()
        transcript = stage.chat.transcript
        await stage.shows("message 599")
        assert len(transcript.window.entries) == LAID_OUT
        transcript.focus()
        first = transcript.window.entries[0].text
        transcript.scroll_to(y=0, animate=False)
        await stage.until(lambda: len(transcript.window.entries) > LAID_OUT)
        assert first in stage.text.split("\n")[4]  # older ones stand above it, and it where it was
        await stage.pilot.press("g")
        await stage.shows("▌ many 600")
        await stage.pilot.press("G")
        await stage.shows("message 599")


async def test_a_form_has_a_field_of_every_kind() -> None:
    async with scene(size=(100, 40)) as stage:
        await stage.write("form")
        await stage.shows("Fill in the form")
        await stage.pilot.press("1")
        await stage.until(lambda: isinstance(stage.app.screen, FormScreen))
        form = stage.app.screen
        await stage.pilot.press("ctrl+s")
        await stage.shows("It is missing.")  # the name
        form.query(Input).first().value = "Ann"
        form.query_one(RadioSet).focus()
        await stage.pilot.press("down", "enter")
        form.query_one(SelectionList).select("bass")
        await stage.pilot.press("ctrl+s")
        screen = await stage.shows("accept: ")
    assert "'voices': 4" in screen
    assert "'name': 'Ann'" in screen
    assert "bass" in screen
    assert "'mode': " in screen


async def test_an_address_is_shown_whole_and_never_opened() -> None:
    async with scene() as stage:
        await stage.write("visit")
        screen = await stage.shows("https://page.example/path")
        assert "Host: page.example. Nothing is opened from here." in screen
        await stage.pilot.press("2")
        await stage.shows("visit: decline")


async def test_options_are_chosen() -> None:
    async with scene() as stage:
        await stage.shows("Ask first")
        await stage.pilot.press("ctrl+o")
        await stage.shows("Options")
        await stage.pilot.press("enter")
        await stage.shows("Just do it")
        await stage.pilot.press("down", "enter")
        await stage.until(lambda: "· Just do it" in stage.text)


async def test_help_and_themes() -> None:
    async with scene() as stage:
        await stage.pilot.press("f1")
        assert isinstance(stage.app.screen, HelpScreen)
        await stage.shows("steer: add the prompt to the current turn")
        await stage.pilot.press("escape")
        await stage.shows("F1 Help")
        await stage.pilot.click(KeyBar, offset=(stage.text.split("\n")[-1].index("Help"), 0))
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen))
        await stage.pilot.press("escape")
        await stage.pilot.press("ctrl+t")
        assert stage.app.theme == "antiphon-light"
        stage.app.theme = "nord"  # any other theme has colours, too
        await stage.write("markdown")
        await stage.rests()
        await stage.pilot.press("ctrl+p")
        await stage.pilot.press(*"quit")
        await stage.shows("Quit; a hub keeps the session")


@pytest.mark.parametrize("size", [(60, 20), (40, 12)])
async def test_narrow_terminals_have_no_sidebar_and_nothing_is_cut(size: tuple[int, int]) -> None:
    async with scene(size=size) as stage:
        await stage.write("plan")
        await stage.rests()
        await stage.write("edit")
        screen = await stage.shows("2 n  Reject")
        assert "Changed files" not in screen
        assert all(len(line) <= size[0] for line in screen.splitlines())
        await stage.shows("● waiting for your answer")
        await stage.pilot.press("2")
        await stage.rests()
        await stage.write("hold")
        screen = await stage.shows("Steer")
        assert re.search(r"Send .*Stop .*F1 Help$", screen)  # of the keys, those that nobody should miss
