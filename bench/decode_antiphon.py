"""Decode and validate one line, as a connection does it: `python bench/decode_antiphon.py SMALL BIG`."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from antiphon.schema.codec import codec


def best_of(line: bytes, loops: int, repeats: int = 9) -> float:
    read = codec(1).updates.read
    assert read(line) is not None
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(loops):
            read(line)
        times.append((time.perf_counter() - began) / loops)
    return statistics.median(times)


small, big = (Path(name).read_bytes().rstrip(b"\n") for name in sys.argv[1:3])
print(json.dumps({"small_us": best_of(small, 20_000) * 1e6, "big_ms": best_of(big, 20) * 1e3}))
