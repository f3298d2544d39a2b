"""The command lines of `antiphon serve`, `acp`, `attach` and `link`."""

from __future__ import annotations

import click

from antiphon.cli.commands import completion
from antiphon.cli.commands.help import HelpCommand
from antiphon.cli.commands.options import (
    AgentCommand,
    access_options,
    busy_option,
    data_option,
    hub_options,
    name_option,
    read_agents,
    read_command,
    read_versions,
    runs,
    sessions_option,
)
from antiphon.cli.commands.store_options import hub_store_options

SERVE_GROUPS = {
    "Agents": (
        "agents", "add_agents", "version", "share", "idle", "start", "files", "busy", "turn_complete",
        "verbose",
    ),
    "Questions of agents": ("questions", "question_expiry", "unattended"),
    "Notifications": ("notify", "webhook", "push_services"),
    "Address and files": ("host", "port", "data", "ready_file", "no_browser"),
    "Access": (
        "tls_cert", "tls_key", "insecure_bind", "hosts", "origins", "public_url", "trusted_proxies",
    ),
    "Limits": (
        "max_frame", "max_connections", "max_connections_per_token", "max_sessions", "prompts_per_minute",
    ),
    "Several hubs on one store": (
        "store", "store_name", "nats_creds", "nats_ca", "replicas", "lease", "label", "movable",
    ),
}  # fmt: skip
"""The options of `antiphon serve` by what they are about. One that is in no group is listed last."""


class ServeCommand(AgentCommand):
    option_groups = SERVE_GROUPS


@click.command(cls=ServeCommand, short_help="Run a hub that serves agents to many clients.")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="[NAME=]CMD",
    callback=read_agents,
    help="An agent: a known name, a command, or NAME=CMD. May be repeated; clients choose.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port to listen on; 0 picks a free one. Default: 8642, or a free one if that is in use.",
)
@data_option
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False),
    metavar="F",
    help="Write this file once clients can connect: JSON with `url`, `acp` and `token`, for you only.",
)
@click.option("--turn-complete", is_flag=True, help="Send `turn_complete` to every v1 client.")
@click.option(
    "--unattended",
    type=click.Choice(["wait", "reject", "allow-read"]),
    default="wait",
    show_default=True,
    help="What the hub does with an agent's question if no client may answer it. allow-read approves tools "
    "that only read (read, search, think).",
)
@busy_option
@click.option("--share", is_flag=True, help="Run one process for all sessions of an agent, not one for each.")
@click.option(
    "--idle",
    type=click.FloatRange(min=0),
    default=900,
    show_default=True,
    metavar="SECONDS",
    help="Stop an agent that was idle for this long, if it can load its session again; 0 for never.",
)
@click.option(
    "--start",
    type=click.FloatRange(min=0, min_open=True),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How long an agent may take to start.",
)
@click.option(
    "--files",
    type=click.Choice(["editor", "hub", "none"]),
    default="editor",
    show_default=True,
    help="Whose files and terminals v1 agents use. editor: those of an attached editor that offers them, "
    "otherwise the hub's. hub: always the hub's. none: the agent uses its own.",
)
@click.option(
    "--notify",
    metavar="CMD",
    callback=read_command,
    help="Run this command when an agent asks or a turn has ended. It gets JSON on stdin, and ANTIPHON_TITLE "
    "and ANTIPHON_TEXT.",
)
@click.option(
    "--webhook",
    metavar="URL",
    help="POST every question and every end of a turn to this address, signed with ANTIPHON_WEBHOOK_SECRET "
    "or the file `webhook-secret` of the data folder.",
)
@click.option(
    "--push-service",
    "push_services",
    multiple=True,
    metavar="URL",
    help="A Web Push service on a private address that browsers may use. May be repeated.",
)
@click.option(
    "--acp-version",
    "version",
    multiple=True,
    metavar="[NAME=]N",
    callback=read_versions,
    help="Require ACP 1 or 2, from all agents or from one.",
)
@click.option(
    "--no-add-agents",
    "add_agents",
    flag_value=False,
    default=True,
    help="Let nobody add agents while the hub runs.",
)
@click.option("--no-browser", is_flag=True, help="Do not open the page in a browser.")
@hub_store_options
@access_options
@click.option("-v", "--verbose", is_flag=True, help="Also print what the agents write to stderr.")
@runs("hub.serve.run_serve")
def serve() -> None:
    """Run a hub: it serves agents to many clients at once.

    The hub stores its sessions. They outlive clients, connections and the hub itself. Everything after --
    is the AGENT: the name of a known agent, a command, or a ws:// address. Without one, the hub serves the
    built-in agent and every known agent that is installed; `antiphon agents` lists them.

    \b
    Examples:
      antiphon serve                                  every agent that is installed
      antiphon serve -- claude
      antiphon serve --agent claude --agent qwen
      antiphon serve --agent claude=claude-agent-acp --agent mine="./my-agent --acp"
      antiphon serve --port 0 --ready-file hub.json   any free port; hub.json has the address
      antiphon serve --store nats://a:4222,b:4222,c:4222 --replicas 3 -- claude

    Clients need the token in the file `token` of the data folder. Commands on this machine read it
    automatically. On SIGTERM the hub lets running turns end, then stops the agents.

    With --store, hubs on several machines keep their sessions on the same NATS servers. Tokens and the audit
    log stay in the data folder, and each hub needs a data folder of its own.
    """


