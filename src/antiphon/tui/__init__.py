"""The terminal UI of `antiphon chat`: a session on the screen, the same one as on the page, live."""

from antiphon.tui.app import ChatApp
from antiphon.tui.chat import Chat, run_chat
from antiphon.tui.questions import PendingQuestions

__all__ = ["Chat", "ChatApp", "PendingQuestions", "run_chat"]
