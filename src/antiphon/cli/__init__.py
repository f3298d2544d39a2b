"""The `antiphon` command: one file per command, each loaded when it is called."""

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="antiphon")
def main() -> None:
    """Antiphon: Agent Client Protocol sessions. One session, many voices."""


@main.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False),
    help="Keep sessions in this folder; without it they are gone with the process.",
)
def rehearse(data: str | None) -> None:
    """Run the built-in agent over stdin and stdout.

    It is offline and deterministic, and no language model: something to try a client with.
    """
    from antiphon.cli.rehearse import run_rehearsal

    run_rehearsal(data)
