"""A v1 agent of the official Python SDK that asks for a form and for a visit, and says what came of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import acp
from acp.schema import (
    AgentCapabilities,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationUrlSessionMode,
    Implementation,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 2, "pattern": "^[A-Z]"},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}], "default": "s"},
        "extras": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "minItems": 1},
        "count": {"type": "integer", "minimum": 1, "default": 2},
        "gift": {"type": "boolean"},
    },
    "required": ["name"],
}


class Asking:
    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, client_capabilities: Any = None, **_: Any) -> Any:
        self.able = plain(client_capabilities)["elicitation"]
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="asking", version="1.0.0"),
        )

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id="s")

    async def prompt(self, prompt: Any, session_id: str, **_: Any) -> acp.PromptResponse:
        schema = ElicitationSchema.model_validate(SCHEMA)
        form = await self.client.create_elicitation(
            "What shall it be?", ElicitationFormSessionMode(session_id="s", requested_schema=schema)
        )
        visit = await self.client.create_elicitation(
            "Please pay",
            ElicitationUrlSessionMode(session_id="s", elicitation_id="e1", url="https://example.com/pay"),
        )
        await self.client.complete_elicitation("e1")
        said = json.dumps({"able": self.able, "form": plain(form), "visit": plain(visit)})
        await self.client.session_update("s", acp.update_agent_message_text(said))
        return acp.PromptResponse(stop_reason="end_turn")


def plain(value: Any) -> Any:
    return value.model_dump(by_alias=True, exclude_none=True, mode="json")


asyncio.run(acp.run_agent(Asking(), use_unstable_protocol=True))  # type: ignore[arg-type]
