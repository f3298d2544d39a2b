"""Dialogs for the options of a session: modes, models and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.content import Content

from antiphon.client import ClientSession, arranged
from antiphon.engine import offered_values
from antiphon.schema import v2
from antiphon.tui.screens.dialogs import Choose
from antiphon.tui.text.plain import plain_line

Known = v2.SessionConfigSelect | v2.SessionConfigBoolean


def choose_option(app: App[Any], session: ClientSession, change: Callable[[str, str | bool], None]) -> None:
    """Ask which option to change, and to which value."""

    def picked(option: Any) -> None:
        if isinstance(option, v2.SessionConfigBoolean):
            change(option.config_id, not option.current_value)
        elif isinstance(option, v2.SessionConfigSelect):
            values = _values(option)
            at = next((at for at, (_, each) in enumerate(values) if each == option.current_value), 0)
            app.push_screen(
                Choose(plain_line(option.name, limit=60), values, at=at),
                lambda value: None if value is None else change(option.config_id, value),
            )

    options = _known(session)
    if options:
        app.push_screen(Choose("Options", [(_option(each), each) for each in options]), picked)
    else:
        app.notify("This agent has no options.", markup=False)


def _known(session: ClientSession) -> list[Known]:
    return [option for option in arranged(session.config_options) if isinstance(option, Known)]


def _option(option: Known) -> Content:
    if isinstance(option, v2.SessionConfigBoolean):
        value = "on" if option.current_value else "off"
    else:
        names = {each.value: each.name for each in offered_values(option)}
        value = plain_line(names.get(option.current_value, str(option.current_value)), limit=60)
    about = f"\n{plain_line(option.description, limit=200)}" if option.description else ""
    return Content.assemble(
        plain_line(option.name, limit=60), "  ", (value, "$accent"), (about, "$foreground 60%")
    )


def _values(option: v2.SessionConfigSelect) -> list[tuple[Content, str]]:
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
