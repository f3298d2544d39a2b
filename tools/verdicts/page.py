"""docs/verdicts.md: a table of all peers, then each fail with its frames and a note."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from antiphon.conformance import PINNED, Outcome, Report, Verdict
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.report import frames
from tools.verdicts.peers import Peer

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 400
"""Characters of one frame."""
OUTCOMES = (Outcome.PASS, Outcome.FAIL, Outcome.WARN, Outcome.NOT_APPLICABLE, Outcome.NOT_TESTED)
_FOLDER = re.compile(rf"{re.escape(tempfile.gettempdir())}/(antiphon|judge)-[\w-]+")
_HEAD = """\
# Verdicts

`make verdicts` writes this page: it runs the judge ([judge.md](judge.md)) on Antiphon's own agent, hub and
client, on agents and clients of the official SDKs, and on real agents and clients from the registries. Real
agents run offline with a stand-in model. Peers of the SDKs are small programs in `tests/peers/sdk_python` and
`tests/peers/sdk_ts`. They offer little and leave the rest to the SDK, so that a fail is one of the SDK.

A **fail** is a broken MUST. A **warn** is a broken SHOULD, or a broken MUST that no published text states. A
requirement counts once for each version of the protocol, with its heaviest verdict. Each fail was checked by
hand against the specification, and the note says what that states. Peers of the v2 draft are judged by the
revision that they implement.
"""
_UNCHECKED = "**This fail was not checked by hand yet.**"


@dataclass(frozen=True)
class Judged:
    """What came of one peer: a report, or the reason why there is none."""

    peer: Peer
    report: Report | None
    seconds: float = 0.0
    missing: str = ""


def write_page(judged: Sequence[Judged], notes: Mapping[tuple[str, str], str], path: Path) -> None:
    path.write_text("\n".join(_lines(judged, notes)) + "\n", encoding="utf-8")


def unchecked(judged: Sequence[Judged], notes: Mapping[tuple[str, str], str]) -> list[tuple[str, str]]:
    """Return the peers and requirements of fails that nobody has checked by hand."""
    return [
        (each.peer.name, verdict.requirement.id)
        for each in judged
        for verdict in _fails(each)
        if (each.peer.name, verdict.requirement.id) not in notes
    ]


def _lines(judged: Sequence[Judged], notes: Mapping[tuple[str, str], str]) -> Iterator[str]:
    yield _HEAD
    yield "| Peer | Judged as | ACP | Pass | Fail | Warn | Not applicable | Not tested |"
    yield "|---|---|---|---:|---:|---:|---:|---:|"
    for each in judged:
        yield _row(each)
    for each in judged:
        yield from _section(each, notes)


def _row(judged: Judged) -> str:
    peer, report = judged.peer, judged.report
    if report is None:
        return f"| {peer.name} | {peer.party} | not judged: {judged.missing} | | | | | |"
    counts = report.counts()
    cells = [str(counts[outcome]) for outcome in OUTCOMES]
    versions = " and ".join(map(str, report.versions))
    return f"| {peer.name} | {peer.party} | {versions} | {' | '.join(cells)} |"


def _section(judged: Judged, notes: Mapping[tuple[str, str], str]) -> Iterator[str]:
    peer, report = judged.peer, judged.report
    if report is None:
        return
    yield f"\n## {peer.name}\n"
    revision = f", revision {peer.revision} of the v2 draft" if 2 in report.versions else ""
    yield f"{peer.package}{revision}.\n"
    yield from _fence("sh", _command(peer))
    fails = _fails(judged)
    if not fails:
        yield "No fail."
    for verdict in fails:
        yield from _fail(verdict, notes.get((peer.name, verdict.requirement.id), _UNCHECKED))
    warned = {
        verdict.requirement.id: verdict.requirement.text
        for verdict in report.by_requirement().values()
        if verdict.outcome is Outcome.WARN
    }
    if warned:
        yield f"\nWarned about: {', '.join(warned)}."


def _command(peer: Peer) -> str:
    words = [*(f"{name}={value}" for name, value in peer.env.items()), f"antiphon check {peer.party}"]
    if peer.revision != PINNED:
        words.append(f"--revision {peer.revision}")
    words += [f"--prompt {shlex.quote(f'{name}={text}')}" for name, text in peer.prompts.items()]
    return " ".join([*words, f"-- {peer.shown}"])


def _fails(judged: Judged) -> list[Verdict]:
    if judged.report is None:
        return []
    return [each for each in judged.report.by_requirement().values() if each.outcome is Outcome.FAIL]


def _fail(verdict: Verdict, note: str) -> Iterator[str]:
    row = verdict.requirement
    yield f"\n### {row.id} in v{verdict.version}\n"
    yield f"{row.text}\n"
    yield f"{_sentence(_clean(verdict.evidence.expected))} (`{verdict.scenario}`)\n"
    yield from _fence("text", "\n".join(map(_frame, verdict.evidence.frames)))
    yield f"{note}"


def _frame(frame: RecordedFrame) -> str:
    arrow = frames.direction(frame)
    return f"{frames.time(frame):>9}  {arrow}  {_clean(frames.line(frame, limit=LONGEST))}"


def _fence(language: str, text: str) -> Iterator[str]:
    fence = "`" * max(3, 1 + max((len(found) for found in re.findall(r"`+", text)), default=0))
    yield f"{fence}{language}\n{text}\n{fence}\n"


def _clean(text: str) -> str:
    """Leave out the folders of this machine."""
    return _FOLDER.sub("/folder", text).replace(str(ROOT), "/antiphon").replace(str(Path.home()), "/home")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
