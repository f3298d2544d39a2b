"""The page: it shows everything, and nothing in it can do anything."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.transcripts import account, to_html
from antiphon.transcripts.markdown import WRITERS as MARKDOWN_WRITERS
from antiphon.transcripts.page import WRITERS as HTML_WRITERS
from tests.cpu_growth import assert_grows_in_proportion
from tests.engine.journals import chunk, folded, text, update
from tests.transcripts.hostile import TEXTS, bodies
from tests.transcripts.sample import BODIES, told

TAGS = frozenset(
    """
    html head meta title style body header h1 h2 h3 h4 h5 h6 dl div dt dd main article section p span b bdi
    time details summary pre code ul ol li img a table thead tbody tr th td em strong s blockquote hr br
    footer
    """.split()  # noqa: SIM905
)
ATTRIBUTES = frozenset(
    """
    lang charset content name class dir datetime open title src alt href rel http-equiv start
    """.split()  # noqa: SIM905
)
VOID = frozenset({"meta", "img", "hr", "br"})


class Page(HTMLParser):
    """Reads a page as a browser would, and objects."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []
        self.policy = ""
        self.styles: list[str] = []
        self.links: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, (tag, name)
            if name == "href":
                assert re.match("(https?://|mailto:)", value or "", re.I), value
                self.links.append(value or "")
            if name == "src":
                assert (value or "").startswith("data:image/png;base64,"), value
            if name == "http-equiv":
                self.policy = dict(attrs)["content"] or ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, tag
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.styles if self.open[-1:] == ["style"] else self.text).append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def page(value: str) -> Page:
    return Page("".join(to_html(told(bodies(value)))))


@pytest.mark.parametrize("value", TEXTS, ids=range(len(TEXTS)))
def test_nothing_that_anybody_wrote_can_do_anything(value: str) -> None:
    page(value)


@given(
    st.text(
        st.sampled_from("<>&\"'`[]()!|*_~#-=:; \n\\/ajvscript\u202e\u200b\x1b") | st.characters(), max_size=60
    )
)
def test_nor_anything_else(value: str) -> None:
    page(value)


def test_the_policy_lets_in_its_own_style_and_nothing_else() -> None:
    found = page("x")
    digest = base64.b64encode(hashlib.sha256("".join(found.styles).encode()).digest()).decode()
    assert found.policy.split("; ") == [
        "default-src 'none'",
        "img-src data:",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "url(" not in "".join(found.styles)
    assert "@import" not in "".join(found.styles)


def test_what_would_hide_is_named() -> None:
    shown = "".join(page("user\u202egnp.exe pass\u200bword a\u200db \U000e0041 \x1b[31mred").text)
    assert "user⟨U+202E⟩gnp.exe pass⟨U+200B⟩word a⟨U+200D⟩b ⟨U+E0041⟩ red" in shown
    assert "\x1b" not in shown
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert family in "".join(page(family).text)


IN_ORDER = (
    "Why is the build red?", "claude", "/home/ada/site", "4,820 in, 492 out", "0.07 USD", "Ada 22:13",
    "Please mend it", "Thought", "Plan 3 of 4", "Rewrite it", "site/build.py:12", "modify site/build.py",
    "+ out = target", "Answer: allow_once, by Grace", "$ pytest -q", "UnicodeEncodeError: 'ascii'", "exit 1",
    "41 passed", "The build fails because", "the docs", "1 min 38 s", "could not bring this session back",
    "Grace 22:15", "Deploy it.", "deploy --production", "I will deploy it now.", "Cancelled",
)  # fmt: skip


def test_everything_is_told_in_its_order() -> None:
    found = Page("".join(to_html(told())))
    shown = " ".join("".join(found.text).split())
    places = [shown.index(words) for words in IN_ORDER]
    assert places == sorted(places)
    assert found.links == ["https://docs.example/encoding"]


def test_a_picture_is_in_the_page() -> None:
    picture = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    body = update("agent_message", messageId="m", content=[picture, text("see")])
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in "".join(to_html(told([BODIES[0], body])))


def test_a_fold_alone_can_be_told() -> None:
    shown = "".join(Page("".join(to_html(account(folded(*BODIES), title="T")))).text)
    assert "The build fails because" in shown


def test_the_time_of_a_page_grows_with_its_size_and_not_faster() -> None:
    def write(words: int) -> None:
        assert len("".join(to_html(told([BODIES[0], chunk("m", "<b>" + "word " * words)])))) > 5 * words

    assert_grows_in_proportion(write, 40_000, times=20)


def test_both_formats_write_every_kind_of_entry() -> None:
    assert MARKDOWN_WRITERS.keys() == HTML_WRITERS.keys()
