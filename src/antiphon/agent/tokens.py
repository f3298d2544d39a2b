"""The tokens of one turn, added up over the requests it makes."""

from __future__ import annotations

from antiphon.errors import LocalError
from antiphon.schema import v2


def add_tokens(
    before: v2.Usage | None,
    *,
    input: int,
    output: int,
    thought: int | None = None,
    cached_read: int | None = None,
    cached_write: int | None = None,
    total: int | None = None,
) -> v2.Usage:
    """What a turn has used once this came on top; `total` is the sum of all unless it is told."""
    given = (input, output, thought, cached_read, cached_write, total)
    if any(tokens is not None and tokens < 0 for tokens in given):
        raise LocalError("tokens are counted from 0")
    parts = input + output + (thought or 0) + (cached_read or 0) + (cached_write or 0)
    so_far = before or v2.Usage(total_tokens=0, input_tokens=0, output_tokens=0)
    return v2.Usage(
        total_tokens=so_far.total_tokens + (parts if total is None else total),
        input_tokens=so_far.input_tokens + input,
        output_tokens=so_far.output_tokens + output,
        thought_tokens=_sum(so_far.thought_tokens, thought),
        cached_read_tokens=_sum(so_far.cached_read_tokens, cached_read),
        cached_write_tokens=_sum(so_far.cached_write_tokens, cached_write),
    )


def _sum(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more
