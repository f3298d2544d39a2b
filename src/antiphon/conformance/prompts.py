"""Prompts: the texts with which the judge tries to make an agent do what a scenario needs."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Prompts(Struct, frozen=True):
    """Named prompt texts. An empty text means that the judge does not try."""

    plain: str = "Reply with one short sentence."
    """Any short turn with at least one message."""
    slow: str = "Count slowly from 1 to 1000, one number per line."
    """A turn that lasts until it is cancelled."""
    tool: str = "Read the file README.md in the working directory."
    """A turn with a tool call."""
    slow_tool: str = "Run the command `sleep 60` in a shell and wait until it ends."
    """A turn with a tool call that lasts until it is cancelled."""
    permission: str = "Run the command `echo antiphon` in a shell. Ask for permission first."
    """A turn that asks the client for permission."""
    failure: str = ""
    """A turn that fails."""
    background: str = "Work in background: start `sleep 30` in a shell and reply without waiting for it."
    """A turn after which work goes on in the background (v2)."""


def read_prompts(given: Iterable[str]) -> dict[str, str]:
    """Read words of the form `NAME=TEXT` into texts by name. Raises `ValueError`."""
    prompts: dict[str, str] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals or name not in Prompts.__struct_fields__:
            names = ", ".join(Prompts.__struct_fields__)
            raise ValueError(f"{each!r} is not NAME=TEXT with a NAME of {names}")
        prompts[name] = text
    return prompts
