"""Transcripts: a session as people read it, as Markdown or as one page of HTML. Pure: folds in, text out.

What agents, tools and people wrote is shown and never obeyed: nothing of it can run, load anything, hide, or
pass for what it is not.
"""

from antiphon.transcripts.accounts import Account, Gathering, account
from antiphon.transcripts.markdown import to_markdown
from antiphon.transcripts.page import to_html

__all__ = ["Account", "Gathering", "account", "to_html", "to_markdown"]
