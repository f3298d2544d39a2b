"""Offer: what a server says of itself in the answer to `initialize`, in the words of each version."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.clients import AgentCapabilitiesMeta, InitializeMeta
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.antiphon.sessions import HistoryPolicy
from antiphon.schema.version import EXTRAS, META_KEY, V1, Agreement, Extras, OptIns
from antiphon.schema.version import Offer as ClientOffer

CONTENT: dict[str, type] = {
    "image": v2.ImageContent,
    "audio": v2.AudioContent,
    "embedded_context": v2.EmbeddedResource,
}
"""The content that prompts may hold in addition to text and links, by the names of the capabilities."""
ALWAYS: tuple[type, ...] = (v2.TextContent, v2.ResourceLink)
"""The content that every agent accepts in prompts (CONT-02)."""
APPEND, OVERRIDE = v2.SystemPromptMode.APPEND, v2.SystemPromptMode.OVERRIDE
ABLE = AgentCapabilitiesMeta(
    delivery=[Delivery.QUEUE, Delivery.STEER, Delivery.INTERRUPT],
    inject={"modes": [Delivery.QUEUE, Delivery.STEER]},
    replay_after=True,
    fork_at=True,
    operations=["prompt", "inject", "cancel", "new", "fork", "answer"],
    attach={"historyPolicy": list(HistoryPolicy)},
)
"""What our own part of the capabilities says to everyone."""
OPT_INS = OptIns(turn_complete=True, prompt_lifecycle=True, message_update=True)


class Offer(Struct):
    """What a server offers. A hub changes it as it learns what its agents can do."""

    name: str
    version: str
    busy: Delivery
    """What a plain prompt does while the session works."""
    turn_complete: bool
    """Whether every v1 client gets that update, also one that does not ask for it."""
    keeps: bool
    """Whether sessions outlive the process."""
    accepts: frozenset[str] = frozenset()
    """The kinds of content that prompts may hold in addition to text and links."""
    system_prompts: frozenset[v2.SystemPromptMode] = frozenset()
    mcp_over_acp: bool = False
    """Whether clients may offer MCP servers of their own over their connection."""
    provisional: bool = False
    """Whether more may be offered later: nothing is refused then because it is not offered now."""
    mcp_kinds: frozenset[str] = frozenset({"stdio", "http"})
    """The kinds of MCP servers that a session may be given, other than clients' own."""
    takes_directories: bool = True
    """Whether a session may have further roots."""
    has_providers: bool = False
    has_push: bool = False
    """Whether clients may subscribe browsers to Web Push."""
    announces: dict[str, Any] = {}
    """Goes into the `_meta` of the capabilities: extensions, under names that are not ours."""
    ours: dict[str, Any] = {}
    """Goes under `_meta["antiphon"]` of the capabilities, over what every server says there."""
    extras: Extras = EXTRAS
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
                **_session_capabilities(offer, v2),
                prompt=_prompt_capabilities(offer.accepts) if offer.accepts else None,
                mcp=v2.McpCapabilities(
                    stdio=v2.McpStdioCapabilities() if "stdio" in offer.mcp_kinds else None,
                    http=v2.McpHttpCapabilities() if "http" in offer.mcp_kinds else None,
                    acp=v2.McpAcpCapabilities() if offer.mcp_over_acp else None,
                ),
            ),
            providers=v2.ProvidersCapabilities() if offer.has_providers else None,
            meta=_meta(offer, agreement.extras.to_meta()),
        ),
        meta={META_KEY: to_builtins(InitializeMeta(dialect="proposed"))} if proposed else None,
    )


def _in_v1(offer: Offer, agreement: Agreement) -> v1.InitializeResponse:
    # TC-05: the marker is sent exactly on connections where the update will be sent.
    marker: Any = {} if agreement.opt_ins.turn_complete else None
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
                **_session_capabilities(offer, v1),
                list=v1.SessionListCapabilities(),
                resume=v1.SessionResumeCapabilities(),
                close=v1.SessionCloseCapabilities(),
                turn_complete=marker,
            ),
            providers=v1.ProvidersCapabilities() if offer.has_providers else None,
            meta=_meta(offer, agreement.opt_ins.to_meta() | agreement.extras.to_meta()),
        ),
    )


def _session_capabilities(offer: Offer, types: Any) -> dict[str, Any]:
    """Return what both versions say of sessions, in the types of one."""
    directories = types.SessionAdditionalDirectoriesCapabilities()
    return {
        "delete": types.SessionDeleteCapabilities(),
        "fork": types.SessionForkCapabilities(),
        "archive": types.SessionArchiveCapabilities(),
        "status": types.SessionStatusCapabilities(),
        "title": types.SessionTitleCapabilities(),
        "system_prompt": _system_prompts(offer.system_prompts, types),
        "additional_directories": directories if offer.takes_directories else None,
    }


def _meta(offer: Offer, confirmed: dict[str, Any]) -> dict[str, Any]:
    """Return the `_meta` of the capabilities. It says if sessions end with the process, which a client might
    otherwise stop."""
    able = to_builtins(replace(ABLE, keeps=offer.keeps))
    return {**offer.announces, META_KEY: {**able, **offer.ours, **confirmed}}


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
