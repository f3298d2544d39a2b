"""Keep the report of each peer in a file, to judge them one after the other and write the page later."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import msgspec

from antiphon.conformance import Evidence, Outcome, RecordedFrame, Report, Role, Verdict, to_json
from antiphon.conformance.recording import parse
from antiphon.conformance.requirements import requirements
from tools.verdicts.page import ROOT, Judged
from tools.verdicts.peers import Peer

FOLDER = ROOT / ".cache" / "verdicts"


def keep(judged: Judged) -> None:
    """Write the report of a peer, as `antiphon check --json` does, with the time it took."""
    assert judged.report is not None
    FOLDER.mkdir(parents=True, exist_ok=True)
    whole = msgspec.json.decode(to_json(judged.report, {}))
    text = msgspec.json.encode({**whole, "seconds": round(judged.seconds, 1)})
    _file(judged.peer).write_bytes(msgspec.json.format(text, indent=1))


def kept(peer: Peer) -> Judged:
    """Read the report of a peer that was judged before."""
    path = _file(peer)
    if not path.exists():
        return Judged(peer, None, missing="it was not judged here")
    whole: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    verdicts = tuple(_verdict(row) for row in whole["verdicts"])
    report = Report(whole["party"], whole["target"], verdicts, whole["revision"], tuple(whole["faults"]))
    return Judged(peer, report, seconds=whole["seconds"])


def _verdict(row: dict[str, Any]) -> Verdict:
    frames = tuple(_frame(index, frame) for index, frame in enumerate(row["evidence"]["frames"]))
    evidence = Evidence(row["evidence"]["expected"], frames)
    requirement = requirements()[row["requirement"]]
    return Verdict(requirement, Outcome(row["verdict"]), row["scenario"], row["version"], evidence)


def _frame(index: int, frame: dict[str, Any]) -> RecordedFrame:
    raw = base64.b64decode(frame["base64"]) if "base64" in frame else frame["line"].encode()
    sender = Role(frame["from"])
    return RecordedFrame(frame["at"], index, sender, raw, parse(raw), frame.get("link", ""))


def _file(peer: Peer) -> Path:
    return FOLDER / f"{re.sub(r'[^a-z0-9.]+', '-', peer.name.lower()).strip('-')}.json"
