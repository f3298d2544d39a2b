"""Session files: one file that holds a session, written from a store and read into another.

`docs/moving.md` describes the file.
"""

from antiphon.session_files.accounts import read_account
from antiphon.session_files.format import FileRefused
from antiphon.session_files.reader import import_session
from antiphon.session_files.salvage import Missing, salvage
from antiphon.session_files.writer import export_session

__all__ = ["FileRefused", "Missing", "export_session", "import_session", "read_account", "salvage"]
