"""The scenarios for v2 agents, in the order in which they are reported."""

from antiphon.conformance.agent.v2 import (
    background,
    cancel,
    close,
    held_prompts,
    permissions,
    prompts,
    resume,
    tools,
    turns,
)

SCENARIOS = [
    scenario
    for module in (turns, prompts, cancel, held_prompts, permissions, resume, close, tools, background)
    for scenario in module.scenarios.all
]
