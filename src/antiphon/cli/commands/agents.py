"""The command lines of `antiphon agents`."""

from __future__ import annotations

import click

from antiphon.cli.commands.help import CommandGroup
from antiphon.cli.commands.options import AgentCommand, hub_options, runs


class AgentsGroup(CommandGroup):
    """Lists the agents if no command of the group is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = any(word in self.commands for word in args)
        asks = any(word in ctx.help_option_names for word in args)
        if not (named or asks or ctx.resilient_parsing):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=AgentsGroup, short_help="List the agents, or add one to the running hub.")
def agents() -> None:
    """List the agents, or add one to the running hub.

    \b
    Examples:
      antiphon agents                             all agents, with what to do where one cannot work
      antiphon agents add claude                  a known agent
      antiphon agents add mine -- ./my-agent      your own
    """


@agents.command("list", short_help="List the agents of the hub, and the known ones.")
@click.option("--json", is_flag=True, help="Print one JSON object per agent and line.")
@hub_options
@runs("agent_list.run_list")
def list_agents() -> None:
    """List the agents of the running hub, and the known ones that it does not serve.

    The status is `ready` (the hub has started it), `installed` (not started yet), `needs login`, `missing`
    (not installed) or `failed` (it did not start). Without a hub, the known agents are listed.

    \b
    Examples:
      antiphon agents
      antiphon agents list --json
    """


@agents.command("add", cls=AgentCommand, short_help="Add an agent to the running hub.")
@click.argument("name")
@hub_options
@runs("agent_list.run_add")
def add() -> None:
    """Add an agent to the running hub: a known one by its NAME, or the AGENT after --.

    It stays until the hub ends. Its sessions are kept; they continue once a hub serves an agent of this name
    again. A command needs the hub's own token, because the hub runs it.

    \b
    Examples:
      antiphon agents add claude
      antiphon agents add mine -- ./my-agent --acp
      antiphon agents add far -- wss://agents.example/acp
    """
