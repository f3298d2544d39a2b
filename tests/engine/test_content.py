"""Content that grows is the same however it grew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.content import _RUN, Content
from antiphon.schema.v2.content import ContentBlock, ImageContent, TextContent
from antiphon.schema.v2.identifiers import MediaType

IMAGE = ImageContent(data="", mime_type=MediaType("image/png"))
BLOCKS = st.lists(st.sampled_from([TextContent(text="a"), TextContent(text=""), IMAGE]), max_size=8)


def grown(*blocks: ContentBlock) -> Content:
    content = Content()
    for block in blocks:
        content.append(block)
    return content


@given(BLOCKS, BLOCKS)
def test_it_may_be_read_or_replayed_at_any_time(first: list[ContentBlock], rest: list[ContentBlock]) -> None:
    replayed = Content()
    replayed.replace(grown(*first).blocks)
    for block in rest:
        replayed.append(block)
    assert replayed.blocks == grown(*first, *rest).blocks


def test_pieces_are_joined_now_and_then_and_nothing_is_lost() -> None:
    for count in (_RUN - 1, _RUN, _RUN + 1, 2 * _RUN):
        content = grown(*(TextContent(text=str(n % 10)) for n in range(count)))
        assert content.text == "".join(str(n % 10) for n in range(count))
        assert len(content.blocks) == 1
