"""`horai`: the entry point. Subcommands import what they need when they run, so that `--help` is quick."""

import sys


def run() -> None:
    """The console script."""
    from horai.cli.up import up  # noqa: PLC0415

    up()
    sys.exit(0)
