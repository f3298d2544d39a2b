"""A tiny v2 client: folds v2 updates, as JSON, by sections 7, 8 and 11. Shares no code with ours."""

from __future__ import annotations

import base64
from typing import Any

ROLES = {"user_message": "user", "agent_message": "agent", "agent_thought": "thought"}
DEFAULTS: dict[str, Any] = {"kind": "other", "status": "pending", "content": [], "locations": []}


class V2Client:
    def __init__(self) -> None:
        self.messages: dict[tuple[str, str], list[Any]] = {}
        self.tools: dict[str, dict[str, Any]] = {}
        self.terminals: dict[str, bytes] = {}
        self.plans: dict[str, list[Any]] = {}

    def apply(self, update: dict[str, Any]) -> None:
        match update["sessionUpdate"]:
            case "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" as tag:
                self.messages.setdefault((ROLES[tag.removesuffix("_chunk")], update["messageId"]), []).append(
                    update["content"]
                )
            case "user_message" | "agent_message" | "agent_thought" as tag:
                held = self.messages.setdefault((ROLES[tag], update["messageId"]), [])
                if "content" in update:
                    held[:] = update["content"] or []
            case "tool_call_update":
                call = self.tools.setdefault(update["toolCallId"], dict(DEFAULTS))
                for key, value in update.items():
                    if key in ("sessionUpdate", "_meta"):
                        continue
                    if value is not None:
                        call[key] = value
                    elif key in DEFAULTS:
                        call[key] = DEFAULTS[key]
                    else:
                        call.pop(key, None)
            case "tool_call_content_chunk":
                call = self.tools.setdefault(update["toolCallId"], dict(DEFAULTS))
                call["toolCallId"] = update["toolCallId"]
                call["content"] = [*call["content"], update["content"]]
            case "terminal_output_chunk":
                before = self.terminals.get(update["terminalId"], b"")
                self.terminals[update["terminalId"]] = before + base64.b64decode(update["data"])
            case "terminal_update":
                if "output" in update:
                    output = update["output"]
                    data = b"" if output is None else base64.b64decode(output["data"])
                    self.terminals[update["terminalId"]] = data
            case "plan_update":
                self.plans[update["plan"]["planId"]] = update["plan"]["entries"]
            case "plan_removed":
                self.plans.pop(update["planId"], None)
