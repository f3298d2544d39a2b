"""The client suite: every scenario and rule for clients, and `check_client`, which runs them."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence

from antiphon.conformance.client import (
    elicitation,
    endings,
    files,
    frames,
    handshake,
    messages,
    permissions,
    terminals,
    tolerance,
    turns,
)
from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import AsksForLess, Manner
from antiphon.conformance.client.printed import Words, printed_words
from antiphon.conformance.link import NotSeen
from antiphon.conformance.options import Options
from antiphon.conformance.recording import Role
from antiphon.conformance.rules.suite import RULES
from antiphon.conformance.runner import Findings, Progress, narrowed, run_scenarios, selected
from antiphon.conformance.scenario import Decisions
from antiphon.conformance.verdicts import Report, Verdict

MODULES = (
    handshake,
    turns,
    messages,
    tolerance,
    permissions,
    elicitation,
    files,
    terminals,
    frames,
    endings,
)
SCENARIOS = [scenario for module in MODULES for scenario in module.scenarios.all]

START_SECONDS = 30.0
"""How long a plain turn may take at least, with the start of the client."""
PATIENCE = 20
"""How many times as long as in a plain turn the judge waits at least: a client may be slow to start."""
PLAIN = Manner(prompts=True, prints=True, exits=True)
"""What the judge expects until it has seen a plain turn."""


async def manner_of(command: Sequence[str], options: Options, version: int) -> Manner | None:
    """Run a plain turn with the client and return how it behaves; `None` if it does not speak the version.

    Raises `NotSeen` if the client does not start the agent or sends no `initialize`.
    """
    began = time.monotonic()
    timeout = max(options.timeout, START_SECONDS)
    decisions = Decisions("plain turn", (), version=version, revision=options.revision)
    case = ClientCase(command, decisions, version=version, manner=PLAIN, timeout=timeout)
    try:
        agent, prompt = await case.begin_turn()
        words = Words()
        agent.say(words())
        agent.finish(prompt)
        exits = await agent.ended(timeout=max(options.timeout, PATIENCE * (time.monotonic() - began)))
        found = printed_words(agent.run.program.printed, words.all)
        return Manner(
            prompts=True,
            prints=found.complete,
            exits=exits,
            exit_code=agent.run.program.exit_code,
            seconds=time.monotonic() - began,
        )
    except AsksForLess:
        return None
    except NotSeen:
        if not case.links:
            raise
        sessions = any(frame.method == "session/new" for frame in case.links[0].recording.frames)
        return Manner(prompts=False, prints=False, exits=False) if sessions else None
    finally:
        await case.aclose()


async def check_client(
    command: Sequence[str],
    options: Options,
    *,
    versions: Sequence[int] = (),
    progress: Progress | None = None,
) -> Report:
    """Judge a client in the given versions, or in all that it speaks.

    The judge starts `command` for each scenario. `{agent}` in an argument is replaced by the command line of
    the judge's agent, quoted for a shell; without it, that command line is one more argument. The client
    should make a session, send one prompt, print the answer and end by itself.

    Raises `NotSeen` if the client does not start the agent or speaks none of the versions.
    """
    chosen = selected(SCENARIOS, options.only, RULES)
    verdicts: list[Verdict] = []
    faults: list[str] = []
    findings = Findings(RULES, judged=Role.CLIENT, revision=options.revision)
    manners = {version: await manner_of(command, options, version) for version in versions or (1, 2)}
    spoken = {version: manner for version, manner in manners.items() if manner is not None}
    if not spoken:
        raise NotSeen("the client made no session: it speaks no version that the judge speaks")
    for version, manner in spoken.items():

        def make_case(decisions: Decisions, version: int = version, manner: Manner = manner) -> ClientCase:
            timeout = max(options.timeout, PATIENCE * manner.seconds)
            return ClientCase(command, decisions, version=version, manner=manner, timeout=timeout)

        outcomes = await run_scenarios(
            chosen,
            make_case,
            findings,
            version=version,
            options=options,
            progress=progress,
        )
        verdicts += narrowed(outcomes.verdicts, options.only)
        faults += outcomes.faults
    return Report("client", shlex.join(command), tuple(verdicts), options.revision, tuple(faults))
