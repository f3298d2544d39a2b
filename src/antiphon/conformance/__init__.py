"""The judge: does an agent, a client or a hub keep the promises of the protocol?

It shares no code with what it judges: only errors, jsonrpc, schema and transports.
"""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.conformance.client.suite import check_client
    from antiphon.conformance.hub.suite import check_hub
    from antiphon.conformance.judge import check, check_recording
    from antiphon.conformance.link import NotSeen
    from antiphon.conformance.options import Options
    from antiphon.conformance.prompts import Prompts, read_prompts
    from antiphon.conformance.recording import RecordedFrame, Recording, RecordingRefused, Role
    from antiphon.conformance.recordings import RecordingWriter, read_recording
    from antiphon.conformance.report.badge import to_badge
    from antiphon.conformance.report.expected_failures import (
        read_expected_failures,
        stale_entries,
        unexpected_failures,
    )
    from antiphon.conformance.report.explanation import explain, list_scenarios
    from antiphon.conformance.report.json_file import to_json
    from antiphon.conformance.report.junit import to_junit
    from antiphon.conformance.report.page import to_html
    from antiphon.conformance.report.terminal import to_terminal
    from antiphon.conformance.requirements import Requirement
    from antiphon.conformance.revisions import PINNED, REVISIONS
    from antiphon.conformance.runner import Progress
    from antiphon.conformance.scenario import Scenario
    from antiphon.conformance.suites import PARTIES, Suite, suite
    from antiphon.conformance.tap import end_like, run_tap
    from antiphon.conformance.verdicts import Evidence, Outcome, Report, Verdict

__all__ = [
    "PARTIES", "PINNED", "REVISIONS", "Evidence", "NotSeen", "Options", "Outcome", "Progress", "Prompts",
    "RecordedFrame", "Recording", "RecordingRefused", "RecordingWriter", "Report", "Requirement", "Role",
    "Scenario", "Suite", "Verdict", "check", "check_client", "check_hub", "check_recording", "end_like",
    "explain", "list_scenarios", "read_expected_failures", "read_prompts", "read_recording", "run_tap",
    "stale_entries", "suite", "to_badge", "to_html", "to_json", "to_junit", "to_terminal",
    "unexpected_failures",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "client.suite": ("check_client",),
    "hub.suite": ("check_hub",),
    "judge": ("check", "check_recording"),
    "link": ("NotSeen",),
    "options": ("Options",),
    "prompts": ("Prompts", "read_prompts"),
    "recording": ("RecordedFrame", "Recording", "RecordingRefused", "Role"),
    "recordings": ("RecordingWriter", "read_recording"),
    "report.badge": ("to_badge",),
    "report.expected_failures": ("read_expected_failures", "stale_entries", "unexpected_failures"),
    "report.explanation": ("explain", "list_scenarios"),
    "report.json_file": ("to_json",),
    "report.junit": ("to_junit",),
    "report.page": ("to_html",),
    "report.terminal": ("to_terminal",),
    "requirements": ("Requirement",),
    "revisions": ("PINNED", "REVISIONS"),
    "runner": ("Progress",),
    "scenario": ("Scenario",),
    "suites": ("PARTIES", "Suite", "suite"),
    "tap": ("end_like", "run_tap"),
    "verdicts": ("Evidence", "Outcome", "Report", "Verdict"),
})  # fmt: skip
