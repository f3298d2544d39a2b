"""Offer: what a server says of itself in the answer to `initialize`, in the words of each version."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.version import EXTRAS, META_KEY, V1, Agreement, Extras, OptIns
from antiphon.schema.version import Offer as ClientOffer

CONTENT: dict[str, type] = {
    "image": v2.ImageContent,
    "audio": v2.AudioContent,
    "embedded_context": v2.EmbeddedResource,
}
"""The content that prompts may hold besides text and links, by the names of the capabilities."""
ALWAYS: tuple[type, ...] = (v2.TextContent, v2.ResourceLink)
"""The content that every agent accepts in prompts (CONT-02)."""
APPEND, OVERRIDE = v2.SystemPromptMode.APPEND, v2.SystemPromptMode.OVERRIDE
ABLE = {
    "delivery": ["queue", "steer", "interrupt"],
    "inject": {"modes": ["queue", "steer"]},
    "replayAfter": True,
    "forkAt": True,
    "operations": ["prompt", "inject", "cancel", "new", "fork", "answer"],
    "attach": {"historyPolicy": ["full", "pending_only", "none", "after_message", "after"]},
}
"""What our own part of the capabilities says to everyone."""
OPT_INS = OptIns(turn_complete=True, prompt_lifecycle=True, message_update=True)


class Offer:
    """What a server offers. A hub changes it as it learns what its agents can do."""

    def __init__(self, name: str, version: str, *, busy: Delivery, turn_complete: bool, keeps: bool) -> None:
        """`busy`: what a plain prompt does while the session works. `turn_complete` sends that signal to
        every v1 client. `keeps`: whether sessions outlive the process."""
        self.name = name
        self.version = version
        self.busy = busy
        self.turn_complete = turn_complete
        self.keeps = keeps
        self.accepts: frozenset[str] = frozenset()
        """The kinds of content that prompts may hold besides text and links."""
        self.system_prompts: frozenset[v2.SystemPromptMode] = frozenset()
        self.mcp_over_acp = False
        """Whether clients may offer MCP servers of their own over their connection."""
        self.provisional = False
        """Whether more may be offered later: nothing is refused then because it is not offered now."""
        self.mcp_kinds = frozenset({"stdio", "http"})
        """The kinds of MCP servers that a session may be given, other than clients' own."""
        self.takes_directories = True
        """Whether a session may have further roots."""
        self.has_providers = False
        self.announces: dict[str, Any] = {}
        """Goes into the `_meta` of the capabilities: extensions, under names that are not ours."""
        self.ours: dict[str, Any] = {}
        """Goes under `_meta["antiphon"]` of the capabilities, over what every server says there."""
        self.extras: Extras = EXTRAS
        """What clients may ask for beyond their version, and get."""

    @property
    def implementation(self) -> dict[str, Any]:
        return {"name": self.name, "version": self.version}

    @property
    def accepted(self) -> tuple[type, ...]:
        """The types of content that prompts may hold."""
        return (*ALWAYS, *(kind for name, kind in CONTENT.items() if name in self.accepts))

    @property
    def may_take_mcp_over_acp(self) -> bool:
        """Whether a session may be set up with MCP servers of clients."""
        return self.mcp_over_acp or self.provisional

    def check_system_prompt(self, given: v2.SystemPrompt | None) -> None:
        """Raise `InvalidParams` for a system prompt that the agent cannot use as it is asked to (SESS-58)."""
        if given is None:
            return
        if not self.system_prompts:
            raise InvalidParams("a system prompt is not supported")
        if given.mode not in self.system_prompts:
            raise InvalidParams(f"the system prompt mode {str(given.mode)!r} is not supported")
        if not given.content or not all(isinstance(block, v2.TextContent) for block in given.content):
            raise InvalidParams("a system prompt is one or more blocks of text")

    def answer(self, offer: ClientOffer) -> tuple[Agreement, v1.InitializeResponse | v2.InitializeResponse]:
        """Return what `initialize` leads to, and its result."""
        agreement = offer.agree(OPT_INS, self.extras)
        if offer.version == V1:
            if self.turn_complete:
                everyone = replace(agreement.opt_ins, turn_complete=True).consistent()
                agreement = replace(agreement, opt_ins=everyone)
            return agreement, _in_v1(self, agreement)
        return agreement, _in_v2(self, agreement, proposed=offer.proposed)


