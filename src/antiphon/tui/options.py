"""Options of a session: modes, models, and whatever else its agent lets one choose."""

from __future__ import annotations

from textual.content import Content

from antiphon.client import ClientSession, arranged
from antiphon.engine.configuration import offered_values
from antiphon.schema import v2
from antiphon.tui.plain import plain_line

Known = v2.SessionConfigSelect | v2.SessionConfigBoolean


def known_options(session: ClientSession) -> list[Known]:
    return [option for option in arranged(session.config_options) if isinstance(option, Known)]


def option_line(option: Known) -> Content:
    if isinstance(option, v2.SessionConfigBoolean):
        value = "on" if option.current_value else "off"
    else:
        names = {each.value: each.name for each in offered_values(option)}
        value = plain_line(names.get(option.current_value, str(option.current_value)), limit=60)
    about = f"\n{plain_line(option.description, limit=200)}" if option.description else ""
    return Content.assemble(
        plain_line(option.name, limit=60), "  ", (value, "$accent"), (about, "$foreground 60%")
    )


def value_lines(option: v2.SessionConfigSelect) -> list[tuple[Content, str]]:
    return [
        (
            Content.assemble(
                plain_line(each.name, limit=60),
                (
                    f"  {plain_line(each.description, limit=200)}" if each.description else "",
                    "$foreground 60%",
                ),
            ),
            str(each.value),
        )
        for each in offered_values(option)
    ]
