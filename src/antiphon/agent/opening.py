"""What an agent answers to `initialize`: the agreement, and its capabilities in the words of that version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from antiphon.agent.system_prompts import OVERRIDE
from antiphon.schema import v1, v2
from antiphon.schema.version import META_KEY, V1, Agreement, Offer, OptIns
from antiphon.stores.memory import MemoryStore

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent

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


def open_link(agent: Agent, offer: Offer) -> tuple[Agreement, v1.InitializeResponse | v2.InitializeResponse]:
    agreement = offer.agree(OPT_INS, agent.extras)
    if offer.version == V1:
        if agent.turn_complete:
            everyone = replace(agreement.opt_ins, turn_complete=True).consistent()
            agreement = replace(agreement, opt_ins=everyone)
        return agreement, _in_v1(agent, agreement)
    return agreement, _in_v2(agent, agreement, proposed=offer.proposed)


def _in_v2(agent: Agent, agreement: Agreement, *, proposed: bool) -> v2.InitializeResponse:
    return v2.InitializeResponse(
        protocol_version=v2.ProtocolVersion(2),
        info=v2.Implementation(name=agent.name, version=agent.version),
        capabilities=v2.AgentCapabilities(
            session=v2.SessionCapabilities(
                prompt=_prompt_capabilities(agent.accepts) if agent.accepts else None,
                additional_directories=v2.SessionAdditionalDirectoriesCapabilities()
                if agent.takes_directories
                else None,
                delete=v2.SessionDeleteCapabilities(),
                fork=v2.SessionForkCapabilities(),
                archive=v2.SessionArchiveCapabilities(),
                status=v2.SessionStatusCapabilities(),
                title=v2.SessionTitleCapabilities(),
                system_prompt=_system_prompts(agent.system_prompts, v2),
                mcp=v2.McpCapabilities(
                    stdio=v2.McpStdioCapabilities() if "stdio" in agent.mcp_kinds else None,
                    http=v2.McpHttpCapabilities() if "http" in agent.mcp_kinds else None,
                    acp=v2.McpAcpCapabilities() if agent.mcp_over_acp else None,
                ),
            ),
            providers=v2.ProvidersCapabilities() if agent.providers else None,
            meta={**agent.announces, META_KEY: {**_ours(agent), **agreement.extras.to_meta()}},
        ),
        meta={META_KEY: {"dialect": "proposed"}} if proposed else None,
    )


def _in_v1(agent: Agent, agreement: Agreement) -> v1.InitializeResponse:
    # TC-05: the marker stands exactly where the update will be sent.
    marker: Any = {} if agreement.opt_ins.turn_complete else None
    confirmed = agreement.opt_ins.to_meta() | agreement.extras.to_meta()
    return v1.InitializeResponse(
        protocol_version=v1.ProtocolVersion(1),
        agent_info=v1.Implementation(name=agent.name, version=agent.version),
        agent_capabilities=v1.AgentCapabilities(
            load_session=True,
            prompt_capabilities=v1.PromptCapabilities(
                image="image" in agent.accepts,
                audio="audio" in agent.accepts,
                embedded_context="embedded_context" in agent.accepts,
            ),
            mcp_capabilities=v1.McpCapabilities(http="http" in agent.mcp_kinds, acp=agent.mcp_over_acp),
            session_capabilities=v1.SessionCapabilities(
                list=v1.SessionListCapabilities(),
                delete=v1.SessionDeleteCapabilities(),
                fork=v1.SessionForkCapabilities(),
                archive=v1.SessionArchiveCapabilities(),
                status=v1.SessionStatusCapabilities(),
                title=v1.SessionTitleCapabilities(),
                system_prompt=_system_prompts(agent.system_prompts, v1),
                resume=v1.SessionResumeCapabilities(),
                close=v1.SessionCloseCapabilities(),
                additional_directories=v1.SessionAdditionalDirectoriesCapabilities()
                if agent.takes_directories
                else None,
                turn_complete=marker,
            ),
            providers=v1.ProvidersCapabilities() if agent.providers else None,
            meta={**agent.announces, META_KEY: {**_ours(agent), **confirmed}},
        ),
    )


def _ours(agent: Agent) -> dict[str, Any]:
    """`keeps` is said where sessions do not outlive the process: who could stop it should know."""
    kept = {"keeps": False} if isinstance(agent.store, MemoryStore) else {}
    return {**ABLE, **kept, **agent.offers}


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
