"""The table of what cannot cross between v1 and v2, what is sent instead, and how the loss is announced.

`docs/translation.md` is made from it. Every branch of the bridge that loses something names its row by
`Ledger.lose`. If the outgoing value has a `_meta`, the original is in it (`mark`); otherwise the loss is only
reported (24, lossy). A request that cannot be expressed is `refused`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.errors import InvalidParams

logger = logging.getLogger("antiphon.bridge")

ORIGINAL = "acp.bridge/original"
"""The `_meta` key of an original, in what is sent instead."""


class Announced(StrEnum):
    """How the receiving side can learn of a loss."""

    META = "meta"
    """The original is under `ORIGINAL` in the `_meta` of what is sent instead."""
    REPORTED = "reported"
    """Nothing is sent that could carry it: it is only reported on this side."""
    REFUSED = "refused"
    """The request is answered with `-32602`; `data.reason` names the row."""


class Loss(Struct, frozen=True):
    """One thing that does not cross."""

    name: str
    lost: str
    instead: str
    announced: Announced
    topic: str


LOSSES: dict[str, Loss] = {}
"""Every row, by name."""


def _row(topic: str, name: str, lost: str, instead: str, announced: Announced) -> Loss:
    assert name not in LOSSES
    loss = LOSSES[name] = Loss(name, lost, instead, announced, topic)
    return loss


_META, _REPORTED, _REFUSED = Announced

_message = partial(_row, "Messages and their content, towards v1 clients")
MESSAGE_REPLACED = _message(
    "message_replaced", "new content for a message already sent", "a new message with a new id", _META
)
MESSAGE_CLEARED = _message(
    "message_cleared",
    "a message already sent is emptied",
    "what was sent stays; what follows gets a new id",
    _REPORTED,
)
MESSAGE_DELETED = _message(
    "message_deleted", "a message is deleted", "what was sent stays; a replay leaves it out", _REPORTED
)
MESSAGE_META = _message(
    "message_meta",
    "`_meta` of a message already sent",
    "it goes with the next chunk, if any",
    _REPORTED,
)
MESSAGE_ID = _message(
    "message_id", "one id for messages of two types", "the later one's id is prefixed with its type", _META
)
CONTENT_TYPE = _message(
    "content_type", "a content block of unknown type", "a text that names the type", _META
)
CONTENT_AUDIENCE = _message(
    "content_audience", "an audience v1 does not know", "the known ones are kept", _META
)
CONTENT_ICONS = _message("content_icons", "icons of a resource link", "a link without icons", _META)

_tool = partial(_row, "Tool calls and what they show, towards v1 clients")
TOOL_STATUS = _tool(
    "tool_status",
    "status `cancelled`, `paused` or unknown",
    "`failed`, `in_progress` and `in_progress`",
    _META,
)
TOOL_KIND = _tool("tool_kind", "an unknown kind of tool", "`other`", _META)
TOOL_CLEARED = _tool("tool_cleared", "title, name or raw value is cleared", "the old one stays", _META)
TOOL_CAPABILITIES = _tool("tool_capabilities", "capabilities of a tool call", "nothing", _REPORTED)
TOOL_CONTENT_TYPE = _tool(
    "tool_content_type", "tool content of unknown type", "a text that names the type", _META
)
TOOL_CHUNK_META = _tool("tool_chunk_meta", "`_meta` of a content chunk", "the content alone", _REPORTED)
TERMINAL = _tool(
    "terminal", "a terminal of the agent", "its output as sanitized text in the tool call", _META
)
TERMINAL_ALONE = _tool(
    "terminal_alone", "a terminal to which no tool call refers", "it is kept until one does", _REPORTED
)
TERMINAL_DATA = _tool("terminal_data", "terminal output that is no base64", "nothing", _REPORTED)
DIFF = _tool(
    "diff", "a diff whose two sides are not known exactly", "its changes and its patch as text", _META
)

_plan = partial(_row, "Plans, towards v1 clients")
PLAN_ENTRY_CANCELLED = _plan("plan_entry_cancelled", "a cancelled plan entry", "the plan without it", _META)
PLAN_ENTRY_VALUE = _plan(
    "plan_entry_value", "an unknown priority or status of a plan entry", "`medium`, `pending`", _META
)
PLAN_TYPE = _plan("plan_type", "a plan that is no list of entries", "a plan without entries", _REPORTED)

_fact = partial(_row, "Facts about the session, towards v1 clients")
COMMAND_TYPE = _fact("command_type", "a command of unknown type", "a plain command, if it is named", _META)
COMMAND_INPUT = _fact("command_input", "command input of unknown type", "a command without input", _META)
CONFIG_OPTION = _fact(
    "config_option",
    "a boolean option for a client that did not ask, or one of unknown type",
    "a list without it",
    _META,
)
MODEL = _fact(
    "model",
    "another current model, of an agent that has models and no config option for them",
    "nothing; the answer to the next load or resume names it",
    _REPORTED,
)
NOTICE = _fact("notice", "a notice for a client that takes none", "an agent message with its text", _META)
COMPACTION = _fact("compaction", "a compaction for a client that takes none", "nothing", _REPORTED)
SUBAGENT = _fact("subagent", "subagent updates for a client that takes none", "nothing", _REPORTED)
SUBAGENT_STATE = _fact(
    "subagent_state", "background work or an unknown state of a subagent", "the rest of the update", _META
)
STATE = _fact("state", "the state of the session and its background work", "nothing", _REPORTED)
UNKNOWN_UPDATE = _fact("unknown_update", "an update of unknown type", "nothing", _REPORTED)

_answer = partial(_row, "Answers and questions, towards v1 clients")
STOP_REASON = _answer("stop_reason", "a stop reason that v1 does not have", "`end_turn`", _META)
PERMISSION_OPTION = _answer(
    "permission_option", "a permission option of unknown kind", "the question without it", _META
)
PERMISSION_SUBJECT = _answer(
    "permission_subject", "what a permission is about, of unknown type", "a tool call made up for it", _META
)
ELICITATION_FORMAT = _answer(
    "elicitation_format", "a format of a text that v1 does not know", "a text without a format", _META
)

AUTH_METHOD = _answer("auth_method", "a way to log in of unknown type", "a list without it", _REPORTED)

_client = partial(_row, "What a v1 client sends")
ANNOTATION_PRIORITY = _client(
    "annotation_priority", "an annotation priority outside 0 to 1", "annotations without it", _META
)
RESOURCE_SIZE = _client("resource_size", "a negative resource size", "a link without size", _META)

_agent = partial(_row, "What a v1 agent sends")
CLIENT_TERMINAL = _agent(
    "client_terminal", "a terminal of the client that was not run here", "a text that names it", _META
)
LOCATION_LINE = _agent("location_line", "line 0 of a file", "the location without a line", _META)
MODE = _agent("mode", "a current mode that is not among the session's", "nothing", _REPORTED)
CONFIG_VALUES = _agent(
    "config_values", "a select option, or a group of one, without values", "a list without the option", _META
)
UPDATED_AT = _agent("updated_at", "a time that is no RFC 3339", "the rest without it", _META)
PROMPT_END = _agent(
    "prompt_end", "how a prompt ended while others of its turn went on", "the end of the turn", _META
)
CANCEL_FAILED = _agent("cancel_failed", "the error that a cancelled prompt ended with", "`cancelled`", _META)
ERROR_CODE = _agent("error_code", "an error code beyond 32 bits", "`-32603`", _META)
OTHER_TURN = _agent("other_turn", "the end of another client's turn while ours is open", "nothing", _REPORTED)
UNREADABLE_UPDATE = _agent(
    "unreadable_update", "an update that v2 has and v1 has not, malformed", "nothing", _REPORTED
)

_request = partial(_row, "What is asked of a session")
MCP_SSE = _request("mcp_sse", "an MCP server over `sse`, which v2 does not have", "nothing", _REFUSED)
MCP_TYPE = _request(
    "mcp_type", "an MCP server of a type that the v1 agent does not take", "nothing", _REFUSED
)
DIRECTORIES = _request("directories", "further roots for a v1 agent that takes none", "nothing", _REFUSED)
REPLAY_CURSOR = _request(
    "replay_cursor", "a replay by a v1 agent from elsewhere than the start", "nothing", _REFUSED
)
LOAD = _request("load", "a session that a v1 agent is to bring back and cannot", "nothing", _REFUSED)
PROMPT_CONTENT = _request(
    "prompt_content", "content in a prompt that the v1 agent does not take", "nothing", _REFUSED
)
CONFIG_VALUE = _request("config_value", "a config value of a type that v1 does not have", "nothing", _REFUSED)

Report = Callable[[Loss, Any], None]
"""Called with every loss, and the original."""


class LossCounter:
    """A report that counts losses by name and logs them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, loss: Loss, original: Any) -> None:
        self.counts[loss.name] += 1
        logger.debug("bridge loss: %s: %s; instead: %s", loss.name, loss.lost, loss.instead)


class Ledger:
    """Reports losses where they happen."""

    __slots__ = ("_muted", "_report")

    def __init__(self, report: Report | None = None) -> None:
        self._report = report
        self._muted = False

    def lose(self, loss: Loss, original: Any) -> None:
        if self._report is not None and not self._muted:
            self._report(loss, original)

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Report nothing inside the block: what is translated there is not sent."""
        self._muted = True
        try:
            yield
        finally:
            self._muted = False


def refused(loss: Loss, detail: str) -> InvalidParams:
    """Return the error for a request that cannot be expressed."""
    return InvalidParams(detail, data={"reason": loss.name})


def mark(meta: Mapping[str, Any] | None, original: Any) -> dict[str, Any]:
    """`meta` with the original in it, as plain JSON values."""
    return {**(meta or {}), ORIGINAL: msgspec.to_builtins(original)}
