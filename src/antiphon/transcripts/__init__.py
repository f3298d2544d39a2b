"""Transcripts: sessions as text. Pure: folds in, text out.

Text from agents, tools and users is shown and never obeyed: it cannot run, load, hide or imitate anything.
"""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.transcripts.accounts import Account, AccountBuilder, Asked, Ended, account
    from antiphon.transcripts.answers import option_for, option_keys
    from antiphon.transcripts.foreign_markdown import is_readable
    from antiphon.transcripts.forms import field_limits, read_number
    from antiphon.transcripts.markdown import to_markdown
    from antiphon.transcripts.markdown_stream import MarkdownStream, Piece
    from antiphon.transcripts.page import to_html
    from antiphon.transcripts.patches import PatchRow, folded_rows, patch_counts, patch_rows
    from antiphon.transcripts.words import (
        BOXES,
        CALL_MARKS,
        DELETED,
        READING,
        annotation_lines,
        block_text,
        call_parts,
        call_title,
        change_text,
        content_text,
        context_text,
        duration,
        end_text,
        ending_text,
        exit_text,
        is_safe_link,
        kind_text,
        notice_text,
        option_value,
        plan_entries,
        relative_path,
        tokens_text,
        unanswered_text,
    )

__all__ = [
    "BOXES", "CALL_MARKS", "DELETED", "READING", "Account", "AccountBuilder", "Asked", "Ended",
    "MarkdownStream", "PatchRow", "Piece", "account", "annotation_lines", "block_text", "call_parts",
    "call_title", "change_text", "content_text", "context_text", "duration", "end_text", "ending_text",
    "exit_text", "field_limits", "folded_rows", "is_readable", "is_safe_link", "kind_text", "notice_text",
    "option_for", "option_keys", "option_value", "patch_counts", "patch_rows", "plan_entries",
    "read_number", "relative_path", "to_html", "to_markdown", "tokens_text", "unanswered_text",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "accounts": ("Account", "AccountBuilder", "Asked", "Ended", "account"),
    "answers": ("option_for", "option_keys"),
    "foreign_markdown": ("is_readable",),
    "forms": ("field_limits", "read_number"),
    "markdown": ("to_markdown",),
    "markdown_stream": ("MarkdownStream", "Piece"),
    "page": ("to_html",),
    "patches": ("PatchRow", "folded_rows", "patch_counts", "patch_rows"),
    "words": ("BOXES", "CALL_MARKS", "DELETED", "READING", "annotation_lines", "block_text", "call_parts",
        "call_title", "change_text", "content_text", "context_text", "duration", "end_text", "ending_text",
        "exit_text", "is_safe_link", "kind_text", "notice_text", "option_value", "plan_entries",
        "relative_path", "tokens_text", "unanswered_text"),
})  # fmt: skip
