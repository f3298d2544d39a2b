"""A v1 agent of the official Python SDK with every kind of content, a login and a config option.

It says what it was prompted with, as JSON, and then sends an image, a link and a resource, with annotations.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import acp
from acp.schema import (
    AgentCapabilities,
    Annotations,
    AuthenticateResponse,
    AuthMethodAgent,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    Implementation,
    PromptCapabilities,
    ResourceContentBlock,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SetSessionConfigOptionResponse,
    TextResourceContents,
)

ANSWER = [
    ImageContentBlock(
        type="image",
        data="R0lG",
        mime_type="image/gif",
        annotations=Annotations(audience=["user"], priority=0.9),
    ),
    ResourceContentBlock(
        type="resource_link", uri="https://example.org/dots", name="dots", title="More dots"
    ),
    EmbeddedResourceContentBlock(
        type="resource", resource=TextResourceContents(uri="file:///dots.txt", text=". . .")
    ),
]


class Showing:
    user = "nobody"
    model = "fast"

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> Any:
        takes = PromptCapabilities(image=True, audio=True, embedded_context=True)
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(prompt_capabilities=takes),
            auth_methods=[AuthMethodAgent(id="key", name="By key")],
            agent_info=Implementation(name="content", version="1.0.0"),
        )

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id="s", config_options=self.options())

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        self.user = method_id
        return AuthenticateResponse()

    async def set_config_option(self, config_id: str, session_id: str, value: Any, **_: Any) -> Any:
        self.model = value
        return SetSessionConfigOptionResponse(config_options=self.options())

    def options(self) -> list[Any]:
        offered = [SessionConfigSelectOption(value=one, name=one.title()) for one in ("fast", "deep")]
        return [
            SessionConfigOptionSelect(
                type="select", id="model", name="Model", current_value=self.model, options=offered
            )
        ]

    async def prompt(self, prompt: Any, session_id: str, **_: Any) -> acp.PromptResponse:
        came = [block.model_dump(by_alias=True, exclude_none=True, mode="json") for block in prompt]
        said = json.dumps({"user": self.user, "prompt": came})
        for block in (acp.text_block(said), *ANSWER):
            await self.client.session_update("s", acp.update_agent_message(block))
        return acp.PromptResponse(stop_reason="end_turn")


asyncio.run(acp.run_agent(Showing()))  # type: ignore[arg-type]
