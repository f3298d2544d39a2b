"""The limit: the same lines through a pipe with `os.write` and `os.read`, and nothing done with them.

python bench/raw_stream.py N LINE_FILE
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

if sys.argv[1] == "--write":
    line = sys.stdin.buffer.readline()
    for _ in range(int(sys.argv[2])):
        os.write(1, line)
    sys.exit()

count, path = int(sys.argv[1]), sys.argv[2]
with open(path, "rb") as source:
    writer = subprocess.Popen(
        [sys.executable, __file__, "--write", str(count)], stdin=source, stdout=subprocess.PIPE
    )
assert writer.stdout is not None
seen = 0
began = 0.0
while data := os.read(writer.stdout.fileno(), 256 * 1024):
    began = began or time.perf_counter()
    seen += data.count(b"\n")
seconds = time.perf_counter() - began
writer.wait()
assert seen == count
print(json.dumps({"seconds": seconds}))