def _in_v2(offer: Offer, agreement: Agreement, *, proposed: bool) -> v2.InitializeResponse:
    return v2.InitializeResponse(
        protocol_version=v2.ProtocolVersion(2),
        info=v2.Implementation(name=offer.name, version=offer.version),
        capabilities=v2.AgentCapabilities(
            session=v2.SessionCapabilities(
                prompt=_prompt_capabilities(offer.accepts) if offer.accepts else None,
                additional_directories=v2.SessionAdditionalDirectoriesCapabilities()
                if offer.takes_directories
                else None,
                delete=v2.SessionDeleteCapabilities(),
                fork=v2.SessionForkCapabilities(),
                archive=v2.SessionArchiveCapabilities(),
                status=v2.SessionStatusCapabilities(),
                title=v2.SessionTitleCapabilities(),
                system_prompt=_system_prompts(offer.system_prompts, v2),
                mcp=v2.McpCapabilities(
                    stdio=v2.McpStdioCapabilities() if "stdio" in offer.mcp_kinds else None,
                    http=v2.McpHttpCapabilities() if "http" in offer.mcp_kinds else None,
                    acp=v2.McpAcpCapabilities() if offer.mcp_over_acp else None,
                ),
            ),
            providers=v2.ProvidersCapabilities() if offer.has_providers else None,
            meta={**offer.announces, META_KEY: {**_ours(offer), **agreement.extras.to_meta()}},
        ),
        meta={META_KEY: {"dialect": "proposed"}} if proposed else None,
    )


def _in_v1(offer: Offer, agreement: Agreement) -> v1.InitializeResponse:
    # TC-05: the marker stands exactly where the update will be sent.
    marker: Any = {} if agreement.opt_ins.turn_complete else None
    confirmed = agreement.opt_ins.to_meta() | agreement.extras.to_meta()
    return v1.InitializeResponse(
        protocol_version=v1.ProtocolVersion(1),
        agent_info=v1.Implementation(name=offer.name, version=offer.version),
        agent_capabilities=v1.AgentCapabilities(
            load_session=True,
            prompt_capabilities=v1.PromptCapabilities(
                image="image" in offer.accepts,
                audio="audio" in offer.accepts,
                embedded_context="embedded_context" in offer.accepts,
            ),
            mcp_capabilities=v1.McpCapabilities(http="http" in offer.mcp_kinds, acp=offer.mcp_over_acp),
            session_capabilities=v1.SessionCapabilities(
                list=v1.SessionListCapabilities(),
                delete=v1.SessionDeleteCapabilities(),
                fork=v1.SessionForkCapabilities(),
                archive=v1.SessionArchiveCapabilities(),
                status=v1.SessionStatusCapabilities(),
                title=v1.SessionTitleCapabilities(),
                system_prompt=_system_prompts(offer.system_prompts, v1),
                resume=v1.SessionResumeCapabilities(),
                close=v1.SessionCloseCapabilities(),
                additional_directories=v1.SessionAdditionalDirectoriesCapabilities()
                if offer.takes_directories
                else None,
                turn_complete=marker,
            ),
            providers=v1.ProvidersCapabilities() if offer.has_providers else None,
            meta={**offer.announces, META_KEY: {**_ours(offer), **confirmed}},
        ),
    )


def _ours(offer: Offer) -> dict[str, Any]:
    """`keeps` is said where sessions do not outlive the process: a client that could stop it should know."""
    kept = {} if offer.keeps else {"keeps": False}
    return {**ABLE, **kept, **offer.ours}


def _prompt_capabilities(accepts: frozenset[str]) -> v2.PromptCapabilities:
    return v2.PromptCapabilities(
        image=v2.PromptImageCapabilities() if "image" in accepts else None,
        audio=v2.PromptAudioCapabilities() if "audio" in accepts else None,
        embedded_context=v2.PromptEmbeddedContextCapabilities() if "embedded_context" in accepts else None,
    )


def _system_prompts(modes: frozenset[v2.SystemPromptMode], types: Any) -> Any:
    if not modes:
        return None
    able = types.SessionSystemPromptOverrideCapabilities() if OVERRIDE in modes else None
    mode = None if able is None else types.SessionSystemPromptModeCapabilities(override=able)
    return types.SessionSystemPromptCapabilities(mode=mode)
