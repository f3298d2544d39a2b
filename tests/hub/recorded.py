"""A command with its stdin and stdout passed through and written down: `python recorded.py FILE -- COMMAND…`.

Each line of FILE is one frame: `>` and what went to the command, `<` and what came from it. The standard
library only: any client can start it in front of any agent.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import BinaryIO


def main(path: str, command: list[str]) -> int:
    with (
        open(path, "ab", buffering=0) as record,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None

        def passed(mark: bytes, source: BinaryIO, to: BinaryIO) -> None:
            for line in source:
                record.write(mark + line)
                try:
                    to.write(line)
                    to.flush()
                except OSError:
                    break
            if to is process.stdin:
                to.close()

        typing = threading.Thread(target=passed, args=(b">", sys.stdin.buffer, process.stdin), daemon=True)
        typing.start()
        passed(b"<", process.stdout, sys.stdout.buffer)
        return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3:]))
