"""The output of a terminal with its colours. Other escape sequences have no effect."""

from __future__ import annotations

import re

from rich.color import Color
from rich.style import Style
from rich.text import Text

from antiphon.tui.text.plain import plain_output

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}
LONGEST_LINE = 2000


def coloured(output: str, ansi: tuple[str, ...]) -> list[Text]:
    """Return the lines of an output in colours. `ansi`: the sixteen numbered colours."""
    state = _State(ansi)
    lines = []
    for line in output.replace("\r\n", "\n").split("\n"):
        made, at = _Line(), 0
        for found in _SGR.finditer(line):
            made.write(line[at : found.start()], state.style)
            state.apply(found[1])
            at = found.end()
        made.write(line[at:], state.style)
        made.text.truncate(LONGEST_LINE)
        lines.append(made.text)
    return lines


class _Line:
    def __init__(self) -> None:
        self.text = Text(no_wrap=True)
        self._returned = False

    def write(self, piece: str, style: Style) -> None:
        _, returned, last = piece.rstrip("\r").rpartition("\r")
        if returned or (self._returned and last):
            self.text = Text(no_wrap=True)  # the line was overwritten
        self._returned = piece.endswith("\r") or (self._returned and not last)
        shown = plain_output(last).replace("\n", " ")
        if shown:
            self.text.append(shown, style)


class _State:
    def __init__(self, ansi: tuple[str, ...]) -> None:
        self._ansi = ansi
        self._attributes: dict[str, bool] = {}
        self._colours: dict[str, Color] = {}
        self.style = Style()

    def apply(self, given: str) -> None:
        codes = [int(code) if code.isdigit() and len(code) < 4 else 0 for code in re.split("[;:]", given)]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self._attributes.clear()
                self._colours.clear()
            elif code in _ATTRIBUTES:
                self._attributes[_ATTRIBUTES[code]] = True
            elif code in _ENDS:
                for name in _ENDS[code]:
                    self._attributes.pop(name, None)
            elif code in (38, 48):
                self._colour("color" if code == 38 else "bgcolor", self._extended(codes))
            elif code in (39, 49):
                self._colours.pop("color" if code == 39 else "bgcolor", None)
            elif code in range(30, 38) or code in range(90, 98):
                self._colour("color", self._numbered(code % 10 + (8 if code >= 90 else 0)))
            elif code in range(40, 48) or code in range(100, 108):
                self._colour("bgcolor", self._numbered(code % 10 + (8 if code >= 100 else 0)))
        self.style = Style(**self._attributes, **self._colours)  # type: ignore[arg-type]  # the keys are parameters of Style

    def _colour(self, which: str, colour: Color | None) -> None:
        if colour is not None:
            self._colours[which] = colour

    def _numbered(self, number: int) -> Color:
        return Color.parse(self._ansi[number]) if number < 16 else Color.from_ansi(number)

    def _extended(self, codes: list[int]) -> Color | None:
        kind = codes.pop(0) if codes else 0
        if kind == 5 and codes:
            return self._numbered(codes.pop(0) & 255)
        if kind == 2 and len(codes) >= 3:
            red, green, blue = (codes.pop(0) & 255 for _ in range(3))
            return Color.from_rgb(red, green, blue)
        return None
