"""Inputs for fuzzing: seeds that are changed by a few edits, drawn by Hypothesis so that a crash shrinks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

CORPUS = Path(__file__).parent / "corpus"
LARGEST = 64 * 1024
"""Bytes of an input."""

Edit = tuple[int, int, int, bytes]
"""What is done, where, how much, and with which bytes."""
EDITS = st.lists(
    st.tuples(
        st.integers(0, 14), st.integers(0, 1 << 16), st.integers(0, 255), st.binary(min_size=1, max_size=6)
    ),
    max_size=6,
)

NASTY: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**31,
    2**53,
    2**63,
    2**64,
    -(2**63) - 1,
    1e308,
    10**400,
    "",
    " ",
    "\0",
    "\n",
    "\r",
    "\x1b[2J",
    "\u202e",
    "\ud800",
    "\ufffd",
    "é" * 40,
    "x" * 5000,
    "_",
    "__proto__",
    [],
    [[]],
    [None],
    {},
    {"": None},
    {"_meta": {"antiphon": {}}},
    {"type": "text", "text": ""},
    [{"type": "_x"}],
)


def seeds(name: str) -> list[bytes]:
    """The kept inputs of a target."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def inputs(given: Sequence[bytes], words: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """A seed with some edits, or bytes by chance."""
    edited = st.builds(partial(mutated, given, words), st.integers(0, len(given) - 1), EDITS)
    return edited | st.binary(max_size=64)


def mutated(given: Sequence[bytes], words: Sequence[bytes], seed: int, edits: Sequence[Edit]) -> bytes:
    data = given[seed]
    for what, where, size, more in edits:
        at = where % (len(data) + 1)
        match what:
            case 0 if data:
                at = where % len(data)
                data = data[:at] + bytes([data[at] ^ (1 << size % 8)]) + data[at + 1 :]
            case 1:
                data = data[:at] + more + data[at + len(more) :]
            case 2:
                data = data[:at] + more + data[at:]
            case 3:
                data = data[:at] + data[at + size :]
            case 4:
                data = data[:at] + data[at : at + size] * 2 + data[at + size :]
            case 5:
                data = data[:at]
            case 6 if words:
                data = data[:at] + words[size % len(words)] + data[at:]
            case 7:
                data = data[:at] + data[at : at + 1 + size % 16] * (1 + len(more) * size) + data[at:]
            case 8:
                data = data[:at] + given[size % len(given)][at:]
            case _:
                data = _json_edited(data, where, size, more)
        data = data[:LARGEST]
    return data


def _json_edited(data: bytes, where: int, size: int, more: bytes) -> bytes:
    """Change one value within one line that is JSON."""
    lines = data.split(b"\n")
    found = [at for at, line in enumerate(lines) if line.lstrip()[:1] in (b"{", b"[")]
    if not found:
        return data
    at = found[where % len(found)]
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return data
    places = list(_places(value))
    if not places:
        return data
    holder, key = places[where % len(places)]
    manner = more[0] % 8
    if manner == 0:
        del holder[key]
    elif manner == 1:
        donor, other = places[size % len(places)]
        holder[key] = _copied(donor[other])
    elif manner == 2:
        for _ in range(1 + size * 8):
            holder[key] = [holder[key]] if more[-1] % 2 else {"a": holder[key]}
    elif manner == 3 and isinstance(holder, dict):
        holder[f"_{size}"] = holder.pop(key)
    elif manner == 4 and isinstance(holder[key], str):
        holder[key] += str(NASTY[13 + size % 13])
    else:
        holder[key] = NASTY[size % len(NASTY)]
    try:
        lines[at] = json.dumps(value, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return data
    return b"\n".join(lines)


def _copied(value: Any) -> Any:
    """A copy: a value must not hold itself."""
    try:
        return json.loads(json.dumps(value))
    except RecursionError:
        return None


def _places(value: Any) -> Any:
    """Every value inside, by the dict or list that holds it and its key there."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        pairs = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, inner in list(pairs) if isinstance(holder, dict | list) else ():
            yield holder, key
            if isinstance(inner, dict | list):
                waiting.append(inner)
