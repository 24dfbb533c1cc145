"""`horai`: the entry point. It turns every error into `error:` and `hint:` lines and an exit code, not a traceback."""

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
    "check": "Validate an application before deploying it.",
    "migrate": "Migrate a database to this version.",
    "db": "Inspect the database.",
    "capacity": "Calculate rates, storage and nodes for a load, and measure this machine.",
    "backup": "Back up the embedded database.",
    "restore": "Restore a backup of the embedded database.",
    "jobs": "Jobs: create, trigger, pause and delete jobs.",
    "instances": "Instances: the planned and past executions of jobs.",
    "source": "Event sources: create, move and cancel instances from a stream.",
    "entities": "Entities: import, list and remove the entities of refresh jobs.",
    "schedules": "Schedules: preview the fire times of a schedule.",
    "assets": "Assets: list and show data assets, and update them from outside.",
    "calendars": "Calendars: put, import, preview and delete working days and holidays that jobs share.",
    "forecast": "Forecast the number of fires, and suggest jitter for the peaks.",
    "workflows": "Workflows: run jobs in the order of a graph, for one fire time.",
    "queues": "Queues: set the priority and the limits of a queue, pause and resume it.",
    "dlq": "Dead letters: replay or discard instances that failed for good.",
    "backfills": "Backfills: run past slots again, or for the first time.",
    "reconcilers": "Reconcilers: compare a source with the instances, and create the missing ones.",
    "keys": "Keys: create, list and revoke the keys of the server.",
    "tenants": "Tenants: create, change, pause, export and delete tenants.",
    "apply": "Create or change jobs, workflows, queues and reconcilers to match files.",
    "definitions": "Write definitions as YAML, for `horai apply`.",
    "schema": "Print the JSON Schema of the definitions that `horai apply` reads, for editors. Needs no server.",
    "export": "Export the data of your tenant into a file, for `horai import` or for your own use.",
    "import": "Import queues, calendars, jobs and dead letters that another cluster has exported.",
    "groups": "Groups: the roles of users who sign in with an identity provider.",
    "login": "Store the address and the key of a server for the other commands.",
    "audit": "Audit log: list, export and verify the record of all writes.",
    "archive": "Archive: list, query and restore days of old history.",
    "secrets": "Secrets: rotate the secrets that sign calls; set and delete named secrets of headers.",
    "keyring": "Encryption keys: count, rotate and erase the data keys of a database.",
    "governor": "Governor: show its modes, set its thresholds, and force a mode.",
    "stuck": "Stuck work: list stuck runs, clogged queues and blocked workflow runs.",
    "incidents": "Incidents: list, show, open, note and close incidents of the cluster.",
    "recover": "Recover the cluster after an incident.",
    "drill": "Drills: let a node, the primary, the standby or a zone of a cluster fail, measure the recovery, and file the report.",
    "sinks": "Sinks: send the events of the tenant to webhooks, NATS, Kafka or the log.",
    "alerts": "Alerts: define rules and channels, acknowledge and silence alerts, and list what was sent.",
    "heartbeats": "Heartbeats: external jobs report, and an alert rule tells when one does not.",
    "freeze": "Hold low-priority instances, or refuse new backfills.",
    "unfreeze": "Release low-priority instances, or accept new backfills again.",
    "dispatch": "Dispatch: pause and resume all dispatch of the tenant, or of the platform.",
    "health": "Show the health of the scheduler.",
}
"""Help by command name, which is also the name of its module. A test holds it equal to the help of the module."""

SEEN_BY_ALL = (
    "warning: the command line shows a password to every user of this machine.\n"
    "hint: Give the URL in HORAI_DATABASE_URL, or in a file that HORAI_DATABASE_URL_FILE names."
)

app = typer.Typer(cls=LazyGroup, rich_markup_mode=None)


def _placeholder() -> None:
    """Stand in for a command until `LazyGroup` loads it."""


for _name, _about in COMMANDS.items():
    app.command(_name, help=_about)(_placeholder)


@app.callback(invoke_without_command=True)
def horai(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Horai makes things happen at their time, exactly as often as intended, and can say why.

    Flags of servers, connections and --json have an environment variable, HORAI_<FLAG>. Exit codes: 0 success, 1 the request failed, 2 bad usage.
    """
    if version:
        print(f"horai {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)


def run() -> None:
    """Run the console script."""
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
