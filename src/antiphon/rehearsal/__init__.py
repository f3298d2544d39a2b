"""The built-in agent: offline, deterministic, and honest about being no language model."""

from antiphon.rehearsal.agent import make_agent

__all__ = ["make_agent"]
