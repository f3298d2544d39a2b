"""QR codes (ISO/IEC 18004): text in byte mode at error correction level L, versions 1 to 20.

`encode` returns the modules; `render` draws them with half blocks, two rows to a line, with the quiet zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

QUIET = 4
"""Light modules around a code (the standard asks for four)."""

_BLOCKS = (
    (7, 1, 19, 0), (10, 1, 34, 0), (15, 1, 55, 0), (20, 1, 80, 0), (26, 1, 108, 0),
    (18, 2, 68, 0), (20, 2, 78, 0), (24, 2, 97, 0), (30, 2, 116, 0), (18, 2, 68, 2),
    (20, 4, 81, 0), (24, 2, 92, 2), (26, 4, 107, 0), (30, 3, 115, 1), (22, 5, 87, 1),
    (24, 5, 98, 1), (28, 1, 107, 5), (30, 5, 120, 1), (28, 3, 113, 4), (28, 3, 107, 5),
)  # fmt: skip
"""By version, at level L: error correction bytes per block, blocks, data bytes of each, and how many more
blocks have one byte more."""
_ALIGNMENT = (
    (), (6, 18), (6, 22), (6, 26), (6, 30), (6, 34), (6, 22, 38), (6, 24, 42), (6, 26, 46), (6, 28, 50),
    (6, 30, 54), (6, 32, 58), (6, 34, 62), (6, 26, 46, 66), (6, 26, 48, 70), (6, 26, 50, 74),
    (6, 30, 54, 78), (6, 30, 56, 82), (6, 30, 58, 86), (6, 34, 62, 90),
)  # fmt: skip
"""By version: the rows and columns of the centres of the alignment patterns."""
_MASKS: tuple[Callable[[int, int], bool], ...] = (
    lambda row, column: (row + column) % 2 == 0,
    lambda row, column: row % 2 == 0,
    lambda row, column: column % 3 == 0,
    lambda row, column: (row + column) % 3 == 0,
    lambda row, column: (row // 2 + column // 3) % 2 == 0,
    lambda row, column: row * column % 2 + row * column % 3 == 0,
    lambda row, column: (row * column % 2 + row * column % 3) % 2 == 0,
    lambda row, column: ((row + column) % 2 + row * column % 3) % 2 == 0,
)
_LEVEL_L = 1

Modules = list[list[bool]]
"""The rows of a code; True is dark."""


def encode(text: str) -> Modules:
    """Return the smallest QR code for a text. Raises `ValueError` for one that is too long."""
    data = text.encode()
    for version, blocks in enumerate(_BLOCKS, 1):
        capacity = _capacity(blocks)
        if (4 + _count_bits(version) + 8 * len(data) + 7) // 8 <= capacity:
            code = _with_check_bytes(_data_bytes(data, version, capacity), blocks)
            grid = _Grid(version)
            grid.place(code)
            return min((grid.masked(number) for number in range(8)), key=_penalty)
    raise ValueError(f"a text of {len(data)} bytes does not fit into a QR code")


def render(modules: Modules) -> str:
    """Draw a code for a terminal. Colours are set for both kinds of modules, so that it can be read on a dark
    and on a light terminal."""
    width = len(modules) + 2 * QUIET
    rows = [[False] * width for _ in range(QUIET)]
    rows += [[*[False] * QUIET, *row, *[False] * QUIET] for row in modules]
    rows += [[False] * width for _ in range(QUIET + len(rows) % 2)]
    lines = []
    for upper, lower in zip(rows[::2], rows[1::2], strict=False):
        blocks = "".join(_HALVES[above, below] for above, below in zip(upper, lower, strict=True))
        lines.append(f"\x1b[38;5;16;48;5;231m{blocks}\x1b[0m")
    return "\n".join(lines) + "\n"


_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


# --- data ----------------------------------------------------------------------------------------


def _capacity(blocks: tuple[int, int, int, int]) -> int:
    _, count, size, longer = blocks
    return count * size + longer * (size + 1)


def _count_bits(version: int) -> int:
    """Return how many bits the length of the text takes."""
    return 8 if version < 10 else 16


def _data_bytes(data: bytes, version: int, capacity: int) -> bytes:
    """Return mode, length, text and padding."""
    bits = f"0100{len(data):0{_count_bits(version)}b}" + "".join(f"{byte:08b}" for byte in data)
    bits += "0" * min(4, 8 * capacity - len(bits))
    bits += "0" * (-len(bits) % 8)
    whole = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))
    padding = (0xEC, 0x11)
    return whole + bytes(padding[at % 2] for at in range(capacity - len(whole)))


def _with_check_bytes(data: bytes, blocks: tuple[int, int, int, int]) -> bytes:
    """Divide the data into blocks, append the check bytes of each, and interleave them."""
    checks, count, size, longer = blocks
    sizes = [size] * count + [size + 1] * longer
    parts, at = [], 0
    for each in sizes:
        parts.append(data[at : at + each])
        at += each
    divisor = _generator(checks)
    remainders = [_remainder(part, divisor) for part in parts]
    return bytes([*_interleaved(parts), *_interleaved(remainders)])


def _interleaved(parts: Sequence[bytes]) -> Iterator[int]:
    for at in range(max(map(len, parts))):
        yield from (part[at] for part in parts if at < len(part))


def _times(left: int, right: int) -> int:
    """Multiply in the field of 256 elements that QR codes use."""
    product = 0
    for bit in range(7, -1, -1):
        product = (product << 1) ^ (0x11D if product & 0x80 else 0)
        if right >> bit & 1:
            product ^= left
    return product


def _generator(degree: int) -> list[int]:
    """Return the coefficients of the Reed-Solomon polynomial, without the leading one."""
    found, root = [0] * (degree - 1) + [1], 1
    for _ in range(degree):
        for at in range(degree):
            found[at] = _times(found[at], root) ^ (found[at + 1] if at + 1 < degree else 0)
        root = _times(root, 2)
    return found


def _remainder(data: bytes, divisor: Sequence[int]) -> bytes:
    rest = [0] * len(divisor)
    for byte in data:
        factor = byte ^ rest.pop(0)
        rest.append(0)
        rest = [each ^ _times(coefficient, factor) for each, coefficient in zip(rest, divisor, strict=True)]
    return bytes(rest)


# --- modules -------------------------------------------------------------------------------------


class _Grid:
    """The modules of one code, and which of them are patterns."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._size = size = 17 + 4 * version
        self._modules: Modules = [[False] * size for _ in range(size)]
        self._fixed: Modules = [[False] * size for _ in range(size)]
        for at in range(size):
            self._set(6, at, dark=at % 2 == 0)
            self._set(at, 6, dark=at % 2 == 0)
        for row, column in ((3, 3), (3, size - 4), (size - 4, 3)):
            self._finder(row, column)
        self._alignments()
        self._version_bits()
        self._format_bits(0)  # reserves the modules

    def place(self, code: bytes) -> None:
        """Place the bits in pairs of columns, upwards and downwards in turn, from the right."""
        bits = iter("".join(f"{byte:08b}" for byte in code))
        upwards = True
        for right in (*range(self._size - 1, 7, -2), 5, 3, 1):
            rows = range(self._size - 1, -1, -1) if upwards else range(self._size)
            for row in rows:
                for column in (right, right - 1):
                    if not self._fixed[row][column]:
                        self._modules[row][column] = next(bits, "0") == "1"
            upwards = not upwards

    def masked(self, number: int) -> Modules:
        """Return the code with one of the eight masks."""
        mask = _MASKS[number]
        self._format_bits(number)
        return [
            [
                dark if self._fixed[row][column] else dark is not mask(row, column)
                for column, dark in enumerate(modules)
            ]
            for row, modules in enumerate(self._modules)
        ]

    def _set(self, row: int, column: int, *, dark: bool) -> None:
        self._modules[row][column] = dark
        self._fixed[row][column] = True

    def _finder(self, row: int, column: int) -> None:
        """Set a finder pattern and the light modules around it."""
        for down in range(-4, 5):
            for across in range(-4, 5):
                if 0 <= row + down < self._size and 0 <= column + across < self._size:
                    ring = max(abs(down), abs(across))
                    self._set(row + down, column + across, dark=ring not in (2, 4))

    def _alignments(self) -> None:
        centres = _ALIGNMENT[self._version - 1]
        last = self._size - 7
        for row in centres:
            for column in centres:
                if (row, column) in ((6, 6), (6, last), (last, 6)):
                    continue  # a finder is there
                for down in range(-2, 3):
                    for across in range(-2, 3):
                        self._set(row + down, column + across, dark=max(abs(down), abs(across)) != 1)

    def _version_bits(self) -> None:
        if self._version < 7:
            return
        bits = self._version << 12 | _checksum(self._version, 12, 0x1F25)
        for at in range(18):
            dark = bits >> at & 1 == 1
            far, near = self._size - 11 + at % 3, at // 3
            self._set(far, near, dark=dark)
            self._set(near, far, dark=dark)

    def _format_bits(self, mask: int) -> None:
        given = _LEVEL_L << 3 | mask
        bits = (given << 10 | _checksum(given, 10, 0x537)) ^ 0x5412
        size = self._size
        around = [(8, at) for at in (0, 1, 2, 3, 4, 5, 7, 8)] + [(at, 8) for at in (7, 5, 4, 3, 2, 1, 0)]
        apart = [(at, 8) for at in range(size - 1, size - 8, -1)] + [(8, at) for at in range(size - 8, size)]
        for at in range(15):
            dark = bits >> (14 - at) & 1 == 1
            self._set(*around[at], dark=dark)
            self._set(*apart[at], dark=dark)
        self._set(size - 8, 8, dark=True)


