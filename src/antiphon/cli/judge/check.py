"""`antiphon check agent|client|hub|recording`: judge a peer, write reports, and exit with what came of it."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from antiphon.cli.agents import resolve
from antiphon.cli.exit_codes import Failure
from antiphon.cli.judge.progress import make_progress
from antiphon.cli.judge.settings import Judged, Outputs, Settings
from antiphon.cli.output.streams import write_styled
from antiphon.cli.program import print_note
from antiphon.conformance import (
    PINNED,
    NotSeen,
    Options,
    Outcome,
    Progress,
    Prompts,
    RecordingRefused,
    Report,
    check,
    check_client,
    check_hub,
    check_recording,
    explain,
    list_scenarios,
    read_expected_failures,
    stale_entries,
    suite,
    to_badge,
    to_html,
    to_json,
    to_junit,
    to_terminal,
    unexpected_failures,
)
from antiphon.errors import AntiphonError
from antiphon.text_safety import safe_line

WIDEST = 120
STDOUT = "-"
DECIDED = (Outcome.PASS, Outcome.FAIL, Outcome.WARN)
Work = Callable[[Options, Progress], Awaitable[Report]]


def run_agent(
    *,
    agent: list[str],
    address: str | None,
    version: int | None,
    token: str,
    settings: Settings,
    outputs: Outputs,
) -> int:
    """Judge an agent: a command, or the server at an address."""

    async def work(options: Options, progress: Progress) -> Report:
        peer = resolve([address] if address else agent)
        return await check(peer, version=version, token=token, options=options, progress=progress)

    return _run("agent", [agent, address], work, settings, outputs)


def run_client(*, agent: list[str], version: int | None, settings: Settings, outputs: Outputs) -> int:
    """Judge a client: the command is in `agent`, as all words after `--` are."""

    async def work(options: Options, progress: Progress) -> Report:
        versions = () if version is None else (version,)
        return await check_client(agent, options, versions=versions, progress=progress)

    return _run("client", [agent], work, settings, outputs)


def run_hub(
    *,
    agent: list[str],
    address: str | None,
    version: int | None,
    token: str,
    other_token: str,
    settings: Settings,
    outputs: Outputs,
) -> int:
    """Judge a hub: a command (in `agent`, as all words after `--` are), or the hub at an address."""

    async def work(options: Options, progress: Progress) -> Report:
        versions = () if version is None else (version,)
        tokens = {"token": token, "other_token": other_token}
        return await check_hub(address or agent, options, versions=versions, progress=progress, **tokens)

    return _run("hub", [agent, address], work, settings, outputs)


def run_recording(*, file: str, revision: str | None, outputs: Outputs) -> int:
    """Judge both sides of a recorded conversation."""
    with _usage_errors():
        expected = _expected(outputs)
        report = check_recording(file, revision=revision or PINNED)
    return _finish(report, outputs, expected)


def _run(party: str, given: Sequence[Any], work: Work, settings: Settings, outputs: Outputs) -> int:
    """Judge a peer with the suite of its party, or print what `--list` or `--explain` asks for.

    `given` has the ways in which the command line can name the peer.
    """
    with _usage_errors():
        if settings.explain is not None:
            _print(explain(settings.explain, width=_width()))
            return Judged.KEPT
        if settings.list:
            _print(list_scenarios(party, settings.only))
            return Judged.KEPT
        if sum(map(bool, given)) != 1:
            address = ", or its address" if len(given) > 1 else ""
            raise ValueError(f"name one {party} to judge: its command after --{address}")
        suite(party).select(settings.only)
        expected, options = _expected(outputs), _options(settings)
    progress = make_progress()

    async def judge() -> Report:
        try:
            return await work(options, progress)
        finally:
            progress.finish()

    report = _judged(judge, party)
    return report if isinstance(report, Judged) else _finish(report, outputs, expected)


def _options(settings: Settings) -> Options:
    return Options(
        revision=settings.revision or PINNED,
        prompts=Prompts(**settings.prompts),
        only=settings.only,
        timeout=settings.timeout,
        deadline=settings.deadline,
        seed=settings.seed,
        jobs=settings.jobs,
    )


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Report what is wrong with arguments and files as click does."""
    try:
        yield
    except OSError as error:
        if error.filename is None:  # stdout is closed: click ends quietly
            raise
        raise click.UsageError(f"cannot use {error.filename}: {error.strerror}") from None
    except (ValueError, RecordingRefused) as error:
        raise click.UsageError(str(error)) from None


def _expected(outputs: Outputs) -> Mapping[str, str]:
    if outputs.expected_failures is None:
        return {}
    text = Path(outputs.expected_failures).read_text(encoding="utf-8")
    try:
        return read_expected_failures(text)
    except ValueError as error:
        raise ValueError(f"{outputs.expected_failures}: {error}") from None


# --- the end -------------------------------------------------------------------------------------------


def _judged(judge: Callable[[], Coroutine[Any, Any, Report]], party: str) -> Report | Judged:
    """Return the report, or the exit code if there is none."""
    logging.getLogger("antiphon").addHandler(logging.NullHandler())
    logging.getLogger("antiphon").propagate = False
    try:
        return asyncio.run(judge())
    except KeyboardInterrupt:
        return Judged.CANCELLED
    except (Failure, AntiphonError, NotSeen, OSError) as error:
        print_note(safe_line(f"cannot judge the {party}: {error}", limit=600))
        return Judged.UNREACHABLE
    except Exception:
        traceback.print_exc()
        print_note("the judge failed: this is a defect of Antiphon")
        return Judged.FAULT


def _finish(report: Report, outputs: Outputs, expected: Mapping[str, str]) -> Judged:
    """Print and write the report, and return the exit code."""
    _print(
        to_terminal(report, expected=expected, width=_width()),
        aside=STDOUT in (outputs.json, outputs.junit, outputs.html, outputs.badge),
    )
    with _usage_errors():
        _write(outputs.json, lambda: to_json(report, expected))
        _write(outputs.junit, lambda: to_junit(report, expected).encode())
        _write(outputs.html, lambda: "".join(to_html(report, expected)).encode())
        _write(outputs.badge, lambda: to_badge(report).encode())
    return exit_code(report, expected)


def exit_code(report: Report, expected: Mapping[str, str]) -> Judged:
    """Return the exit code for a report."""
    if report.faults:
        return Judged.FAULT
    if unexpected_failures(report, expected) or stale_entries(report, expected):
        return Judged.BROKEN
    if not any(verdict.outcome in DECIDED for verdict in report.verdicts):
        return Judged.UNREACHABLE
    return Judged.KEPT


def _write(path: str | None, content: Callable[[], bytes]) -> None:
    if path == STDOUT:
        sys.stdout.buffer.write(content())
        sys.stdout.buffer.flush()
    elif path is not None:
        Path(path).write_bytes(content())


def _print(lines: Iterable[str], *, aside: bool = False) -> None:
    """Print lines with styles: on stdout, or aside on stderr."""
    text = "".join(f"{line}\n" for line in lines)
    write_styled(
        sys.stderr if aside else sys.stdout, click.unstyle(text) if os.environ.get("NO_COLOR") else text
    )


def _width() -> int:
    return min(shutil.get_terminal_size((100, 50)).columns, WIDEST)
