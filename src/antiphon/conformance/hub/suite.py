"""The hub suite: every scenario and rule for hubs, and `check_hub`, which runs them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from antiphon.conformance.agent.suite import spoken_versions
from antiphon.conformance.hub import (
    access,
    forwarded_updates,
    late_joiners,
    questions,
    restarts,
    shared_sessions,
)
from antiphon.conformance.hub.case import HubCase
from antiphon.conformance.hub.place import HubAt, Place, StartedHub
from antiphon.conformance.options import Options
from antiphon.conformance.recording import Role
from antiphon.conformance.rules.suite import RULES as AGENT_RULES
from antiphon.conformance.runner import Findings, Outcomes, Progress, narrowed, run_scenarios, selected
from antiphon.conformance.scenario import Decisions
from antiphon.conformance.targets import AddressTarget
from antiphon.conformance.verdicts import Report

MODULES = (shared_sessions, late_joiners, questions, forwarded_updates, access, restarts)
SCENARIOS = [scenario for module in MODULES for scenario in module.scenarios.all]
RULES = tuple(rule for rule in AGENT_RULES if "PROMPT-V2-45" not in rule.requirements)
"""A hub reports a state on resume (SESS-21) before its agent has reported any, so it cannot know then whether
the agent reports `background`."""
ADDRESS = "ws://127.0.0.1:{port}/acp"


async def check_hub(
    hub: Sequence[str] | str,
    options: Options,
    *,
    versions: Sequence[int] = (),
    token: str = "",
    other_token: str = "",
    address: str = ADDRESS,
    progress: Progress | None = None,
) -> Report:
    """Judge a hub: a command, or an address such as `ws://host/acp`.

    Behind a hub that it starts by a command, the judge plays the agent too: see `StartedHub` for the words
    that are replaced in the command. `address` is where that hub listens. At a hub that was running before,
    the judge has only clients, and prompts to make its agent work.

    `token` lets the judge in, `other_token` a client that may not open the judge's sessions. A version is
    judged with clients of both versions, and the agent that the judge plays speaks it. Raises `SpawnFailed`,
    `LinkLost` or `NotSeen` if the hub does not let the judge in.
    """
    report = Report("hub", "", (), options.revision)
    if isinstance(hub, str):
        place = HubAt(hub, token=token)
        spoken = await spoken_versions(AddressTarget(hub, token=token), timeout=options.timeout)
        for version in versions or spoken:
            report = await check_place(
                place, options, report, version=version, other_token=other_token, progress=progress
            )
        return report
    for version in versions or (1, 2):
        started = await StartedHub.start(hub, address, version=version, timeout=options.timeout)
        try:
            report = await check_place(
                started, options, report, version=version, other_token=other_token, progress=progress
            )
        finally:
            await started.aclose()
    return report


async def check_place(
    place: Place,
    options: Options,
    report: Report,
    *,
    version: int,
    other_token: str = "",
    progress: Progress | None = None,
) -> Report:
    """Judge the hub at a place in one version. Return the report with the verdicts added."""
    findings = Findings(RULES, judged=Role.AGENT, revision=options.revision)
    with tempfile.TemporaryDirectory(prefix="antiphon-judge-") as folder:

        def make_case(decisions: Decisions) -> HubCase:
            return HubCase(
                place,
                decisions,
                version=version,
                folder=folder,
                prompts=options.prompts,
                timeout=options.timeout,
                other_token=other_token,
            )

        outcomes: Outcomes = await run_scenarios(
            selected(SCENARIOS, options.only, RULES),
            make_case,
            findings,
            version=version,
            options=options,
            progress=progress,
        )
    return Report(
        "hub",
        place.name,
        (*report.verdicts, *narrowed(outcomes.verdicts, options.only)),
        options.revision,
        (*report.faults, *outcomes.faults),
    )
