"""Text safety: which characters of foreign text may be shown on a terminal or a page.

Text from agents, clients, hubs and files may contain characters that a terminal obeys (escape sequences,
cursor movement), that change how other characters look (bidirectional overrides), or that are invisible
(zero-width characters, tags, fillers). `safe_text` replaces each by its name, such as ⟨U+202E⟩. Nothing is
dropped, so a user who is asked to approve a command sees that something was hidden in it. Line feeds and tabs
stay.

Joiners and variation selectors stay where they are part of visible text: inside an emoji, or after a letter
of a script that uses them. Everywhere else they are named. All other text, of any script, stays as it is: a
character that a font lacks shows as a box and hides nothing.

`web/static/js/text_safety.js` does the same in the page; `tests/text/vectors.json` has the cases for both.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

NAMED = 4
"""Hidden characters in a row that are named. The rest of a longer row is counted."""
MARKS = 4
"""Combining marks in a row that are shown. Text with vowels and accents needs up to four."""

_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""C0 without tab and line feed, DEL, C1."""
_CONTROLS = re.compile(f"[{_CONTROL}]")
_HIDDEN = (
    f"{_CONTROL}"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, Mongolian selectors
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line separators, bidi, invisible operators
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # fillers, variation selectors, byte order mark
    "\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff"  # noncharacters, lone surrogates
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"  # shorthand and musical controls
    "\U000e0000-\U000e0fff"  # tags, more variation selectors
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(1, 17))
)
_EMOJI = (
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_JOINING = (  # Hebrew to Sinhala, Tibetan, Myanmar, Khmer, Mongolian, Balinese and others
    "[\u0590-\u061b\u061d-\u0dff\u0f00-\u109f\u1700-\u17b3\u17b6-\u180a\u1810-\u18af\u1900-\u1cff"
    "\ua800-\uabff\ufb1d-\ufdcf\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
_IDEOGRAPH = "[\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003fffd]"
_TAGGED_FLAG = (  # England, Scotland, Wales: the flags that consist of tags
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_JOINED = f"\u200d{_EMOJI}[\ufe0e\ufe0f]?"
_KEPT = (
    f"{_EMOJI}(?:[\ufe00-\ufe0f](?:{_JOINED})*|(?:{_JOINED})+)"
    "|[0-9#*]\ufe0f(?=\u20e3)"
    f"|{_JOINING}[\u200c\u200d](?![!-~\u200c\u200d])"
    f"|{_IDEOGRAPH}[\ufe00-\ufe02\U000e0100-\U000e01ef]"
    "|[\u1820-\u18aa][\u180b-\u180d\u180f]"
    f"|{_TAGGED_FLAG}"
)


@cache  # compiled on first use, because most agents import this module and never use the pattern
def hidden() -> re.Pattern[str]:
    """Return the pattern for one hidden character, wherever it is."""
    return re.compile(f"[{_HIDDEN}]")


@cache
def _hidden_or_kept() -> re.Pattern[str]:
    return re.compile(f"(?P<kept>{_KEPT})|\r\n|(?:(?!\r\n)[{_HIDDEN}])+")


@cache
def _hidden_end() -> re.Pattern[str]:
    """Return the pattern for the rest of an emoji that was cut."""
    return re.compile(f"[{_HIDDEN}]+\\Z")


_MARKED = re.compile(rf"[^\w\s\x00-\x7f]{{{MARKS + 1},}}")
"""A run that may have too many combining marks: no letters, no spaces and no ASCII."""

ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*(?P<final>[@-~])"  # CSI: colours, cursor movement
    # OSC and other strings: titles, links, the clipboard
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\)?"
    r"|\x1b(?:[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"
)
UNFINISHED_ESCAPE = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*\x1b?"
    r"|\x1b[ -/]*)\Z"
)
LONGEST_ESCAPE = 4096
"""Characters of an incomplete escape sequence that are held back."""


def safe_text(text: str) -> str:
    """Name every hidden character, turn CR LF into LF, and count surplus combining marks."""
    if text.isascii() and text.isprintable():
        return text
    if hidden().search(text):
        text = _hidden_or_kept().sub(_shown, text)
    return text if text.isascii() else _MARKED.sub(_fewer_marks, text)


