"""Messages towards v1 clients: chunks, whole messages, ids, and the client's own prompt."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.schema.version import OptIns
from tests.bridge.wire import Down, text, update
from tests.requirements.marks import requirement

LIFECYCLE = OptIns(prompt_lifecycle=True)
REPLACES = OptIns(message_update=True)
PAIRS = [
    ("user_message", "user_message_chunk"),
    ("agent_message", "agent_message_chunk"),
    ("agent_thought", "agent_thought_chunk"),
]


def chunk(tag: str, id: str | None, words: str, **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": tag, "messageId": id, "content": text(words), **fields}


@pytest.mark.parametrize(("whole", "piece"), PAIRS)
def test_24_4_a_chunk_stays_a_chunk_and_keeps_its_id(whole: str, piece: str) -> None:
    down = Down()
    sent = down.feed(update(piece, messageId="m", content=text("Hi"), meta={"k": 1}))
    assert sent == [chunk(piece, "m", "Hi", _meta={"k": 1})]
    assert down.lost == []


@pytest.mark.parametrize(("whole", "piece"), PAIRS)
def test_24_4_a_whole_message_fans_out_in_one_chunk_per_block(whole: str, piece: str) -> None:
    down = Down()
    sent = down.feed(update(whole, messageId="m", content=[text("One"), text("Two")]))
    assert sent == [chunk(piece, "m", "One"), chunk(piece, "m", "Two")]
    assert down.lost == []


@pytest.mark.parametrize(
    ("before", "content", "suffix"),
    [
        (["Hel", "lo"], ["Hello"], []),
        (["Hel", "lo"], ["Hello world"], [" world"]),
        (["Hel", "lo"], ["He", "llo", "!"], ["!"]),
        (["Grü", "ße"], ["Grüße, Jürgen"], [", Jürgen"]),
        (["a\0b"], ["a\0b\0c"], ["\0c"]),
        ([], ["Hello"], ["Hello"]),
    ],
)
def test_24_4_a_whole_message_that_extends_what_was_sent_goes_out_as_its_suffix(
    before: list[str], content: list[str], suffix: list[str]
) -> None:
    down = Down()
    down.feed(*(update("agent_message_chunk", messageId="m", content=text(words)) for words in before))
    sent = down.feed(update("agent_message", messageId="m", content=[text(words) for words in content]))
    assert sent == [chunk("agent_message_chunk", "m", words) for words in suffix]
    assert down.lost == []


def test_24_4_a_suffix_after_a_block_that_is_no_text() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    down = Down()
    down.feed(update("agent_message", messageId="m", content=[text("a"), image]))
    sent = down.feed(update("agent_message", messageId="m", content=[text("a"), image, text("b")]))
    assert sent == [chunk("agent_message_chunk", "m", "b")]
    other = {**image, "data": "aG8="}
    assert (
        down.feed(update("agent_message", messageId="m", content=[text("a"), other]))[0]["messageId"] == "m~2"
    )
    assert down.lost == ["message_replaced"]


def test_24_4_other_content_for_a_message_is_a_new_message_that_names_the_old() -> None:
    down = Down()
    down.feed(update("agent_message_chunk", messageId="m", content=text("Wrong")))
    sent = down.feed(update("agent_message", messageId="m", content=[text("Right")]))
    original = {"acp.bridge/original": {"messageId": "m", "replaces": "m"}}
    assert sent == [chunk("agent_message_chunk", "m~2", "Right", _meta=original)]
    # MSG-15: a later chunk appends to the corrected message
    later = down.feed(update("agent_message_chunk", messageId="m", content=text("!")))
    assert later == [chunk("agent_message_chunk", "m~2", "!")]
    assert down.lost == ["message_replaced"]


@pytest.mark.parametrize("content", [None, []])
def test_24_4_a_cleared_message_stays_and_what_follows_gets_a_new_id(content: Any) -> None:
    down = Down()
    down.feed(update("agent_message_chunk", messageId="m", content=text("Secret")))
    assert down.feed(update("agent_message", messageId="m", content=content)) == []
    assert down.lost == ["message_cleared"]
    later = down.feed(update("agent_message_chunk", messageId="m", content=text("Public")))
    assert [sent["messageId"] for sent in later] == ["m~2"]


@requirement("MSG-14")
@pytest.mark.parametrize("content", [None, []])
def test_an_empty_message_at_first_sight_is_no_loss(content: Any) -> None:
    down = Down()
    assert down.feed(update("agent_message", messageId="m", content=content)) == []
    assert down.feed(update("agent_message_chunk", messageId="m", content=text("a"))) == [
        chunk("agent_message_chunk", "m", "a")
    ]
    assert down.lost == []


@requirement("MSG-18")
def test_meta_of_a_message_goes_with_its_first_chunk() -> None:
    down = Down()
    down.feed(update("agent_message", messageId="m", meta={"a": 1, "b": 2}))
    down.feed(update("agent_message", messageId="m", meta={"b": None}))
    sent = down.feed(
        update("agent_message_chunk", messageId="m", content=text("x"), meta={"c": 3}),
        update("agent_message_chunk", messageId="m", content=text("y")),
    )
    assert [one.get("_meta") for one in sent] == [{"a": 1, "c": 3}, None]
    assert down.lost == []


def test_24_4_meta_alone_for_a_message_already_sent_is_a_loss() -> None:
    down = Down()
    down.feed(update("agent_message_chunk", messageId="m", content=text("x")))
    assert down.feed(update("agent_message", messageId="m", meta={"a": 1})) == []
    assert down.feed(update("agent_message", messageId="m", content=[text("x")], meta={"a": 2})) == []
    assert down.lost == ["message_meta", "message_meta"]


@requirement("MSG-07")
def test_an_id_used_by_two_types_is_prefixed_the_second_time() -> None:
    down = Down()
    sent = down.feed(
        update("agent_message_chunk", messageId="m", content=text("a")),
        update("agent_thought_chunk", messageId="m", content=text("b")),
        update("agent_thought_chunk", messageId="m", content=text("c")),
        update("agent_message_chunk", messageId="m", content=text("d")),
    )
    assert [one["messageId"] for one in sent] == ["m", "thought:m", "thought:m", "m"]
    assert [one.get("_meta") for one in sent] == [
        None,
        {"acp.bridge/original": {"messageId": "m"}},
        None,
        None,
    ]
    assert down.lost == ["message_id"]


@requirement("MSG-06")
def test_interleaved_messages_keep_their_ids() -> None:
    sent = Down().feed(
        *(update("agent_message_chunk", messageId=id, content=text(id)) for id in ("a", "b", "a", "b"))
    )
    assert [one["messageId"] for one in sent] == ["a", "b", "a", "b"]


class TestTheClientsOwnPrompt:
    @requirement("PROMPT-V1-22")
    def test_is_not_echoed_whole_or_in_chunks(self) -> None:
        for echo in (
            [update("user_message", messageId="u", content=[text("Hello")])],
            [update("user_message_chunk", messageId="u", content=text(part)) for part in ("Hel", "lo")],
        ):
            down = Down()
            assert down.machine.messages.note_prompted("u") == "u"
            assert down.feed(*echo) == []
            assert down.lost == []

    @requirement("PROMPT-V1-22")
    def test_other_clients_get_it_as_chunks(self) -> None:
        sent = Down().feed(update("user_message", messageId="u", content=[text("Hello")]))
        assert sent == [chunk("user_message_chunk", "u", "Hello")]

    def test_24_3_another_client_s_prompt_reaches_a_client_with_prompts_of_its_own(self) -> None:
        down = Down()
        down.machine.messages.note_prompted("u1")
        sent = down.feed(
            update("user_message", messageId="u1", content=[text("mine")]),
            update("user_message", messageId="u2", content=[text("theirs")]),
        )
        assert sent == [chunk("user_message_chunk", "u2", "theirs")]

    @requirement("PROMPT-V1-22")
    def test_on_replay_everybody_gets_it(self) -> None:
        # A load is a new attachment, hence a new machine: nobody's own.
        sent = Down().feed(update("user_message", messageId="u", content=[text("Hello")]))
        assert len(sent) == 1

    def test_changed_afterwards_is_shown_as_a_new_message(self) -> None:
        for opt_ins in (OptIns(), REPLACES):
            down = Down(None, opt_ins)
            down.machine.messages.note_prompted("u")
            down.feed(update("user_message", messageId="u", content=[text("Hello")]))
            sent = down.feed(update("user_message", messageId="u", content=[text("[redacted]")]))
            assert [(one["sessionUpdate"], one["messageId"]) for one in sent] == [
                ("user_message_chunk", "u~2")
            ]


class TestMessageUpdate:
    @requirement("SD-27")
    def test_a_replaced_message_keeps_its_id_for_a_client_that_opted_in(self) -> None:
        down = Down(None, REPLACES)
        down.feed(update("agent_message_chunk", messageId="m", content=text("Wrong")))
        sent = down.feed(update("agent_message", messageId="m", content=[text("Right")], meta={"k": 1}))
        assert sent == [
            {
                "sessionUpdate": "message_update",
                "messageId": "m",
                "updateType": "replace",
                "content": text("Right"),
                "_meta": {"k": 1},
            }
        ]
        later = down.feed(update("agent_message_chunk", messageId="m", content=text("!")))
        assert later == [chunk("agent_message_chunk", "m", "!")]
        assert down.feed(update("agent_message", messageId="m", content=[text("Right!")])) == []
        assert down.lost == []

    @requirement("SD-27")
    def test_so_can_a_message_be_cleared(self) -> None:
        down = Down(None, REPLACES)
        down.feed(update("agent_message_chunk", messageId="m", content=text("Secret")))
        sent = down.feed(update("agent_message", messageId="m", content=None))
        assert [one["content"] for one in sent] == [[]]
        assert down.lost == []

    @requirement("SD-27")
    def test_what_extends_is_still_a_suffix(self) -> None:
        down = Down(None, REPLACES)
        down.feed(update("agent_message_chunk", messageId="m", content=text("a")))
        sent = down.feed(update("agent_message", messageId="m", content=[text("ab")]))
        assert sent == [chunk("agent_message_chunk", "m", "b")]


class TestTheFutureFlag:
    @requirement("SD-19")
    def test_user_messages_are_patches_also_to_their_author(self) -> None:
        down = Down(None, LIFECYCLE)
        assert down.machine.messages.note_prompted("u") == "u"
        given: list[dict[str, Any]] = [
            {"sessionUpdate": "user_message", "messageId": "u", "content": [text("Hello")]},
            {"sessionUpdate": "user_message", "messageId": "u", "_meta": {"k": None}},
            {"sessionUpdate": "user_message", "messageId": "u", "content": None},
            {"sessionUpdate": "user_message_chunk", "messageId": "u", "content": text("Hi")},
        ]
        assert down.feed(*(update(one.pop("sessionUpdate"), **one) for one in map(dict, given))) == given
        assert down.lost == []

    def test_agent_messages_are_as_in_v1(self) -> None:
        down = Down(None, LIFECYCLE)
        sent = down.feed(update("agent_message", messageId="m", content=[text("a")]))
        assert sent == [chunk("agent_message_chunk", "m", "a")]

    @requirement("MSG-07")
    def test_the_answer_and_the_message_have_the_same_id(self) -> None:
        down = Down(None, LIFECYCLE)
        down.feed(update("agent_message_chunk", messageId="m", content=text("a")))
        assert down.machine.messages.note_prompted("m") == "user:m"
        sent = down.feed(update("user_message", messageId="m", content=[text("b")]))
        assert [one["messageId"] for one in sent] == ["user:m"]


def test_chunks_that_pass_count_as_sent() -> None:
    down = Down()
    machine = down.machine
    assert machine.passes(update("agent_message_chunk", messageId="m", content=text("Hel")))
    assert machine.passes(update("agent_message_chunk", messageId="m", content=text("lo")))
    assert down.feed(update("agent_message", messageId="m", content=[text("Hello!")])) == [
        chunk("agent_message_chunk", "m", "!")
    ]


def test_chunks_that_are_not_the_same_in_v1_do_not_pass() -> None:
    machine = Down().machine
    annotated = {"type": "text", "text": "a", "annotations": {"audience": ["_x"]}}
    assert not machine.passes(update("agent_message_chunk", messageId="m", content=annotated))
    assert not machine.passes(update("agent_message_chunk", messageId="m", content={"type": "_x"}))
    assert machine.passes(update("agent_message_chunk", messageId="m", content=text("a")))
    assert not machine.passes(update("agent_thought_chunk", messageId="m", content=text("a")))
    machine.messages.note_prompted("u")
    assert not machine.passes(update("user_message_chunk", messageId="u", content=text("a")))
    assert not machine.passes(update("notice", severity="info", title="t"))
