"""The skills of the agent. Each module has its `SKILLS`."""

from __future__ import annotations

from antiphon.rehearsal.skill import Skill
from antiphon.rehearsal.skills import edit, files, form, messages, run, session, survey, trouble
from antiphon.rehearsal.skills.guide import make_help, make_tour

_MODULES = (files, edit, run, survey, form, session, messages)


def make_skills(*, may_exit: bool) -> dict[str, Skill]:
    """Return every skill by name, in the order of the list for users."""
    made: list[Skill] = [skill for module in _MODULES for skill in module.SKILLS]
    listed = [make_tour({skill.name: skill for skill in made}), *made]
    listed.insert(1, make_help(listed))
    listed += [*trouble.SKILLS, trouble.make_crash(may_exit=may_exit)]
    return {skill.name: skill for skill in listed}
