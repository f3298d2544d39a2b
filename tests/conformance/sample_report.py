"""Reports made by hand, with frames that try everything on whoever shows them."""

from __future__ import annotations

import json

from antiphon.conformance.recording import RecordedFrame, Recording, Role
from antiphon.conformance.requirements import requirements
from antiphon.conformance.verdicts import Evidence, Outcome, Report, Verdict

HOSTILE = (
    "</pre></details></style><script>alert(1)</script><img src=x onerror=alert(1)>"
    "\x1b[31mred\x1b]0;title\x07 \u202egnp.exe \u200b ]]> \x00 & \" ' <!-- "
)


def frames(*raws: bytes) -> tuple[RecordedFrame, ...]:
    """Frames of the agent, one millisecond apart."""
    recording = Recording(lambda: 0.0)
    return tuple(recording.add(Role.AGENT, raw, at=0.001 * at) for at, raw in enumerate(raws, start=1))


def verdict(
    id: str,
    outcome: Outcome,
    expected: str = "expected something",
    *,
    version: int = 1,
    scenario: str = "turns/a",
    proof: tuple[RecordedFrame, ...] = (),
) -> Verdict:
    return Verdict(requirements()[id], outcome, scenario, version, Evidence(expected, proof))


HOSTILE_FRAMES = frames(
    json.dumps({"jsonrpc": "2.0", "method": HOSTILE, "params": {HOSTILE: HOSTILE}}).encode(),
    HOSTILE.encode(),
    b"\xff\xfe not UTF-8 <b>",
    b'{"jsonrpc":"2.0","id":1,"result":"\\ud83d"}',
    b"[" * 2000,
    b"",
    json.dumps({"jsonrpc": "2.0", "id": 2, "result": "x" * 100_000}).encode(),
)


def sample(*verdicts: Verdict, faults: tuple[str, ...] = ()) -> Report:
    """A report with one verdict of each outcome, and those given."""
    usual = (
        verdict("PROMPT-V1-02", Outcome.PASS),
        verdict("PROMPT-V1-03", Outcome.FAIL, f"expected {HOSTILE}, got \ud83d", proof=HOSTILE_FRAMES),
        verdict("PROMPT-V1-03", Outcome.FAIL, "expected it here, too", scenario="turns/b"),
        verdict("PROMPT-V1-03", Outcome.PASS, scenario="turns/c"),
        verdict("RPC-10", Outcome.WARN, "expected -32700", proof=HOSTILE_FRAMES[:1]),
        verdict("RPC-10", Outcome.PASS, version=2),
        verdict("RPC-24", Outcome.NOT_APPLICABLE, "came with a later revision", version=2),
        verdict("RPC-29", Outcome.NOT_TESTED, "no frame of this kind was seen", version=2),
        verdict("RPC-31", Outcome.NOT_TESTED, "no frame of this kind was seen", version=2),
    )
    return Report("agent", f"my-agent {HOSTILE}", (*usual, *verdicts), "alpha.12", faults)
