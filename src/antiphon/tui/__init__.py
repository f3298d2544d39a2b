"""The terminal UI of `antiphon chat`: a session on the screen, the same one as on the page, live."""

from antiphon.tui.app import ChatApp
from antiphon.tui.asking import Asking
from antiphon.tui.running import Chat, run_chat

__all__ = ["Asking", "Chat", "ChatApp", "run_chat"]
