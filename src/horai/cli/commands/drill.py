"""`horai drill`: node, primary, standby, zone."""

from pathlib import Path
from typing import Annotated

from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, flag, setting, words
from horai.cli.lazy import new_app

app = new_app("Drills: let a node, the primary, the standby or a zone of a cluster fail, and measure the recovery.")

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
AsJson = Annotated[bool, setting("--json", about="Print the report as JSON.")]
Unavailable = Annotated[
    list[str] | None,
    flag("--patroni", about="Refused: only `drill primary` works on a cluster that exists.", metavar="URL"),
]

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
        as_json: AsJson = False,
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
    as_json: AsJson = False,
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