def _checksum(value: int, bits: int, polynomial: int) -> int:
    rest = value
    for _ in range(bits):
        rest = (rest << 1) ^ (polynomial if rest >> (bits - 1) & 1 else 0)
    return rest


# --- masks ---------------------------------------------------------------------------------------


def _penalty(modules: Modules) -> int:
    """Rate a masked code as the standard does: the lower, the easier it is to read."""
    columns = [list(column) for column in zip(*modules, strict=True)]
    lines = ["".join("1" if dark else "0" for dark in line) for line in (*modules, *columns)]
    points = sum(map(_runs, lines))
    points += 40 * sum(_count(line, "10111010000") + _count(line, "00001011101") for line in lines)
    for upper, lower in pairwise(modules):
        for at in range(len(upper) - 1):
            if upper[at] == upper[at + 1] == lower[at] == lower[at + 1]:
                points += 3
    dark = sum(map(sum, modules)) * 100 / len(modules) ** 2
    return points + 10 * int(abs(dark - 50) / 5)


def _runs(line: str) -> int:
    points, run = 0, 1
    for before, module in zip(line, f"{line[1:]}.", strict=True):
        if before == module:
            run += 1
            continue
        points += run - 2 if run >= 5 else 0
        run = 1
    return points


def _count(line: str, pattern: str) -> int:
    return sum(line.startswith(pattern, at) for at in range(len(line) - len(pattern) + 1))