def safe_line(text: str, *, limit: int = 400) -> str:
    """Return `safe_text` on one line with single spaces, cut to `limit` characters."""
    line = " ".join(safe_text(text[: 4 * limit]).split())
    if len(line) <= limit and len(text) <= 4 * limit:
        return line
    return _hidden_end().sub("", line[: limit - 1]) + "…"


def printed_text(text: str) -> str:
    """Return `safe_text` of what a terminal would show: without escape sequences and overwritten lines.

    It is for output and messages. It drops characters, so it is not for text that a user approves.
    """
    if not text.isprintable():
        text = _without_escapes(text)
        if "\r" in text:
            text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return safe_text(text)


def safe_json(text: str) -> str:
    """Escape hidden characters in JSON. The decoded value stays the same."""
    return hidden().sub(_escaped, text)


def typed_text(text: str) -> str:
    """Return pasted text without control characters, which no key types. Line ends become LF."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def is_safe(text: str) -> bool:
    """Return whether `safe_text` does not change a text."""
    return safe_text(text) == text


class SafeWriter:
    """`safe_text` for text in pieces: characters at a cut are judged together with the next piece.

    printed: drop escape sequences as `printed_text` does. A carriage return begins a new line, because a
    written line cannot be taken back.
    """

    __slots__ = ("_before", "_held", "_printed")

    def __init__(self, *, printed: bool = False) -> None:
        self._printed = printed
        self._before = ""
        """The end of the written text, by which a following joiner or mark is judged."""
        self._held = ""

    def write(self, text: str) -> str:
        """Add text, and return what can be shown now."""
        text = self._held + text
        self._held = ""
        if text.isascii() and text.isprintable():
            self._before = text[-MARKS - 2 :] or self._before
            return text
        if self._printed:
            text = _without_escapes(self._without_unfinished(text))
        if not self._held and (end := _HELD.search(text, max(0, len(text) - LONGEST_HELD))):
            text, self._held = text[: end.start()], end[0]
        return self._safe(text)

    def finish(self) -> str:
        """Return the text that was kept back."""
        held, self._held = self._held, ""
        shown = self._safe(_without_escapes(held) if self._printed else held)
        self._before = ""
        return shown

    def _without_unfinished(self, text: str) -> str:
        begun = UNFINISHED_ESCAPE.search(text, max(0, len(text) - LONGEST_ESCAPE))
        if begun is None:
            return text
        self._held = begun[0]
        return text[: begun.start()]

    def _safe(self, text: str) -> str:
        if self._printed and "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        shown = safe_text(self._before + text)[len(self._before) :]
        self._before = (self._before + shown)[-MARKS - 2 :]
        while not is_safe(self._before):  # it starts inside an emoji
            self._before = self._before[1:]
        if hidden().match(self._before[-1:]):  # it would be judged again with the next piece
            self._before = ""
        return shown


def _without_escapes(text: str) -> str:
    return ESCAPES.sub("", text).replace("\0", "").replace("\a", "")


LONGEST_HELD = 8
_HELD = re.compile("(?:[\r\u200c\u200d\ufe0f]+|\U0001f3f4[\U000e0061-\U000e007f]*)\\Z")
"""Text that is judged by the next piece: half of CR LF, joiners, and a flag that consists of tags."""


def _shown(found: re.Match[str]) -> str:
    text = found[0]
    if found["kept"] is not None:
        return text
    if text == "\r\n":
        return "\n"
    names = "".join(f"⟨U+{ord(char):04X}⟩" for char in text[:NAMED])
    return names if len(text) <= NAMED else f"{names}⟨{len(text) - NAMED} more hidden⟩"


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _fewer_marks(found: re.Match[str]) -> str:
    shown: list[str] = []
    run = 0
    for char in found[0]:
        if unicodedata.category(char) in ("Mn", "Me"):
            run += 1
            if run <= MARKS:
                shown.append(char)
            continue
        shown += _more_marks(run)
        run = 0
        shown.append(char)
    return "".join((*shown, *_more_marks(run)))


def _more_marks(run: int) -> list[str]:
    return [f"⟨{run - MARKS} more marks⟩"] if run > MARKS else []
