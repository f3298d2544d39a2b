"""Moving sessions: one file that holds a session, written from a store and read into another.

`docs/moving.md` describes the file.
"""

from antiphon.moving.exporting import export_session
from antiphon.moving.importing import import_session
from antiphon.moving.parts import FileRefused
from antiphon.moving.salvage import Missing, salvage
from antiphon.moving.telling import tell_session

__all__ = ["FileRefused", "Missing", "export_session", "import_session", "salvage", "tell_session"]
