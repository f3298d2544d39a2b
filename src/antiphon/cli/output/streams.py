"""The output streams of the command, which make all text safe to show.

`install` replaces `sys.stdout` and `sys.stderr` by a `SafeStream`. All prints pass it: messages, logs,
tracebacks, and what libraries print. There are three exceptions: JSON is written to `sys.stdout.buffer` and
escapes hidden characters itself; `write_styled` adds the command's own colours to safe text; `console`
makes a rich console safe segment by segment, because rich itself writes escape sequences.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import Any, TextIO, cast

from antiphon.text_safety import SafeWriter, safe_line, safe_text

_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")


class SafeStream:
    """A text stream that writes safe text to another stream."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._writer = SafeWriter()

    def write(self, text: str) -> int:
        self.stream.write(self._writer.write(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def write_styled(self, text: str) -> None:
        """Write text with the command's own colours. The caller has made foreign parts safe before."""
        self.stream.write(self._writer.finish())
        parts = (part if _STYLE.fullmatch(part) else safe_text(part) for part in _STYLE.split(text))
        self.stream.write("".join(parts))

    def flush(self) -> None:
        if held := self._writer.finish():
            self.stream.write(held)
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def install() -> None:
    """Make everything that this process prints safe to show."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or isinstance(stream, SafeStream):
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names of hidden characters are not ASCII
        setattr(sys, name, safe_stream(stream))


def safe_stream(stream: TextIO) -> TextIO:
    return stream if isinstance(stream, SafeStream) else cast(TextIO, SafeStream(stream))


def write_styled(stream: TextIO, text: str) -> None:
    """Write text with the command's own colours; without them if the stream is not a terminal."""
    if not stream.isatty():
        text = _STYLE.sub("", text)
    safe = cast(Any, safe_stream(stream))
    safe.write_styled(text)
    safe.flush()


def plain_without_colours(text: str) -> str:
    """Return styled text, without its styles where the user wants no colours (NO_COLOR)."""
    return _STYLE.sub("", text) if os.environ.get("NO_COLOR") else text


def set_up_logging(level: int) -> None:
    logging.basicConfig(level=level, handlers=[log_handler("%(name)s: %(message)s")])


def log_handler(format: str = "%(message)s") -> logging.Handler:
    """Return a handler that logs to stderr, one line per record, so that text cannot forge a record."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter(format))
    return handler


class LogFormatter(logging.Formatter):
    """Formats a message on one line. A traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name that logging calls
        record.message = safe_line(record.message, limit=2_000)
        return super().formatMessage(record)
