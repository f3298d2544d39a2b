"""What the agent can do: one module for what belongs together, each with its `SKILLS`."""

from __future__ import annotations

from antiphon.rehearsal.skill import Skill
from antiphon.rehearsal.skills import (
    context,
    edit,
    find,
    form,
    later,
    look,
    options,
    plan,
    run,
    subagent,
    trouble,
    words,
)
from antiphon.rehearsal.skills.help import make_help
from antiphon.rehearsal.skills.tour import make_tour

_MODULES = (look, find, edit, run, plan, form, options, words, later, subagent, context)


def make_skills(*, may_exit: bool) -> dict[str, Skill]:
    """Every skill by its name, in the order of the list that people get."""
    made: list[Skill] = [skill for module in _MODULES for skill in module.SKILLS]
    listed = [make_tour({skill.name: skill for skill in made}), *made]
    helping = make_help(listed)
    listed[1:1] = [helping]
    listed += [*trouble.SKILLS, trouble.make_crash(may_exit=may_exit)]
    return {skill.name: skill for skill in listed}
