"""Judge from Python: `check` an agent, or `check_recording` of both sides."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from antiphon.conformance.agent.suite import check_agent, spoken_versions
from antiphon.conformance.exported import decides
from antiphon.conformance.options import Options
from antiphon.conformance.recording import RecordingRefused, Role
from antiphon.conformance.recordings import is_exported_session, read_recording
from antiphon.conformance.revisions import PINNED
from antiphon.conformance.rules.rule import facts_of
from antiphon.conformance.rules.suite import RULES
from antiphon.conformance.runner import Findings, Progress
from antiphon.conformance.targets import Target, target_of
from antiphon.conformance.verdicts import Report, Verdict


async def check(
    peer: Sequence[str] | str | Target,
    *,
    version: int | None = None,
    token: str = "",
    options: Options = Options(),
    progress: Progress | None = None,
) -> Report:
    """Judge an agent: a command, or an address such as `ws://host/acp`.

    `version` is 1 or 2; without it the agent is judged in every version that it speaks. `token` is sent to
    an address. `progress` is told which scenario runs. Raises `SpawnFailed`, `LinkLost`, or `NotSeen` if the
    agent does not answer `initialize`; `ValueError` if `options.only` names nothing.

        report = await check(["my-agent"], version=2)
        for verdict in report.failures:
            print(verdict.requirement.id, verdict.evidence.expected)
    """
    target = target_of(peer, token=token)
    spoken = await spoken_versions(target, timeout=options.timeout)
    return await check_agent(
        target, options, versions=spoken if version is None else (version,), progress=progress
    )


def check_recording(path: str | os.PathLike[str], *, revision: str = PINNED) -> Report:
    """Judge both sides of a recorded connection by what the traffic alone shows.

    The scenario of each verdict is the side: `agent` or `client`. An exported session has no frames: its
    agent is judged by the updates that a v2 client would see. Raises `RecordingRefused`, `OSError`.
    """
    recording = read_recording(path)
    exported = is_exported_session(path)
    verdicts: list[Verdict] = []
    for side in (Role.AGENT,) if exported else (Role.AGENT, Role.CLIENT):
        facts = facts_of(recording, side, revision=revision)
        if facts is None:
            raise RecordingRefused("the recording has no successful `initialize`, which every rule needs")
        findings = Findings(RULES, judged=side, revision=revision)
        findings.add(str(side), recording)
        found = findings.verdicts(facts.version)
        if exported:
            found = [verdict for verdict in found if decides(verdict.requirement.id)]
        verdicts += [msgspec.structs.replace(verdict, scenario=str(side)) for verdict in found]
    return Report("recording", os.fspath(path), tuple(verdicts), revision)
