"""Transcripts: a session as people read it, as Markdown or as one page of HTML. Pure: folds in, text out.

What agents, tools and people wrote is shown and never obeyed: nothing of it can run, load anything, hide, or
pass for what it is not.
"""

from typing import TYPE_CHECKING, Any

from antiphon.transcripts.accounts import Account, Gathering, account

if TYPE_CHECKING:
    from antiphon.transcripts.markdown import to_markdown
    from antiphon.transcripts.page import to_html

__all__ = ["Account", "Gathering", "account", "to_html", "to_markdown"]


def __getattr__(name: str) -> Any:
    # The writers parse Markdown. A hub loads the parser with the first transcript, not when it starts.
    if name == "to_markdown":
        from antiphon.transcripts.markdown import to_markdown

        return to_markdown
    if name == "to_html":
        from antiphon.transcripts.page import to_html

        return to_html
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
