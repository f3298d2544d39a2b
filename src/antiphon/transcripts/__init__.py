"""Transcripts: a session as Markdown or as one HTML page. Pure: folds in, text out.

Text of agents, tools and users is shown and never obeyed: it cannot run, load, hide or imitate anything.
"""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.transcripts.accounts import Account, Gathering, account
    from antiphon.transcripts.markdown import to_markdown
    from antiphon.transcripts.page import to_html
    from antiphon.transcripts.reading_limits import is_readable
    from antiphon.transcripts.words import (
        DELETED,
        ENDINGS,
        annotation_lines,
        block_words,
        call_title,
        change_words,
        exit_text,
        is_safe_link,
        kind_words,
        near,
    )
    from antiphon.transcripts.writing import Piece, Writing

__all__ = [
    "DELETED", "ENDINGS", "Account", "Gathering", "Piece", "Writing", "account", "annotation_lines",
    "block_words", "call_title", "change_words", "exit_text", "is_readable", "is_safe_link",
    "kind_words", "near", "to_html", "to_markdown",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "accounts": ("Account", "Gathering", "account"),
    "markdown": ("to_markdown",),
    "page": ("to_html",),
    "reading_limits": ("is_readable",),
    "words": ("DELETED", "ENDINGS", "annotation_lines", "block_words", "call_title", "is_safe_link",
        "near", "change_words", "exit_text", "kind_words"),
    "writing": ("Piece", "Writing"),
})  # fmt: skip
