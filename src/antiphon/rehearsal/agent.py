"""Rehearsal: an agent to practise with, and to see what the protocol can do.

Written with the public agent API alone, so it also shows what that is good for. A prompt is a slash command,
or plain words that mean one, or a drill, or it gets a greeting.
"""

from __future__ import annotations

from antiphon.agent import Agent, AgentTurn
from antiphon.rehearsal.context import report
from antiphon.rehearsal.drills import DRILLS
from antiphon.rehearsal.memory import memory
from antiphon.rehearsal.pace import speak
from antiphon.rehearsal.skill import Skill, carry_out
from antiphon.rehearsal.skills import make_skills
from antiphon.rehearsal.skills.help import greet
from antiphon.rehearsal.skills.options import declare_options
from antiphon.rehearsal.titles import name_session, name_session_later
from antiphon.rehearsal.wording import understood
from antiphon.stores.base import Store
from antiphon.version import __version__


def make_agent(*, store: Store | None = None, may_exit: bool = False) -> Agent:
    """The rehearsal agent, over a store of your choice. `may_exit`: the process is its own, and ends where
    somebody asks for a crash."""
    agent = Agent(
        "antiphon-rehearsal",
        version=__version__,
        store=store,
        accepts=["image", "audio", "embedded_context"],
    )
    declare_options(agent)
    skills = make_skills(may_exit=may_exit)
    for skill in skills.values():
        _offer(agent, skill)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> str | None:
        text = turn.prompt.text.strip()
        meant = understood(text, skills)
        if meant is not None:
            return await _perform(turn, *meant)
        name_session_later(turn)
        word, _, rest = text.partition(" ")
        drill = DRILLS.get(word.lower())
        if drill is None:
            await greet(turn)
        else:
            await drill(turn, rest.strip())
        return None

    return agent


def _offer(agent: Agent, skill: Skill) -> None:
    @agent.command(skill.name, description=skill.description, hint=skill.hint)
    async def called(turn: AgentTurn, rest: str) -> str | None:
        return await _perform(turn, skill, rest.strip())


async def _perform(turn: AgentTurn, skill: Skill, rest: str) -> str | None:
    await name_session(turn)
    outcome = await carry_out(skill, turn, rest)
    if outcome.done and outcome.reason is None:
        await _explain(turn, skill)
    await report(turn.session)
    return outcome.reason


async def _explain(turn: AgentTurn, skill: Skill) -> None:
    """Which part of the protocol was seen, once."""
    explained = memory(turn.session).explained
    if skill.about and turn.session.config["explain"] and skill.name not in explained:
        explained.add(skill.name)
        await speak(turn, f"> In the protocol this is {skill.about}")
