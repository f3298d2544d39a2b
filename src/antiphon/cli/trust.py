"""Whose certificates are trusted, beside the usual ones: those of a file that was named with `--ca`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

_files: list[str] = []


def trust(file: str | None) -> None:
    if file and file not in _files:
        _files.append(file)


def trusted(ctx: Any, param: Any, file: str | None) -> None:
    """As the callback of an option."""
    trust(file)


def tls_for(address: str) -> ssl.SSLContext | None:
    """How an address is reached, where it is more than the usual way. Raises `Failure`."""
    if not _files or not address.startswith(("wss://", "https://")):
        return None
    import ssl  # every command loads this module, and few need that

    from antiphon.cli.exits import Exit, Failure

    context = ssl.create_default_context()
    for file in _files:
        try:
            context.load_verify_locations(file)
        except (OSError, ssl.SSLError) as error:
            raise Failure(f"{file} holds no certificates: {error}", Exit.USAGE) from error
    return context
