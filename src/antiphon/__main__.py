"""`python -m antiphon`: the same as the `antiphon` command."""

from antiphon.cli import main

main(prog_name="antiphon")
