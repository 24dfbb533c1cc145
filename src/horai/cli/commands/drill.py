"""`horai drill`: node, primary, standby, zone, file, list, show."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from horai.cli.client import client_of, path_of
from horai.cli.errors import BadUsage, CommandFailed, refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag, setting, words
from horai.cli.lazy import new_app
from horai.cli.show import cell, console, show_answer, show_list, table
from horai.cli.views import Document, instant

app = new_app(
    "Drills: let a node, the primary, the standby or a zone of a cluster fail, measure the recovery, and file the report."
)

Rate = Annotated[int, flag("--rate", about="Instances that clients create per second.", limits=(1, 10_000))]
Calm = Annotated[
    str, flag("--calm", about="Time of the load before the failure, and after the recovery.", metavar="DURATION")
]
Lease = Annotated[str, flag("--lease-ttl", about="Lease of the nodes that the drill starts.", metavar="DURATION")]
MaxRto = Annotated[str, flag("--max-rto", about="Promised recovery time.", metavar="DURATION")]
Directory = Annotated[Path, flag("--directory", about="Directory of the reports.", metavar="DIR")]
Keep = Annotated[
    int | None, flag("--keep", about="Newest reports of this kind to keep; older ones are removed.", limits=(1, 1_000))
]
ReportAsJson = Annotated[bool, setting("--json", about="Print the report as JSON.")]
Unavailable = Annotated[
    list[str] | None,
    flag("--patroni", about="Refused: only `drill primary` works on a cluster that exists.", metavar="URL"),
]

COLUMNS = ("ID", "FAILED", "KIND", "CLUSTER", "RTO", "RPO", "KEPT")
REPORTS = Path("drills")
LEASE = "8s"
FAILURES = {
    "node": ("Kill one of two nodes of a new cluster under load, and measure the recovery.", "PostgreSQL"),
    "standby": (
        "Kill the standby that commits wait for under load, let it return, and measure the recovery.",
        "both servers",
    ),
    "zone": (
        "Kill the primary and one of two nodes of a new cluster under load, as the loss of their zone does, and measure the recovery.",
        "both servers",
    ),
}
"""The failure of each drill that always starts its own cluster, and the database that it starts."""
REFUSED = {
    "node": "No API stops a node of an existing cluster: stop one with your service manager, and watch `horai health`.",
    "standby": "Patroni has no request that stops a standby: stop one with your service manager, and watch `horai health`.",
    "zone": "No API stops the machines of a zone: stop them with your provider, and watch `horai health`.",
}
USE_PRIMARY = (
    "On an existing cluster, run `horai drill primary --patroni URL`; without --patroni the drill starts a cluster."
)


def _add(kind: str) -> None:
    """Add the command of a drill that always starts its own cluster."""

    def drill(
        rate: Rate = 100,
        calm: Calm = "5s",
        lease_ttl: Lease = LEASE,
        max_rto: MaxRto = "15s",
        directory: Directory = REPORTS,
        keep: Keep = None,
        patroni: Unavailable = None,
        as_json: ReportAsJson = False,
    ) -> None:
        from horai.cli.drills.run import DrillFlags, drill_new  # noqa: PLC0415

        if patroni:
            raise BadUsage(
                f"A drill of the {kind} is not available on an existing cluster. {REFUSED[kind]}", USE_PRIMARY
            )
        drill_new(kind, DrillFlags(rate, calm, lease_ttl, max_rto, "0s", directory, keep, as_json))

    failure, database = FAILURES[kind]
    drill.__doc__ = (
        f"{failure}\n\nStarts {database} and two nodes in a temporary directory, and removes them at the end. "
        f"Writes DATE-{kind}.md and .json. Exits with 1 if a promise was broken."
    )
    app.command(kind)(drill)


_add("node")


@app.command()
def primary(
    rate: Rate = 100,
    calm: Calm = "5s",
    lease_ttl: Lease = LEASE,
    max_rto: MaxRto = "15s",
    asynchronous: Annotated[
        bool, flag("--asynchronous", about="Commits do not wait for the standby: work may be lost up to --max-rpo.")
    ] = False,
    max_rpo: Annotated[
        str, flag("--max-rpo", about="Promised recovery point without synchronous replication.", metavar="DURATION")
    ] = "1m",
    patroni: Annotated[
        list[str] | None,
        flag("--patroni", about="Use an existing cluster: REST API of a Patroni member; repeatable.", metavar="URL"),
    ] = None,
    kind: Annotated[
        str | None, flag("--kind", about="With --patroni: switchover (default) or failover.", metavar="KIND")
    ] = None,
    confirm: Annotated[
        str | None,
        flag("--confirm", about="With --patroni: the name of the cluster, as Patroni has it.", metavar="NAME"),
    ] = None,
    listen: Annotated[
        str | None,
        flag(
            "--listen", about="With --patroni: address of this machine that the nodes call (127.0.0.1).", metavar="HOST"
        ),
    ] = None,
    server: Annotated[
        list[str] | None,
        setting("--server", about="With --patroni: address of a node of the cluster; repeatable.", metavar="URL"),
    ] = None,
    api_key: ApiKey = None,
    directory: Directory = REPORTS,
    keep: Keep = None,
    as_json: ReportAsJson = False,
) -> None:
    """Kill the primary of a new pair of PostgreSQL servers under load, promote its standby, and measure the recovery.

    Starts both servers and two nodes in a temporary directory, and removes them at the end. With --patroni, it starts nothing: it moves the lead of an existing cluster while marker instances of a job of its own run, after it has checked the cluster and the confirmation. Writes DATE-primary.md and .json. Exits with 1 if a promise was broken.
    """
    from horai.cli.drills.run import DrillFlags, ExistingFlags, drill_existing, drill_new  # noqa: PLC0415

    if patroni:
        _refuse("an existing cluster has its own", asynchronous=asynchronous or None, lease_ttl=_changed(lease_ttl))
        given = ExistingFlags(words(patroni), words(server) or [DEFAULT_SERVER], api_key, kind, confirm, listen)
        drill_existing(given, DrillFlags(rate, calm, lease_ttl, max_rto, max_rpo, directory, keep, as_json))
        return
    _refuse("only with --patroni: the drill starts a cluster of its own", kind=kind, confirm=confirm, listen=listen)
    point = max_rpo if asynchronous else "0s"
    flags = DrillFlags(rate, calm, lease_ttl, max_rto, point, directory, keep, as_json)
    drill_new("primary", flags, asynchronous=asynchronous)


def _changed(lease_ttl: str) -> str | None:
    return None if lease_ttl == LEASE else lease_ttl


def _refuse(reason: str, **given: object) -> None:
    """Raise the parser's error if one of these flags was given."""
    for name, value in given.items():
        if value is not None:
            refuse_flag(f"--{name.replace('_', '-')}", reason)


