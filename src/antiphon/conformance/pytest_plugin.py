"""The pytest plugin: every requirement that the judge decides about an agent is one test.

    pytest --acp-agent "my-agent --acp"

Without the option it adds nothing and imports nothing of the judge.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from antiphon.conformance.verdicts import Report, Verdict

MARK = "acp"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("acp", "Agent Client Protocol (Antiphon)")
    group.addoption("--acp-agent", metavar="CMD", help="Judge this agent: a command line or an address.")
    group.addoption("--acp-version", type=int, choices=(1, 2), help="Judge this version of ACP only.")
    group.addoption("--acp-token", default="", metavar="T", help="The token for an address.")
    group.addoption(
        "--acp-prompt",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="What to ask of the agent, e.g. 'tool=/read README.md'. May be repeated.",
    )
    group.addoption(
        "--acp-timeout", type=float, default=30.0, metavar="S", help="Seconds for a missing frame."
    )
    group.addoption(
        "--acp-expected-failures", metavar="FILE", help="Requirements that may fail: one id per line."
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}: a requirement of the Agent Client Protocol")
    if config.getoption("acp_agent"):
        config.pluginmanager.register(_Judge(config), "antiphon-judge")


@pytest.fixture(scope="session")
def acp_report(pytestconfig: pytest.Config) -> Report:
    """The verdicts about the agent of `--acp-agent`: an `antiphon.conformance.Report`."""
    judge = pytestconfig.pluginmanager.get_plugin("antiphon-judge")
    if not isinstance(judge, _Judge):
        pytest.skip("--acp-agent is not given")
    return judge.report()


class _Judge:
    """Judges the agent once, when the first requirement is run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._prompts = self._read_prompts()
        self._report: Report | None = None
        self._failure: Exception | None = None
        self._only: tuple[str, ...] = ()
        self.expected = self._read_expected()

    @pytest.hookimpl(tryfirst=True)  # before -k and -m select
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        found = list(Requirements.from_parent(session, name=MARK, nodeid=MARK, judge=self).collect())
        items += found
        report = pytest.CollectReport(MARK, "passed", None, [*found])
        self._config.hook.pytest_collectreport(report=report)  # so that they are counted

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Run only the scenarios that the selected requirements need."""
        from antiphon.conformance.suites import suite

        ids = {item.requirement for item in session.items if isinstance(item, RequirementItem)}
        everything = {id for version in self.versions for id in suite("agent").requirements(version)}
        if ids != everything and not self._uses_fixture(session):
            self._only = tuple(sorted(ids))

    @property
    def versions(self) -> tuple[int, ...]:
        version = self._config.getoption("acp_version")
        return (1, 2) if version is None else (version,)

    def report(self) -> Report:
        """Judge the agent, the first time; raise again what was raised then."""
        if self._failure is not None:
            raise self._failure
        if self._report is None:
            try:
                self._report = asyncio.run(self._judge())
            except Exception as failure:
                self._failure = failure
                raise
        return self._report

    def stale(self) -> list[str]:
        """Return the expected failures that the agent does not show any more."""
        from antiphon.conformance import stale_entries

        return stale_entries(self.report(), self.expected)

    async def _judge(self) -> Report:
        from antiphon.conformance import Options, Prompts, check

        given = self._config.getoption
        agent = given("acp_agent")
        return await check(
            agent if "://" in agent.split(" ")[0] else shlex.split(agent),
            version=given("acp_version"),
            token=given("acp_token"),
            options=Options(prompts=Prompts(**self._prompts), timeout=given("acp_timeout"), only=self._only),
        )

    def _read_prompts(self) -> dict[str, str]:
        given = self._config.getoption("acp_prompt")
        if not given:
            return {}
        from antiphon.conformance import read_prompts

        try:
            return read_prompts(given)
        except ValueError as error:
            raise pytest.UsageError(f"--acp-prompt {error}") from None

    def _read_expected(self) -> dict[str, str]:
        file = self._config.getoption("acp_expected_failures")
        if file is None:
            return {}
        from antiphon.conformance import read_expected_failures

        try:
            return read_expected_failures(Path(file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise pytest.UsageError(f"--acp-expected-failures {file}: {error}") from None

    @staticmethod
    def _uses_fixture(session: pytest.Session) -> bool:
        return any("acp_report" in getattr(item, "fixturenames", ()) for item in session.items)


class Requirements(pytest.Collector):
    """All requirements that the judge decides about agents."""

    def __init__(self, *, judge: _Judge, **given: Any) -> None:
        super().__init__(**given)
        self.judge = judge
        self.add_marker(MARK)

    def collect(self) -> Iterator[pytest.Item]:
        from antiphon.conformance.suites import suite

        for version in self.judge.versions:
            for id in suite("agent").requirements(version):
                yield RequirementItem.from_parent(
                    self, name=f"v{version}::{id}", requirement=id, version=version
                )


class RequirementFailed(Exception):
    """A requirement is broken. The text has the evidence."""


class RequirementItem(pytest.Item):
    """One requirement in one version."""

    def __init__(self, *, requirement: str, version: int, **given: Any) -> None:
        super().__init__(**given)
        self.requirement = requirement
        self.version = version

    def runtest(self) -> None:
        parent = self.parent
        assert isinstance(parent, Requirements)
        report = parent.judge.report()
        verdict = report.by_requirement().get((self.requirement, self.version))
        if verdict is None:
            pytest.skip(f"the agent does not speak version {self.version}")
        self._decide(verdict, parent.judge.expected)
        if self.requirement in parent.judge.stale():
            raise RequirementFailed(f"{self.requirement} is listed as an expected failure, and it is kept")

    def _decide(self, verdict: Verdict, expected: dict[str, str]) -> None:
        """Pass, skip what decides nothing, xfail a warning or an expected failure, and fail otherwise."""
        from antiphon.conformance.report.frames import proof
        from antiphon.conformance.verdicts import Outcome

        if verdict.outcome in (Outcome.NOT_APPLICABLE, Outcome.NOT_TESTED):
            pytest.skip(f"{verdict.outcome}: {verdict.evidence.expected}")
        if verdict.outcome is Outcome.WARN:
            pytest.xfail(f"SHOULD: {verdict.evidence.expected}")
        if verdict.outcome is Outcome.FAIL:
            if self.requirement in expected:
                pytest.xfail(expected[self.requirement] or "an expected failure")
            raise RequirementFailed(f"{verdict.requirement.text}\n\n{proof(verdict)}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, RequirementFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        return "acp", None, f"ACP {self.version}: {self.requirement}"
