"""The agent suite: every scenario and rule for agents, and `check_agent`, which runs them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from itertools import cycle
from random import Random

from antiphon.conformance.agent import (
    cancel,
    capabilities,
    configuration,
    extensions,
    frames,
    hostile,
    initialization,
    login,
    permissions,
    replays,
    sessions,
    turn_complete,
    turns,
    unstable_sessions,
)
from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import initialize_params
from antiphon.conformance.agent.shared import SharedConnection
from antiphon.conformance.agent.v2.suite import SCENARIOS as V2_SCENARIOS
from antiphon.conformance.link import Link, NotSeen, Refused
from antiphon.conformance.options import Options
from antiphon.conformance.recording import Role
from antiphon.conformance.rules.rule import agreed_version
from antiphon.conformance.rules.suite import RULES
from antiphon.conformance.runner import Findings, Progress, narrowed, run_scenarios, selected
from antiphon.conformance.scenario import Decisions, Scenario
from antiphon.conformance.targets import Target
from antiphon.conformance.verdicts import Report, Verdict

MODULES = (
    initialization, capabilities, login, sessions, replays, turns, cancel, permissions, configuration,
    turn_complete, unstable_sessions, frames, hostile, extensions,
)  # fmt: skip
SCENARIOS = [scenario for module in MODULES for scenario in module.scenarios.all] + V2_SCENARIOS


async def spoken_versions(target: Target, *, timeout: float) -> tuple[int, ...]:
    """Ask the agent for version 2. Return the versions to judge: the one it chose, and 1 if it may be spoken.

    Raises `NotSeen` if the agent does not answer `initialize`.
    """
    link = Link(await target.open(), role=Role.CLIENT, timeout=timeout)
    try:
        result = await link.call("initialize", initialize_params(2, {}))
    except Refused:
        return (1,)
    except NotSeen as unseen:
        if link.last_stderr_line:
            raise NotSeen(f"{unseen} (last line on stderr: {link.last_stderr_line})") from None
        raise
    finally:
        await link.aclose()
    return (1, 2) if isinstance(result, dict) and agreed_version(result) == 2 else (1,)


def share_connections(scenarios: Sequence[Scenario], version: int, jobs: int) -> dict[str, SharedConnection]:
    """Return which scenario uses which shared connection, by name. The same in every run."""
    connections = [SharedConnection() for _ in range(jobs)]
    sharing = [each.name for each in scenarios if each.shares and version in each.versions]
    return dict(zip(sharing, cycle(connections), strict=False))


async def check_agent(
    target: Target,
    options: Options,
    *,
    versions: Sequence[int] = (),
    progress: Progress | None = None,
) -> Report:
    """Judge an agent in the given versions, or in all that it speaks."""
    chosen = selected(SCENARIOS, options.only, RULES)
    verdicts: list[Verdict] = []
    faults: list[str] = []
    findings = Findings(RULES, judged=Role.AGENT, revision=options.revision)
    for version in versions or await spoken_versions(target, timeout=options.timeout):
        shared = share_connections(chosen, version, options.jobs)
        turns = {name: connection.turn for name, connection in shared.items()}
        with tempfile.TemporaryDirectory(prefix="antiphon-judge-") as cwd:

            def make_case(
                decisions: Decisions,
                version: int = version,
                cwd: str = cwd,
                shared: Mapping[str, SharedConnection] = shared,
            ) -> AgentCase:
                return AgentCase(
                    target,
                    decisions,
                    version=version,
                    cwd=cwd,
                    prompts=options.prompts,
                    timeout=options.timeout,
                    random=Random(options.seed),
                    shared=shared.get(decisions.scenario),
                )

            try:
                outcomes = await run_scenarios(
                    chosen,
                    make_case,
                    findings,
                    version=version,
                    options=options,
                    turns=turns,
                    progress=progress,
                )
            finally:
                for connection in set(shared.values()):
                    await connection.aclose()
        verdicts += narrowed(outcomes.verdicts, options.only)
        faults += outcomes.faults
    return Report("agent", target.name, tuple(verdicts), options.revision, tuple(faults))
