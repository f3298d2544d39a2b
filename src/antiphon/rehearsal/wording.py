"""Wording: what a prompt without a slash means, where that is plain enough."""

from __future__ import annotations

import re
from collections.abc import Mapping

from antiphon.rehearsal.drills import DRILLS
from antiphon.rehearsal.skill import Skill

LONGEST = 300
_SENTENCES = [
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"(?:find|search(?: for)?|grep|look for)\s+(.+)", "find"),
        (r"(?:list|show(?: me)?)\s+(?:all |the )*files(?:\s+(?:in|of)\s+(.+))?", "look"),
        (r"(?:ls|look)(?:\s+(?:at\s+)?(.+))?", "look"),
        (r"(?:show(?: me)?|open|cat)\s+(\S+)", "look"),
        (r"run\s+(?:all |the )*(tests)", "run"),
        (r"(?:(?:start|begin|give me|show me|take)\s+)?(?:a |the )?tour()", "tour"),
        (r"(?:what can you do|what do you do|who are you)()", "help"),
    )
]


def understood(text: str, skills: Mapping[str, Skill]) -> tuple[Skill, str] | None:
    """The skill that some words ask for, and what they say about it."""
    words = text.strip()
    if not words or len(words) > LONGEST or "\n" in words:
        return None
    plain = words.rstrip(".!?").strip()
    skill = skills.get(plain.lower())
    if skill is not None and skill.plain and skill.name not in DRILLS:
        return skill, ""
    for sentence, name in _SENTENCES:
        found = sentence.fullmatch(words if name in ("find", "look") else plain)
        if found is not None:
            return skills[name], (found[1] or "").strip()
    return None
