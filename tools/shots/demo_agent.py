"""The agent of the pictures. It is scripted and uses no language model: it knows a few prompts about the
songs of `staging`. Its work is real: it asks, writes the files, and runs the tests.

`python -m tools.shots.demo_agent [SECONDS]`: the seconds between two words of a message.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from msgspec import Struct

from antiphon import Agent, AgentTurn
from antiphon.agent import ToolCallWriter
from antiphon.schema import v2

PAUSE_IN_WORDS = 12
"""The pause after a step, counted in words."""
STEPS = ("Find the cause", "Accept any spelling", "Test it")
REJECTED = "Not allowed, so I changed nothing."
ANSWERS = {
    "Which voice begins a verse?": """Whichever you name: `order("tenor")` begins with the tenor, and the
others follow from high to low.""",
    "What does verse() return?": """A list of pairs, one for each word:

| Voice | Word |
|---|---|
| alto | let |
| tenor | all |
| bass | the |
| soprano | world |
""",
    "How many voices are there?": "Four: soprano, alto, tenor and bass. `VOICES` in `score.py` names them.",
}
TITLES = {
    'order("Tenor") fails. Accept any spelling, and test it.': "Any spelling of a voice",
    "Which voice begins a verse?": "Who begins a verse",
    "What does verse() return?": "What verse() returns",
    "How many voices are there?": "The four voices",
}
SUMMARY = """**Fixed.** `order("Tenor")`, `order("TENOR")` and `order(" tenor ")` all begin with the tenor.

* `score.py` looks a voice up in small letters, without the spaces around it.
* `test_score.py` has one more test.

All three tests pass.
"""


class Edit(Struct, frozen=True):
    file: str
    old: str
    new: str


LOOKUP = Edit("score.py", "VOICES.index(first)", "VOICES.index(first.strip().lower())")
TEST = Edit(
    "test_score.py",
    """    def test_every_word""",
    """    def test_any_spelling_of_a_voice_is_known(self):
        self.assertEqual(order(" Tenor "), order("tenor"))

    def test_every_word""",
)
NOTE = Edit(
    "README.md", "hears it all.\n", "hears it all.\n\nName a voice as you like: `Tenor` is `tenor`.\n"
)

_Kind = v2.PermissionOptionKind
CHOICES = [
    v2.PermissionOption(option_id=v2.PermissionOptionId(id), name=name, kind=kind)
    for id, name, kind in (
        ("allow", "Allow once", _Kind.ALLOW_ONCE),
        ("always", "Allow for this session", _Kind.ALLOW_ALWAYS),
        ("reject", "Reject", _Kind.REJECT_ONCE),
    )
]
WORD = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0

agent = Agent("demo", version="1.0", accepts=["image", "embedded_context"])
agent.config("mode", name="Mode", category="mode", options={"ask": "Ask first", "edit": "Edit freely"})


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    text = turn.prompt.text.strip()
    if turn.session.fold.facts.info is None:
        await turn.session.set_title(TITLES.get(text, text))
    if "spelling" in text:
        await mend(turn)
    elif "README" in text:
        await change(turn, NOTE, asks=False)
        await say(turn, "`README.md` now says that a voice may be written in any way.")
    elif "rehearsal" in text:
        await run(turn, "sh rehearse.sh")
    elif "tests" in text:
        await run(turn, "python3 -m unittest -v")
    else:
        await say(turn, ANSWERS.get(text, "I know only the prompts of the pictures."))


async def mend(turn: AgentTurn) -> None:
    """Find the cause, change the code with permission, and test it."""
    await plan(turn, 0)
    async with turn.thought() as thought:
        await thought.write("The name is looked up as it is written, and VOICES has small letters only.")
    await say(turn, "I’ll find the place where voices are looked up.")
    async with turn.tool_call("Search for “index(”", kind="search") as call:
        await call.locate("score.py", line=8)
        await call.write("score.py:8:    at = VOICES.index(first)")
        await rest()
    await plan(turn, 1)
    if not await change(turn, LOOKUP, asks=True):
        await say(turn, REJECTED)
        return
    await plan(turn, 2)
    await change(turn, TEST, asks=False)
    async with turn.tool_call("python3 -m unittest -v", kind="execute") as call:
        await call.run(["python3", "-m", "unittest", "-v"])
        await rest()
    await plan(turn, len(STEPS))
    await say(turn, SUMMARY)


async def change(turn: AgentTurn, edit: Edit, *, asks: bool) -> bool:
    """Change a file. Return whether that was allowed."""
    path = Path(turn.session.cwd, edit.file)
    old = await asyncio.to_thread(path.read_text)
    new = old.replace(edit.old, edit.new)
    async with turn.tool_call(f"Edit {edit.file}", kind="edit") as call:
        await call.locate(path, line=old[: old.index(edit.old)].count("\n") + 1)
        await call.diff(str(path), old=old, new=new)
        if asks and not await allowed(turn, call):
            return False
        await asyncio.to_thread(path.write_text, new)
        await rest()
    return True


async def run(turn: AgentTurn, command: str) -> None:
    async with turn.tool_call(command, kind="execute") as call:
        if await allowed(turn, call):
            await call.run(["sh", "-c", command])


async def allowed(turn: AgentTurn, call: ToolCallWriter) -> bool:
    if turn.session.config["mode"] != "ask" or await call.request_permission(options=CHOICES):
        return True
    await call.fail()
    return False


async def plan(turn: AgentTurn, at: int) -> None:
    """Show the plan, with the steps before this one completed."""
    states = ["completed"] * at + ["in_progress"] + ["pending"] * len(STEPS)
    await turn.plan(
        v2.PlanEntry(content=step, priority=v2.PlanEntryPriority.MEDIUM, status=v2.PlanEntryStatus(state))
        for step, state in zip(STEPS, states, strict=False)
    )
    await rest()


async def say(turn: AgentTurn, text: str) -> None:
    async with turn.message() as message:
        for word in re.findall(r"\s*\S+\s*", text):
            await message.write(word)
            await asyncio.sleep(WORD)


async def rest() -> None:
    await asyncio.sleep(PAUSE_IN_WORDS * WORD)


if __name__ == "__main__":
    agent.run()
