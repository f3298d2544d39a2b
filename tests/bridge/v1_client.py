"""A tiny v1 client: folds v1 updates, as JSON, into what its user would see."""

from __future__ import annotations

from typing import Any

ROLES = {"user_message_chunk": "user", "agent_message_chunk": "agent", "agent_thought_chunk": "thought"}


class V1Client:
    def __init__(self) -> None:
        self.messages: dict[str, tuple[str, list[Any]]] = {}
        """By id: the role and the content, adjacent texts as one."""
        self.tools: dict[str, dict[str, Any]] = {}
        self.plan: list[Any] = []

    def apply(self, update: dict[str, Any]) -> None:
        match update["sessionUpdate"]:
            case "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" as tag:
                role, content = self.messages.setdefault(update["messageId"], (ROLES[tag], []))
                assert role == ROLES[tag]
                content.append(update["content"])
            case "message_update":
                role, _ = self.messages[update["messageId"]]
                content = update.get("content", [])
                blocks = content if isinstance(content, list) else [content]
                self.messages[update["messageId"]] = (role, blocks)
            case "tool_call":
                assert update["toolCallId"] not in self.tools
                self.tools[update["toolCallId"]] = {
                    "kind": "other",
                    "status": "pending",
                    "content": [],
                    "locations": [],
                    **_fields(update),
                }
            case "tool_call_update":
                self.tools[update["toolCallId"]].update(_fields(update))
            case "plan":
                self.plan = update["entries"]


def _fields(update: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in update.items() if key != "sessionUpdate" and value is not None}


def joined(blocks: list[Any]) -> list[Any]:
    """Content with adjacent plain texts as one."""
    made: list[Any] = []
    for block in blocks:
        if set(block) == {"type", "text"} and made and isinstance(made[-1], str):
            made[-1] += block["text"]
        else:
            made.append(block["text"] if set(block) == {"type", "text"} else block)
    return [part for part in made if part != ""]
