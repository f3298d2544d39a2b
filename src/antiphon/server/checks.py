"""What an agent may send: values that are ACP's or marked as custom, and paths that are absolute.

A mistake of the agent's author is raised at the call that makes it, and is never sent to a client.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from typing import Any

from antiphon.content import check_blocks
from antiphon.engine.configuration import fault
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.wire import OpenEnum


def check_value(value: Any) -> None:
    """EXT-06: a value that ACP does not name begins with an underscore."""
    if isinstance(value, OpenEnum) and not value.known and not value.startswith("_"):
        raise LocalError(f"{value!r} is no value of {type(value).__name__}; one of your own begins with `_`")


def check_path(path: object) -> None:
    if isinstance(path, str) and not os.path.isabs(path):
        raise LocalError(f"{path!r} is not an absolute path")  # RPC-43


def check_update(update: v2.SessionUpdate) -> None:
    """Raises `LocalError`. Chunks of plain text, which are most of what is sent, have nothing to check."""
    match update:
        case v2.AgentMessageChunk() | v2.AgentThoughtChunk() | v2.CompactionSummaryChunk():
            check_blocks((update.content,))  # CONT-04
        case v2.AgentMessage() | v2.AgentThought() | v2.SessionMessage():
            check_blocks(update.content or ())
        case v2.ToolCallContentChunk(content=v2.Content(content=block)):
            check_blocks((block,))
        case v2.ToolCallUpdate():
            check_blocks(shown.content for shown in update.content or () if isinstance(shown, v2.Content))
            check_value(update.kind)
            check_value(update.status)
            for location in update.locations or ():
                check_path(location.path)
        case v2.PlanUpdate(plan=v2.PlanItems(entries=entries)):
            for entry in entries:  # PLAN-V2-04
                check_value(entry.priority)
                check_value(entry.status)
        case v2.TerminalUpdate():  # TERMV2-07
            check_path(update.cwd)
            size = update.size
            if isinstance(size, v2.TerminalSize) and not (
                1 <= size.cols <= 0xFFFF and 1 <= size.rows <= 0xFFFF
            ):
                raise LocalError(f"a terminal has 1 to 65535 columns and rows, got {size.cols} x {size.rows}")
        case v2.Notice():  # NOTE-03
            check_value(update.severity)
            if not update.title.strip():
                raise LocalError(f"a notice must have a title, got {update.title!r}")
        case v2.CompactionUpdate():  # COMP-02, COMP-05
            check_value(update.status)
            if update.summary and update.status != v2.CompactionStatus.COMPLETED:
                raise LocalError("a summary comes with a compaction that is completed")
            if update.error and update.status != v2.CompactionStatus.FAILED:
                raise LocalError("an error comes with a compaction that has failed")
        case v2.ConfigOptionUpdate():
            wrong = fault(update.config_options)
            if wrong is not None:
                raise LocalError(wrong)  # CONF-V2-04
        case v2.AvailableCommandsUpdate():
            check_commands(update.available_commands)


def check_question(request: v2.RequestPermissionRequest) -> None:
    """PERM-V2-01, PERM-V2-04."""
    ids = [option.option_id for option in request.options]
    if not ids or len(set(ids)) != len(ids):
        raise LocalError("a permission request needs at least one option, and each its own id")
    for option in request.options:
        check_value(option.kind)
    if isinstance(request.subject, v2.CommandPermissionSubject):
        check_path(request.subject.cwd)


def command_names(commands: Sequence[v2.AvailableCommand]) -> list[object]:
    return [command.get("name") if isinstance(command, dict) else command.name for command in commands]


def check_commands(commands: Sequence[v2.AvailableCommand]) -> None:
    """CMD-V2-01."""
    names = command_names(commands)
    for name in names:
        if not isinstance(name, str) or not name or name.startswith("/") or re.search(r"\s", name):
            raise LocalError(f"{name!r} is no name of a command: it has no slash before it and no spaces")
    if len(set(names)) != len(names):
        raise LocalError(f"the names of commands must differ, got {names!r}")
