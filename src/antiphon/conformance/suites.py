"""The suites: which scenarios and rules judge each party, to list and to explain them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from msgspec import Struct

from antiphon.conformance.recording import Role
from antiphon.conformance.requirements import requirements
from antiphon.conformance.rules.rule import Rule
from antiphon.conformance.runner import TRAFFIC, selected
from antiphon.conformance.scenario import Scenario

PARTIES = ("agent", "client", "hub")
"""The parties that can be judged."""


class Suite(Struct, frozen=True):
    """Everything that judges one party."""

    party: str
    scenarios: tuple[Scenario, ...]
    rules: tuple[Rule, ...]

    def select(self, only: Sequence[str]) -> list[Scenario]:
        """Return the scenarios that `only` names, or all. Raises `ValueError` for an unknown word."""
        return selected(self.scenarios, only, self.rules)

    def requirements(self, version: int) -> list[str]:
        """Return the ids of the requirements that the suite decides in a version."""
        ids = [id for each in self.scenarios if version in each.versions for id in each.declared(version)]
        ids += [id for rule in self.rules if version in rule.versions for id in rule.requirements]
        return [id for id in dict.fromkeys(ids) if version in requirements()[id].protocol_versions]

    def deciding(self, requirement: str) -> list[str]:
        """Return the names of the scenarios that decide a requirement; `traffic` if rules decide it."""
        names = [each.name for each in self.scenarios if requirement in each.requirements]
        return names + ([TRAFFIC] if any(requirement in rule.requirements for rule in self.rules) else [])


def suite(party: str) -> Suite:
    """Return the suite for a party: agent, client or hub."""
    module = import_module(f"antiphon.conformance.{party}.suite")
    role = Role.CLIENT if party == "client" else Role.AGENT
    rules = tuple(rule for rule in module.RULES if role in rule.parties)
    return Suite(party, tuple(module.SCENARIOS), rules)