@click.command(cls=AgentCommand, short_help="Connect an editor to the hub, over stdio.")
@click.option(
    "--session",
    metavar="ID",
    help="Give the editor this session when it asks for a new one.",
    shell_complete=completion.sessions,
)
@busy_option
@hub_options
@runs("acp.run_acp")
def acp() -> None:
    """Connect an editor to the hub: an ACP agent over stdin and stdout.

    Configure this command as a custom agent in an editor that speaks ACP. It finds the hub by its data
    folder, or by --hub and --token (ANTIPHON_HUB, ANTIPHON_TOKEN). If no hub runs, it starts one that serves
    AGENT.

    \b
    Examples:
      antiphon acp                        the hub's sessions in the editor
      antiphon acp -- claude              sessions of that agent
      antiphon acp --session sess_42      the editor's new session is sess_42
    """


@click.command(cls=HelpCommand, short_help="Follow a session of the hub in the terminal.")
@click.argument("session", required=False, shell_complete=completion.sessions)
@click.option(
    "--agent",
    metavar="NAME",
    help="Start a session with this agent of the hub.",
    shell_complete=completion.agents_of_hub,
)
@name_option
@hub_options
@runs("attach.run_attach")
def attach() -> None:
    """Follow a session of the hub in the terminal, together with its other clients.

    SESSION is an id or a title, the beginning of one, or "new". Without it, the session that was used last is
    followed, or a new one if there is none. Lines that you type are prompts, or answers to the agent's
    questions. Ctrl-C cancels your turn, or leaves if you have none; Ctrl-D leaves. The session continues
    without you.

    \b
    Examples:
      antiphon attach                        the session that was used last
      antiphon attach new --agent claude     a new session with one of the hub's agents
      antiphon attach 4f2a                   the session whose id begins with 4f2a
      echo "plan" | antiphon attach          sends a prompt, shows the turn and ends with it
    """


@click.command(cls=HelpCommand, short_help="Print a link that lets a browser into the hub.")
@click.option(
    "--role",
    type=click.Choice(["observer", "controller", "owner"]),
    default="owner",
    show_default=True,
    help="What the browser may do.",
)
@sessions_option
@click.option("--qr", is_flag=True, help="Also print the link as a QR code, for a phone.")
@hub_options
@runs("hub.links.run_link")
def link() -> None:
    """Print a link that lets a browser into the hub, once, within five minutes.

    The browser that opens it stays logged in for a week, with the role of the link: an owner may do
    everything, a controller may prompt and answer, an observer may watch. `antiphon token list` lists the
    browsers, and `antiphon token revoke` logs one out.

    \b
    Examples:
      antiphon link                                     for your own browser
      antiphon link --qr                                for your phone
      antiphon link --role observer --session sess_42   for another user, who may watch one session
    """
