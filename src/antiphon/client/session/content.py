"""Content of prompts: text, blocks, and files, embedded or linked as the agent can take them."""

from __future__ import annotations

import base64
import mimetypes
import os
from collections.abc import Sequence
from pathlib import Path

from antiphon.client.protocol.abilities import Abilities
from antiphon.content import check_blocks
from antiphon.errors import LocalError
from antiphon.schema import v2

EMBEDDED_BYTES = 1024 * 1024
"""Larger texts are linked, not embedded."""


class File:
    """A file for a prompt. An image or a recording is sent as such, other text is embedded; where the agent
    cannot take that, or the file is no text, it is linked."""

    def __init__(self, path: str | os.PathLike[str], *, mime_type: str | None = None) -> None:
        self.path = Path(path).absolute()
        self.mime_type = mime_type or mimetypes.guess_type(self.path.name)[0]

    def block(self, able: Abilities) -> v2.ContentBlock:
        """Read the file into a block that an agent with these abilities takes. Raises `LocalError`."""
        kind = (self.mime_type or "").partition("/")[0]
        try:
            size = self.path.stat().st_size
            if kind == "image" and able.image:
                return v2.ImageContent(data=self._base64(), mime_type=str(self.mime_type))
            if kind == "audio" and able.audio:
                return v2.AudioContent(data=self._base64(), mime_type=str(self.mime_type))
            if able.embedded_context and kind not in ("image", "audio", "video") and size <= EMBEDDED_BYTES:
                text = self._text()
                if text is not None:
                    resource = v2.TextResourceContents(
                        uri=self.path.as_uri(), text=text, mime_type=self.mime_type
                    )
                    return v2.EmbeddedResource(resource=resource)
        except OSError as error:
            raise LocalError(f"{self.path} cannot be read: {error.strerror}") from error
        return v2.ResourceLink(
            uri=self.path.as_uri(), name=self.path.name, mime_type=self.mime_type, size=size
        )

    def _base64(self) -> str:
        return base64.b64encode(self.path.read_bytes()).decode()

    def _text(self) -> str | None:
        try:
            return self.path.read_bytes().decode()  # as it is: its line ends too
        except UnicodeDecodeError:
            return None


Content = str | File | v2.ContentBlock
"""What a prompt can hold."""


def content_blocks(content: Sequence[Content], able: Abilities) -> list[v2.ContentBlock]:
    """Content as blocks. Raises `LocalError` for content that the agent cannot take."""
    made = [_block(each, able) for each in content]
    able.check_content(made)
    check_blocks(made)  # CONT-04
    return made


def _block(content: Content, able: Abilities) -> v2.ContentBlock:
    if isinstance(content, str):
        return v2.TextContent(text=content)
    return content.block(able) if isinstance(content, File) else content