_add("standby")
_add("zone")


@app.command("file")
def file_reports(
    reports: Annotated[
        list[Path], typer.Argument(help="Reports that drills wrote: DATE-KIND.json.", metavar="REPORT…")
    ],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """File reports of drills with a cluster, where the console shows them. A report that is filed already stays as it is."""
    client = client_of(server, api_key)
    read = [(path, _report(path)) for path in reports]
    for path, report in sorted(read, key=lambda each: str(each[1].get("failedAt"))):
        try:
            answer = client.call("POST", path_of("drills"), report)
        except CommandFailed as error:
            raise CommandFailed(f"{path}: {error.detail}", error.hint, error.also, error.problem) from error
        show_answer(answer, as_json, partial(_say_filed, path))


def _say_filed(path: Path, filed: Document) -> None:
    console().print(cell(f"{path} is filed as the report {filed['id']}."))


def _report(path: Path) -> Document:
    try:
        found: Document | list[Any] = json.loads(path.read_bytes())
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise BadUsage(f"{path} is not JSON.", "Give the DATE-KIND.json beside the page of the report.") from error
    if not isinstance(found, Mapping):
        raise BadUsage(f"{path} is not a report of a drill.", "Give the DATE-KIND.json that `horai drill` has written.")
    return found


@app.command("list")
def list_reports(
    kind: Annotated[str | None, flag("--kind", about="Only of node, primary, standby or zone.", metavar="KIND")] = None,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the reports that are filed with a cluster, the newest filed first."""
    answer = client_of(server, api_key).page(path_of("drills"), {"kind": kind, "limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def show(
    drill: Annotated[str, typer.Argument(help="The id of a report.")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show a report that is filed with a cluster: its promises, figures and steps."""
    show_answer(client_of(server, api_key).call("GET", path_of("drills", drill)), as_json, _draw)


def _row(drill: Document) -> tuple[str, ...]:
    return (
        drill["id"],
        instant(drill["failedAt"]),
        drill["kind"],
        drill["cluster"] or "",
        f"{drill['rtoSeconds']:.2f} s",
        f"{drill['rpoSeconds']:.2f} s",
        "yes" if drill["kept"] else "NO",
    )


def _draw(drill: Document) -> None:
    report = drill["report"]
    shown = console()
    promised = [(p["promise"], p["limit"], p["measured"], "yes" if p["kept"] else "NO") for p in report["promises"]]
    shown.print(table(COLUMNS, [_row(drill)]))
    shown.print(table(("PROMISE", "LIMIT", "MEASURED", "KEPT"), promised))
    shown.print(table(("SECOND", "STEP"), [(f"{step['second']:.2f}", step["step"]) for step in report["steps"]]))
