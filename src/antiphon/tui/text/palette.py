"""Colours: those of the page (`web/static/css/tokens.css`) and the two themes made of them. For other Textual
themes the colours are derived from the theme.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from textual.app import App
from textual.color import Color
from textual.theme import Theme


@dataclass(frozen=True)
class Palette:
    paper: str
    panel: str
    raised: str
    ink: str
    soft: str
    line: str
    accent: str
    tint: str
    good: str
    bad: str
    wait: str
    add: str
    add_ink: str
    remove: str
    remove_ink: str
    term: str
    term_ink: str
    ansi: tuple[str, ...] = (
        "#767d88", "#f0857b", "#7ecb97", "#e0b465", "#82b1f0", "#d39be0", "#6ec9ba", "#d5dae0",
        "#949ba6", "#ff9d93", "#97e0af", "#f2cb84", "#a1c6fa", "#e3b6ee", "#8fdfd2", "#ffffff",
    )  # fmt: skip
    """The sixteen colours of terminal output, whose background is dark in both themes."""
    keyword: str = "#d39be0"
    name: str = "#82b1f0"


DARK = Palette(
    paper="#15181c",
    panel="#111417",
    raised="#1d2126",
    ink="#dee1e5",
    soft="#9ca2ab",
    line="#2a2f36",
    accent="#62c1b1",
    tint="#172a29",
    good="#6cc08b",
    bad="#ee8a80",
    wait="#e2aa57",
    add="#163022",
    add_ink="#9fdcb3",
    remove="#3a1f1e",
    remove_ink="#f2b1a9",
    term="#0d0f12",
    term_ink="#dfe3e8",
)
LIGHT = Palette(
    paper="#fcfbf9",
    panel="#f6f4f0",
    raised="#f2f0eb",
    ink="#22252a",
    soft="#5f636b",
    line="#e4e1da",
    accent="#0b6b60",
    tint="#e6f1ee",
    good="#2a7548",
    bad="#ad332b",
    wait="#8f5405",
    add="#e2f2e5",
    add_ink="#1f5c33",
    remove="#fbe7e4",
    remove_ink="#8c2a22",
    term="#20242a",
    term_ink="#dfe3e8",
    keyword="#7a3e9d",
    name="#1f5fa8",
)
SELECTED_DARK, SELECTED_LIGHT = "#4a4a4a", "#b2b2b2"
"""The selected row where there are few colours: of 16 colours they become the two greys."""
OURS = {"antiphon-dark": DARK, "antiphon-light": LIGHT}


def themes(*, few_colours: bool = False) -> list[Theme]:
    """Return our themes. `few_colours`: the terminal cannot show the tint of the selected row, which gets a
    grey that every terminal can tell from the rest."""
    made = [_theme(name, palette, dark=palette is DARK) for name, palette in OURS.items()]
    if few_colours:
        for theme in made:
            theme.variables |= {"block-cursor-background": SELECTED_DARK if theme.dark else SELECTED_LIGHT}
    return made


def first_theme() -> str:
    """Return the dark theme, unless the environment says that the terminal is light."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "antiphon-light" if background in ("7", "15") else "antiphon-dark"


def _theme(name: str, palette: Palette, *, dark: bool) -> Theme:
    return Theme(
        name=name,
        primary=palette.accent,
        secondary=palette.accent,
        accent=palette.accent,
        foreground=palette.ink,
        background=palette.paper,
        surface=palette.panel,
        panel=palette.raised,
        success=palette.good,
        warning=palette.wait,
        error=palette.bad,
        dark=dark,
        variables={
            "border": palette.line,
            "border-blurred": palette.line,
            "footer-background": palette.panel,
            "footer-foreground": palette.soft,
            "footer-description-foreground": palette.soft,
            "footer-key-foreground": palette.accent,
            "block-cursor-background": palette.tint,
            "block-cursor-foreground": palette.ink,
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": palette.raised,
            "block-hover-background": palette.raised,
            "input-cursor-background": palette.accent,
            "input-cursor-foreground": palette.paper,
            "input-selection-background": f"{palette.accent} 30%",
            "screen-selection-background": f"{palette.accent} 30%",
            "scrollbar": palette.line,
            "scrollbar-hover": palette.soft,
            "scrollbar-active": palette.accent,
            "scrollbar-background": palette.paper,
            "scrollbar-background-hover": palette.paper,
            "scrollbar-background-active": palette.paper,
            "scrollbar-corner-color": palette.paper,
            "button-foreground": palette.ink,
            "button-color-foreground": palette.paper,
        },
    )


def palette_of(app: App[object]) -> Palette:
    """Return the colours of the app's theme."""
    return OURS.get(app.theme) or _derived(app)


def _derived(app: App[object]) -> Palette:
    theme = app.current_theme
    base = DARK if theme.dark else LIGHT
    variables = app.theme_variables

    def parsed(name: str, otherwise: str) -> Color:
        try:
            return Color.parse(variables[name])
        except Exception:  # a theme may lack this colour
            return Color.parse(otherwise)

    paper, ink = parsed("background", base.paper), parsed("foreground", base.ink)
    accent = parsed("primary", base.accent)
    good, bad = parsed("success", base.good), parsed("error", base.bad)
    made = {
        "paper": paper,
        "panel": parsed("surface", base.panel),
        "raised": parsed("panel", base.raised),
        "ink": ink,
        "soft": ink.blend(paper, 0.35),
        "line": ink.blend(paper, 0.8),
        "accent": accent,
        "tint": paper.blend(accent, 0.15),
        "good": good,
        "bad": bad,
        "wait": parsed("warning", base.wait),
        "add": paper.blend(good, 0.18),
        "add_ink": ink.blend(good, 0.5),
        "remove": paper.blend(bad, 0.18),
        "remove_ink": ink.blend(bad, 0.5),
        "keyword": parsed("secondary", base.keyword),
        "name": accent,
    }
    shades: dict[str, Any] = {name: colour.hex6 for name, colour in made.items()}
    return replace(base, **shades)
