"""Which characters of a shown text are forbidden: written for the tests, apart from the code they judge."""

from __future__ import annotations

import re
import unicodedata

_ZWJ = "\u200d"
_EMOJI = re.compile(
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_ALWAYS = {0x00AD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2028, 0x2029, 0x3164, 0xFFA0}
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]{5}\U000e007f")
_VISIBLE_FORMAT = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f]"
)
"""Format characters that have a shape of their own."""


def forbidden(shown: str, *, also: str = "\n\t") -> list[str]:
    """Name each one; `also` are controls that may stand there."""
    text = _FLAG.sub("", shown)
    found = []
    for at, char in enumerate(text):
        if char.isascii() and (char.isprintable() or char in also):
            continue
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        if not _may_stand(char, before, after):
            found.append(f"U+{ord(char):04X} in {text[max(0, at - 20) : at + 20]!a}")
    return found


def _may_stand(char: str, before: str, after: str) -> bool:
    code = ord(char)
    if char in ("\u200c", _ZWJ):  # inside an emoji, or behind a letter or mark of another script
        if before and (_EMOJI.match(before) or before in "\ufe0e\ufe0f"):
            return char == _ZWJ and bool(_EMOJI.match(after))
        return bool(before) and ord(before) >= 0x590 and not (after.isascii() and after.isalnum())
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F:
        return bool(before) and unicodedata.category(before)[0] in "LSPN" and before != "⟩"
    if code in _ALWAYS or code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
        return False
    if _VISIBLE_FORMAT.match(char):
        return True
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
