"""`horai`: the entry point. Here every error becomes `error:` and `hint:` lines and an exit code, never a traceback."""

import os
import sys
from typing import Annotated

import typer

from horai import __version__
from horai.cli.arguments import hide_passwords
from horai.cli.errors import CommandFailed, as_failure, json_of, lines_of
from horai.cli.lazy import LazyGroup

COMMANDS = {
    "up": "Run everything in one process.",
    "node": "Run one node of a cluster.",
    "worker": "Run the functions of an application.",
    "check": "Look an application over before it is deployed.",
    "migrate": "Bring a database to this version.",
    "db": "Look at the database itself.",
    "jobs": "Jobs: what to do, and when.",
    "instances": "Instances: the planned and past executions of jobs.",
    "source": "Event sources: changes of mind that arrive by themselves.",
    "entities": "Entities: what refresh jobs come back to, again and again.",
    "schedules": "Schedules: when a job would fire.",
    "forecast": "Show how many jobs will fire when, and what would level the peaks.",
    "workflows": "Workflows: jobs in the order of a graph, for one fire time.",
    "queues": "Queues: priority, limits, pace and pause of what is in them.",
    "dlq": "Dead letters: what was given up, to be replayed or discarded.",
    "backfills": "Backfills: slots of the past that are run again, or for the first time.",
    "reconcilers": "Reconcilers: what creates the instances that the business misses.",
    "secrets": "Signing secrets: show and rotate the secret that signs the calls.",
    "health": "Show how the scheduler is doing.",
}
"""By name, which is also the module's; its help is the module's own, and a test holds them equal."""

SEEN_BY_ALL = (
    "warning: the command line shows a password to every user of this machine.\n"
    "hint: Give the URL by HORAI_DATABASE_URL, or by a file that HORAI_DATABASE_URL_FILE names."
)

app = typer.Typer(cls=LazyGroup, rich_markup_mode=None)


def _placeholder() -> None:
    """`LazyGroup` puts the real command in its place."""


for _name, _about in COMMANDS.items():
    app.command(_name, help=_about)(_placeholder)


@app.callback(invoke_without_command=True)
def horai(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Horai makes things happen at their time, exactly as often as intended, and can say why.

    Flags of servers, connections and --json have an environment variable, HORAI_<FLAG>. Exit codes: 0 done, 1 the request failed, 2 bad usage.
    """
    if version:
        print(f"horai {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)


def run() -> None:
    """The console script."""
    if not hide_passwords():
        print(SEEN_BY_ALL, file=sys.stderr)
    sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        code = app(prog_name="horai", standalone_mode=False)
    except typer.Abort:
        return _told(CommandFailed("Stopped; nothing was done."))
    except Exception as error:
        if os.environ.get("HORAI_DEBUG"):
            raise
        return _told(as_failure(error))
    return code if isinstance(code, int) else 0


def _told(failure: CommandFailed) -> int:
    """Print the failure to stderr, as JSON if the command was asked for JSON; return the exit code."""
    lines = [json_of(failure)] if _wants_json() else lines_of(failure)
    print(*lines, sep="\n", file=sys.stderr)
    return failure.exit_code


def _wants_json() -> bool:
    return "--json" in sys.argv[1:] or os.environ.get("HORAI_JSON", "").lower() in {"1", "true", "t", "yes", "y", "on"}
