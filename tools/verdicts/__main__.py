"""Judge every peer and write docs/verdicts.md, or judge some of them once or several times.

python -m tools.verdicts                              all, and write the page
python -m tools.verdicts --peer qwen-code             one, and print its report
python -m tools.verdicts --peer "Antiphon's agent" --repeat 10 [--load]
                                                      ten times: are the verdicts the same?
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import time
from collections.abc import Sequence

import click
from tests.peers.install import PeerUnavailable

from antiphon.conformance import NotSeen, Report, to_terminal
from antiphon.errors import AntiphonError
from tools.verdicts.judging import TIMEOUT, judge, own_folder
from tools.verdicts.keeping import keep, kept
from tools.verdicts.notes import read_notes
from tools.verdicts.page import ROOT, Judged, unchecked, write_page
from tools.verdicts.peers import ALL, Peer
from tools.verdicts.progress import Timed
from tools.verdicts.repeating import BUSY, busy_processors, differences, verdicts_of

PAGE = ROOT / "docs" / "verdicts.md"


def judge_once(peer: Peer, arguments: argparse.Namespace) -> Judged:
    began = time.monotonic()
    try:
        with own_folder() as folder:
            progress = Timed(sys.stderr)
            work = judge(
                peer, folder, only=tuple(arguments.only), timeout=arguments.timeout, progress=progress
            )
            report = asyncio.run(work)
    except (PeerUnavailable, NotSeen, AntiphonError) as reason:
        return Judged(peer, None, missing=str(reason))
    judged = Judged(peer, report, seconds=time.monotonic() - began)
    if not arguments.only:
        keep(judged)
    return judged


def told(judged: Judged) -> str:
    if judged.report is None:
        return f"{judged.peer.name}: not judged: {judged.missing}"
    counts = ", ".join(f"{count} {outcome}" for outcome, count in judged.report.counts().items())
    return f"{judged.peer.name}: {counts} ({judged.seconds:.0f} s)"


def judge_all(arguments: argparse.Namespace) -> int:
    judged = []
    for peer in ALL:
        judged.append(judge_once(peer, arguments))
        print(told(judged[-1]), flush=True)
    return write(judged)


def write(judged: Sequence[Judged]) -> int:
    """Write the page. Return 1 for a fail of ours, or one that nobody has checked."""
    notes = read_notes()
    write_page(judged, notes, PAGE)
    print(f"wrote {PAGE.relative_to(ROOT)}")
    wrong = [f"{name} fails {id}: not checked" for name, id in unchecked(judged, notes)]
    wrong += [f"{each.peer.name} is ours and fails" for each in judged if _fails(each) and each.peer.own]
    wrong += [f"the judge failed: {fault}" for each in judged if each.report for fault in each.report.faults]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def _fails(judged: Judged) -> bool:
    return judged.report is not None and bool(judged.report.failures)


def print_reports(peers: Sequence[Peer], arguments: argparse.Namespace) -> int:
    width = shutil.get_terminal_size((110, 50)).columns
    for peer in peers:
        judged = judge_once(peer, arguments)
        if judged.report is not None:
            text = "\n".join(to_terminal(judged.report, expected={}, width=width))
            print(text if sys.stdout.isatty() else click.unstyle(text))
        print(told(judged), flush=True)
    return 0


def repeat(peers: Sequence[Peer], arguments: argparse.Namespace) -> int:
    """Judge each peer several times. Return 1 if the verdicts differ."""
    different = 0
    for peer in peers:
        reports: list[Report] = []
        with busy_processors(BUSY if arguments.load else 0):
            for number in range(arguments.repeat):
                judged = judge_once(peer, arguments)
                print(f"{number + 1}: {told(judged)}", flush=True)
                if judged.report is None:
                    return 1
                reports.append(judged.report)
        found = differences([verdicts_of(report) for report in reports])
        for (scenario, id, version), outcomes in found.items():
            seen = ", ".join(f"{outcome} {count}x" for outcome, count in outcomes.items())
            print(f"  {id} in v{version}, {scenario}: {seen}")
        print(f"{peer.name}: the verdicts of {len(reports)} runs {'differ' if found else 'agree'}")
        different += bool(found)
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.verdicts", description=__doc__.splitlines()[0])
    parser.add_argument("--peer", action="append", default=[], help="judge this one; may be repeated")
    parser.add_argument("--only", action="append", default=[], help="as in `antiphon check`")
    parser.add_argument("--timeout", type=float, default=TIMEOUT)
    parser.add_argument("--repeat", type=int, default=0, metavar="N")
    parser.add_argument("--load", action="store_true", help="with --repeat: keep the processors busy")
    parser.add_argument("--page", action="store_true", help="judge nobody, write the page from kept reports")
    arguments = parser.parse_args()
    unknown = set(arguments.peer) - {peer.name for peer in ALL}
    if unknown:
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(peer.name for peer in ALL)}")
    peers = [peer for peer in ALL if peer.name in arguments.peer] or [peer for peer in ALL if peer.own]
    if arguments.page:
        return write([kept(peer) for peer in ALL])
    if arguments.repeat:
        return repeat(peers, arguments)
    return print_reports(peers, arguments) if arguments.peer else judge_all(arguments)


if __name__ == "__main__":
    sys.exit(main())
