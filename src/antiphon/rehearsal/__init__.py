"""The built-in agent: offline and deterministic. It is not a language model, and says so."""

from antiphon.rehearsal.agent import make_agent

__all__ = ["make_agent"]
