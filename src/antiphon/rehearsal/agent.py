"""The built-in agent, written with the public agent API only.

A prompt is a slash command, plain words for one, or a drill. Any other prompt gets a greeting.
"""

from __future__ import annotations

from antiphon.agent import Agent, AgentTurn
from antiphon.rehearsal.drills import DRILLS
from antiphon.rehearsal.prompt_text import name_session, name_session_later, understood
from antiphon.rehearsal.skill import Skill, Unable, speak
from antiphon.rehearsal.skills import make_skills
from antiphon.rehearsal.skills.guide import greet
from antiphon.rehearsal.skills.session import declare_options
from antiphon.rehearsal.state import memory, report
from antiphon.stores.base import Store
from antiphon.version import __version__


def make_agent(*, store: Store | None = None, may_exit: bool = False) -> Agent:
    """Make the built-in agent.

    may_exit: the agent has its own process, which `/crash` may end
    """
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
    reason = None
    try:
        reason = await skill.work(turn, rest)
        if reason is None:
            await _explain(turn, skill)
    except Unable as why:
        await speak(turn, str(why))
    await report(turn.session)
    return reason


async def _explain(turn: AgentTurn, skill: Skill) -> None:
    """Explain which part of the protocol a skill shows, the first time."""
    explained = memory(turn.session).explained
    if skill.about and turn.session.config["explain"] and skill.name not in explained:
        explained.add(skill.name)
        await speak(turn, f"> In the protocol this is {skill.about}")
