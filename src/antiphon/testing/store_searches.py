"""The checks of a store that searches: `check_search(make)`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from antiphon.errors import CursorInvalid
from antiphon.stores.base import Batch, RecordPatch, Store
from antiphon.stores.search.base import MOST_SNIPPET, Match, MatchKind, Searches, searches
from antiphon.testing.store_samples import refused, session

Make = Callable[[], AbstractAsyncContextManager[Store]]
DEADLINE = 20.0
AT = 1_700_000_000_000


async def check_search(make: Make, *, deadline: float = DEADLINE) -> None:
    """Run every check of a search against stores opened by `make`."""
    for check in CHECKS:
        async with make() as store:
            assert searches(store) is not None, "the store does not search"
            try:
                async with asyncio.timeout(deadline):
                    await check(store)
            except TimeoutError as error:
                raise AssertionError(f"{check.__name__}: not done within {deadline:g} s") from error


def said(seq: int, text: str, *, id: str, who: str = "agent", chunk: bool = True, **meta: Any) -> bytes:
    """An event with a chunk of a message, or with the whole message."""
    tag = "agent_thought" if who == "thought" else f"{who}_message"
    block = {"type": "text", "text": text}
    update = {
        "sessionUpdate": f"{tag}_chunk" if chunk else tag,
        "messageId": id,
        "content": block if chunk else [block] if text else [],
        **meta,
    }
    return event(seq, update)


def event(seq: int, update: dict[str, Any]) -> bytes:
    body = {"type": "update", "update": update}
    return msgspec.json.encode({"seq": seq, "at": AT + 1000 * seq, "body": body})


async def told(store: Store, session_id: str, *lines: bytes) -> None:
    """Make a session with these events."""
    await store.create(session(session_id), batch=Batch(1, lines))


async def found(store: Store, query: str, **given: Any) -> list[Match]:
    searcher = searches(store)
    assert searcher is not None
    return list((await searcher.search(query, **given)).matches)


async def ids(store: Store, query: str, **given: Any) -> list[str]:
    return [match.id or match.kind for match in await found(store, query, **given)]


async def a_message_is_found_by_its_words_whole(store: Store) -> None:
    lines = said(1, "The build ", id="m1"), said(2, "is re", id="m1"), said(3, "d again", id="m1")
    await told(store, "a", *lines)
    await told(store, "b", said(1, "Nothing here", id="m1"))
    assert await found(store, "red") == [
        Match(
            session_id="a",
            title=None,
            kind=MatchKind.AGENT,
            id="m1",
            seq=1,
            at=AT + 1000,
            snippet="The build is red again",
            ranges=((13, 16),),
        )
    ], "a message is found as it is when its chunks are joined"
    assert await ids(store, "again BUILD") == ["m1"], "words match in any order and case"
    assert await ids(store, "build green") == [], "all words are wanted"
    assert await ids(store, "buil x") == []
    assert await ids(store, "aga") == ["m1"], "the last word may be the beginning of one"
    assert await ids(store, "aga build") == [], "only the last word may"
    assert await ids(store, '"is red"') == ["m1"]
    assert await ids(store, '"red is"') == [], "the words of a phrase follow each other"
    assert await ids(store, '"aga"') == [], "a phrase that is closed ends with a whole word"


async def a_search_sees_what_was_appended_before_it(store: Store) -> None:
    await told(store, "a", said(1, "one", id="m1"))
    assert await ids(store, "one") == ["m1"]
    await store.append("a", Batch(2, (said(2, " two", id="m1"), said(3, "three", id="m2"))))
    assert await ids(store, "two") == ["m1"]
    assert await ids(store, "one") == ["m1"], "what was indexed before is still found"
    assert await ids(store, "three") == ["m2"]


async def edited_and_deleted_texts_are_not_found(store: Store) -> None:
    await told(store, "a", said(1, "teh typo", id="m1", who="user"), said(2, "an oath", id="m2"))
    assert await ids(store, "typo") == ["m1"]
    edited = said(3, "the word", id="m1", who="user", chunk=False)
    deleted = said(4, "", id="m2", chunk=False, _meta={"antiphon": {"deleted": True}})
    await store.append("a", Batch(3, (edited, deleted)))
    assert await ids(store, "typo") == [], "an edited message is found by its old words"
    assert await ids(store, "oath") == [], "a deleted message is found"
    assert await ids(store, "word") == ["m1"]


async def titles_thoughts_and_tool_calls_are_found_as_such(store: Store) -> None:
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "Run needle tests"}
    await told(
        store,
        "a",
        said(1, "needle", id="m1", who="user"),
        said(2, "needle", id="m2", who="thought"),
        event(3, call),
        event(4, {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}),
    )
    await store.update("a", RecordPatch(title="A needle", updated_at=AT + 9000))
    kinds = [(match.kind, match.id, match.title) for match in await found(store, "needle")]
    assert kinds == [
        (MatchKind.TITLE, "", "A needle"),
        (MatchKind.TOOL, "t1", "A needle"),
        (MatchKind.THOUGHT, "m2", "A needle"),
        (MatchKind.USER, "m1", "A needle"),
    ]
    await store.update("a", RecordPatch(title="A haystack"))
    assert await ids(store, "title OR needle") == [], "words are never operators"
    assert MatchKind.TITLE not in await ids(store, "needle"), "a session is found by an old title"


async def pages_have_every_match_once(store: Store) -> None:
    for n in range(5):
        await told(store, f"s{n}", *(said(seq, f"needle {n} {seq}", id=f"m{seq}") for seq in range(1, 6)))
    searcher = searches(store)
    assert searcher is not None
    seen: list[tuple[str, str]] = []
    times: list[int] = []
    after: str | None = None
    while True:
        page = await searcher.search("needle", limit=4, after=after)
        seen += [(match.session_id, match.id) for match in page.matches]
        times += [match.at for match in page.matches]
        after = page.next
        if after is None:
            break
        assert len(page.matches) == 4, "only the last page is short"
    assert sorted(seen) == [(f"s{n}", f"m{seq}") for n in range(5) for seq in range(1, 6)]
    assert times == sorted(times, reverse=True), "the newest come first"
    for cursor in ("", "nonsense", "é", "e30="):
        await refused(CursorInvalid, found(store, "needle", after=cursor), f"the cursor {cursor!r} was taken")


async def only_the_given_sessions_are_searched(store: Store) -> None:
    await told(store, "a", said(1, "needle one", id="m1"))
    await told(store, "b", said(1, "needle two", id="m2"))
    searcher: Searches | None = searches(store)
    assert searcher is not None
    assert await ids(store, "needle", sessions=["a"]) == ["m1"]
    page = await searcher.search("needle", sessions=["a"], limit=1)
    assert page.next is None, "a cursor tells of matches in other sessions"
    assert await searcher.search("two", sessions=["a"]) == ((), None, True)
    assert await searcher.search("needle", sessions=[]) == ((), None, True)


async def a_deleted_session_is_not_found(store: Store) -> None:
    await told(store, "a", *(said(seq, f"needle {seq}", id=f"m{seq}") for seq in range(1, 200)))
    assert len(await ids(store, "needle", limit=100)) == 100
    await store.delete("a")
    assert await ids(store, "needle") == []
    await told(store, "a", said(1, "another", id="m1"))
    assert await ids(store, "needle") == [], "a new session has the texts of a deleted one"
    assert await ids(store, "another") == ["m1"]


async def an_imported_session_is_found(store: Store) -> None:
    async with store.arrival(session("a")) as arriving:
        await arriving.append(Batch(1, (said(1, "needle", id="m1"),)))
        assert await ids(store, "needle") == [], "a session is found before it has arrived"
        await arriving.finish()
    assert await ids(store, "needle") == ["m1"]


async def accents_and_scripts_are_found(store: Store) -> None:
    await told(
        store, "a", said(1, "Crème brûlée über alles", id="m1"), said(2, "東京で会議があります", id="m2")
    )
    assert await ids(store, "creme brulee") == ["m1"]
    assert await ids(store, "ÜBER") == ["m1"]
    assert await ids(store, "会議") == ["m2"], "a text without spaces is found by its parts"
    assert await ids(store, "議会") == []
    (match,) = await found(store, "会議")
    assert [match.snippet[start:end] for start, end in match.ranges] == ["会議"]


async def no_query_is_an_error(store: Store) -> None:
    await told(store, "a", said(1, 'a "quoted" text AND more', id="m1"))
    nothing = ("", " ", '"', '""', "*", "-", "()", "\x00", "🙂", "'; DROP TABLE sessions; --")
    for query in nothing:
        assert await ids(store, query) == [], f"{query!r} found something"
    for query in (
        '"quoted',
        "text AND more",
        "text*",
        "(text)",
        "^text",
        "text:",
        '"quoted" "text"',
        "+text",
    ):
        assert await ids(store, query) == ["m1"], f"{query!r} is text like any other"
    for query in ("NEAR(a text)", "text NOT more", "more OR nothing", "a text:quoted nothing", "{text} : x"):
        assert await ids(store, query) == [], f"{query!r} was read as an operator"
    assert await ids(store, "text " * 190) == ["m1"]
    for wrong in (found(store, "x" * 1001), found(store, "x", limit=0), found(store, "x", limit=101)):
        try:
            await wrong
        except ValueError:
            continue
        raise AssertionError("a query of 1001 characters, or a page of 0 or 101 matches, was taken")


async def a_snippet_is_one_short_line(store: Store) -> None:
    await told(
        store,
        "a",
        said(1, "x" * 5000 + " needle " + "y" * 5000, id="m1"),
        said(2, "before\n\n\tit  \x00\x1d\x1e\x1f the needle\r\nand after", id="m2"),
        said(3, "word " * 5000 + "needle", id="m3"),
        said(4, "word " * 18 + "needle " + "word " * 50, id="m4"),
    )
    matches = await found(store, "needle")
    assert [match.id for match in matches] == ["m4", "m3", "m2", "m1"]
    for match in matches:
        assert len(match.snippet) <= MOST_SNIPPET
        assert not any(ord(char) < 32 for char in match.snippet), match.snippet
        assert [match.snippet[start:end] for start, end in match.ranges] == ["needle"], match


CHECKS: tuple[Callable[[Store], Coroutine[Any, Any, None]], ...] = (
    a_message_is_found_by_its_words_whole,
    a_search_sees_what_was_appended_before_it,
    edited_and_deleted_texts_are_not_found,
    titles_thoughts_and_tool_calls_are_found_as_such,
    pages_have_every_match_once,
    only_the_given_sessions_are_searched,
    a_deleted_session_is_not_found,
    an_imported_session_is_found,
    accents_and_scripts_are_found,
    no_query_is_an_error,
    a_snippet_is_one_short_line,
)
