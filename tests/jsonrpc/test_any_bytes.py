"""The promises of `tests.frame_checks`, on a few inputs each time. `make fuzz` tries many more."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.frame_checks import check_event, check_frame, check_update
from tests.hub.test_hostile_frames import ANY_FRAME, EVERY

SETTINGS = settings(deadline=None)


@SETTINGS
@given(ANY_FRAME | st.binary(max_size=80))
@example(b'{"jsonrpc":"2.0","id":0,"result":1e999}')
@example(b"[" + b'{"jsonrpc":"2.0","method":"m","params":[\n]},' * 3 + b"1]")
def test_any_frame_is_read(data: bytes) -> None:
    check_frame(data)


def test_every_odd_update_can_be_journalled() -> None:
    for frame in EVERY:
        for version in (1, 2):
            check_update(version, frame)


@SETTINGS
@given(
    st.sampled_from(
        ["update", "translated", "prompt_queued", "question_opened", "question_closed", "unheard"]
    ),
    ANY_FRAME | st.binary(max_size=40),
)
def test_any_line_of_a_journal_is_an_event_or_unreadable(tag: str, value: bytes) -> None:
    line = b'{"seq":1,"at":1,"body":{"type":%b,"update":%b,"origin":%b,"content":%b}}'
    check_event(line % (json.dumps(tag).encode(), value, value, value))
