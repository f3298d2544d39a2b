"""What cannot cross between v1 and v2, what is done instead, and how that is announced.

One table. Every branch of the bridge that loses something names its row by `Ledger.lose`; where the outgoing
value has a `_meta`, the original travels in it (`mark`); otherwise the report is all there is (24, lossy).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

ORIGINAL = "acp.bridge/original"
"""The `_meta` key under which an original travels beside what stands for it."""


class Announced(StrEnum):
    """How the receiving side can learn of a loss."""

    META = "meta"
    """The original stands under `ORIGINAL` in the `_meta` of what is sent instead."""
    REPORTED = "reported"
    """Nothing is sent that could carry it: the report of this side is all there is."""


class Loss(Struct, frozen=True):
    """One thing that does not cross."""

    name: str
    lost: str
    instead: str
    announced: Announced


LOSSES: dict[str, Loss] = {}
"""Every row, by name."""


def _row(name: str, lost: str, instead: str, announced: Announced) -> Loss:
    assert name not in LOSSES
    loss = LOSSES[name] = Loss(name, lost, instead, announced)
    return loss


_META, _REPORTED = Announced.META, Announced.REPORTED

# Messages and their content, v2 to v1
MESSAGE_REPLACED = _row(
    "message_replaced", "new content for a message already sent", "a new message with a new id", _META
)
MESSAGE_CLEARED = _row(
    "message_cleared",
    "a message already sent is emptied",
    "what was sent stays; what follows gets a new id",
    _REPORTED,
)
MESSAGE_META = _row(
    "message_meta",
    "`_meta` of a message already sent",
    "it goes with the next chunk, if any",
    _REPORTED,
)
MESSAGE_ID = _row(
    "message_id", "one id for messages of two types", "the later one's id is prefixed with its type", _META
)
CONTENT_TYPE = _row("content_type", "a content block of unknown type", "a text that names the type", _META)
CONTENT_AUDIENCE = _row("content_audience", "an audience v1 does not know", "the known ones are kept", _META)
CONTENT_ICONS = _row("content_icons", "icons of a resource link", "a link without icons", _META)

# Tool calls and what they show, v2 to v1
TOOL_STATUS = _row(
    "tool_status",
    "status `cancelled`, `paused` or unknown",
    "`failed`, `in_progress` and `in_progress`",
    _META,
)
TOOL_KIND = _row("tool_kind", "an unknown kind of tool", "`other`", _META)
TOOL_CLEARED = _row("tool_cleared", "title, name or raw value is cleared", "the old one stays", _META)
TOOL_CAPABILITIES = _row("tool_capabilities", "capabilities of a tool call", "nothing", _REPORTED)
TOOL_CONTENT_TYPE = _row(
    "tool_content_type", "tool content of unknown type", "a text that names the type", _META
)
TOOL_CHUNK_META = _row("tool_chunk_meta", "`_meta` of a content chunk", "the content alone", _REPORTED)
TERMINAL = _row("terminal", "a terminal of the agent", "its output as sanitized text in the tool call", _META)
TERMINAL_ALONE = _row(
    "terminal_alone", "a terminal to which no tool call refers", "it is kept until one does", _REPORTED
)
TERMINAL_DATA = _row("terminal_data", "terminal output that is no base64", "nothing", _REPORTED)
DIFF = _row(
    "diff", "a diff whose two sides are not known exactly", "its changes and its patch as text", _META
)

# Plans, v2 to v1
PLAN_ENTRY_CANCELLED = _row("plan_entry_cancelled", "a cancelled plan entry", "the plan without it", _META)
PLAN_ENTRY_VALUE = _row(
    "plan_entry_value", "an unknown priority or status of a plan entry", "`medium`, `pending`", _META
)
PLAN_TYPE = _row("plan_type", "a plan that is no list of entries", "a plan without entries", _REPORTED)

# Facts about the session, v2 to v1
COMMAND_TYPE = _row("command_type", "a command of unknown type", "a plain command, if it is named", _META)
COMMAND_INPUT = _row("command_input", "command input of unknown type", "a command without input", _META)
CONFIG_OPTION = _row(
    "config_option",
    "a boolean option for a client that did not ask, or one of unknown type",
    "a list without it",
    _META,
)
NOTICE = _row("notice", "a notice for a client that takes none", "an agent message with its text", _META)
COMPACTION = _row("compaction", "a compaction for a client that takes none", "nothing", _REPORTED)
SUBAGENT = _row("subagent", "subagent updates for a client that takes none", "nothing", _REPORTED)
SUBAGENT_STATE = _row(
    "subagent_state", "background work or an unknown state of a subagent", "the rest of the update", _META
)
STATE = _row("state", "the state of the session and its background work", "nothing", _REPORTED)
UNKNOWN_UPDATE = _row("unknown_update", "an update of unknown type", "nothing", _REPORTED)

# Prompts and permissions, v2 to v1
STOP_REASON = _row("stop_reason", "a stop reason that v1 does not have", "`end_turn`", _META)
PERMISSION_OPTION = _row(
    "permission_option", "a permission option of unknown kind", "the question without it", _META
)
PERMISSION_SUBJECT = _row(
    "permission_subject", "what a permission is about, of unknown type", "a tool call made up for it", _META
)
ELICITATION_FORMAT = _row(
    "elicitation_format", "a format of a text that v1 does not know", "a text without a format", _META
)

# What a v1 client sends, v1 to v2
ANNOTATION_PRIORITY = _row(
    "annotation_priority", "an annotation priority outside 0 to 1", "annotations without it", _META
)
RESOURCE_SIZE = _row("resource_size", "a negative resource size", "a link without size", _META)

# What a v1 agent sends, v1 to v2
CLIENT_TERMINAL = _row(
    "client_terminal", "a terminal of the client that was not run here", "a text that names it", _META
)
LOCATION_LINE = _row("location_line", "line 0 of a file", "the location without a line", _META)
MODE = _row("mode", "a current mode that is not among the session's", "nothing", _REPORTED)
CONFIG_VALUES = _row(
    "config_values", "a select option, or a group of one, without values", "a list without the option", _META
)
UPDATED_AT = _row("updated_at", "a time that is no RFC 3339", "the rest without it", _META)
PROMPT_END = _row(
    "prompt_end", "how a prompt ended while others of its turn went on", "the end of the turn", _META
)
CANCEL_FAILED = _row("cancel_failed", "the error that a cancelled prompt ended with", "`cancelled`", _META)
ERROR_CODE = _row("error_code", "an error code beyond 32 bits", "`-32603`", _META)
OTHER_TURN = _row("other_turn", "the end of somebody else's turn while ours goes on", "nothing", _REPORTED)
UNREADABLE_UPDATE = _row(
    "unreadable_update", "an update that v2 has and v1 has not, malformed", "nothing", _REPORTED
)

Report = Callable[[Loss, Any], None]
"""Told of every loss, with the original as it was."""


class Ledger:
    """Where losses are named. Keeps nothing but the way to report."""

    __slots__ = ("_report",)

    def __init__(self, report: Report | None = None) -> None:
        self._report = report

    def lose(self, loss: Loss, original: Any) -> None:
        """Names a loss where it happens."""
        if self._report is not None:
            self._report(loss, original)


def mark(meta: Mapping[str, Any] | None, original: Any) -> dict[str, Any]:
    """`meta` with the original in it, as plain JSON values."""
    return {**(meta or {}), ORIGINAL: msgspec.to_builtins(original)}
