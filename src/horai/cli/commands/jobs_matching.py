"""Bulk trigger and deletion of jobs on the command line."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from horai.cli.bulk_results import COUNTS, print_result
from horai.cli.client import RestClient, path_of
from horai.cli.errors import BadUsage
from horai.cli.flags import flag
from horai.cli.show import once_headers, say

OneJob = Annotated[str | None, typer.Argument(help="A job's name or id.", show_default=False)]
EachTag = Annotated[str | None, flag("--tag", about="All jobs with this tag.", metavar="TAG")]
EachQueue = Annotated[str | None, flag("--queue", about="All jobs of this queue.", metavar="QUEUE")]
EachOwner = Annotated[str | None, flag("--owner", about="All jobs of this owner.", metavar="TEXT")]
DryRun = Annotated[bool, flag("--dry-run", about="Only count the jobs that match.")]

DONE = {"trigger": "triggered", "delete": "deleted"}
DOING = {"trigger": "Running", "delete": "Deleting"}
QUESTIONS = {
    "trigger": "Run {found} jobs now?",
    "delete": "Delete {found} jobs and cancel their waiting instances?",
}


def require_one(verb: str, job: str | None, only: Mapping[str, Any]) -> None:
    """Raise `BadUsage` unless there is either a job or a filter."""
    if (job is None) != bool(only):
        raise BadUsage(
            f"horai jobs {verb} takes a job, or --tag, --queue and --owner.", f"Try: horai jobs {verb} --tag nightly"
        )


@dataclass(frozen=True, slots=True)
class BulkFlags:
    """The flags that say how a bulk change is made."""

    dry_run: bool
    yes: bool
    idempotency_key: str | None
    as_json: bool


def change_all(client: RestClient, verb: str, wish: Mapping[str, Any], flags: BulkFlags) -> None:
    """Count the jobs that match, or change them after a confirmation. `wish` is the request without its cursor."""
    if flags.dry_run:
        _print_count(verb, _count(client, verb, wish), flags.as_json)
        return
    if not flags.yes:
        _confirm(client, verb, wish)
    change_jobs(client, verb, wish, once_headers(flags.idempotency_key)["Idempotency-Key"], flags.as_json)


def _count(client: RestClient, verb: str, wish: Mapping[str, Any]) -> int:
    """Return how many jobs match, by dry runs."""
    found, following = 0, dict[str, Any]()
    while True:
        answer = json.loads(client.call("POST", path_of("jobs", verb), {**wish, **following, "dryRun": True}))
        found, following = found + answer["matched"], {"cursor": answer["nextCursor"]}
        if answer["nextCursor"] is None:
            return found


def _print_count(verb: str, found: int, as_json: bool) -> None:
    if as_json:
        print_result({**dict.fromkeys(COUNTS, 0), "matched": found}, (), "job", DONE[verb], as_json)
    else:
        say(f"{found} would be {DONE[verb]}.")


def _confirm(client: RestClient, verb: str, wish: Mapping[str, Any]) -> None:
    """Ask for confirmation with the number of jobs. Raise `BadUsage` if stdin is not a terminal."""
    if not sys.stdin.isatty():
        raise BadUsage(
            f"{DOING[verb]} all jobs that match needs confirmation, and stdin is not a terminal.",
            "Add --yes; --dry-run only counts them.",
        )
    typer.confirm(QUESTIONS[verb].format(found=_count(client, verb, wish)), abort=True, err=True)


def change_jobs(client: RestClient, verb: str, wish: Mapping[str, Any], key: str, as_json: bool) -> None:
    """Change all jobs that match, request by request, and print how many were changed, skipped and why.

    Each request has a key of its own, made from `key`: the same command with the same key changes no job twice, and continues
    where an interrupted one stopped.
    """
    total, reasons = dict.fromkeys(COUNTS, 0), list[dict[str, Any]]()
    following, number = dict[str, Any](), 1
    while True:
        once = {"Idempotency-Key": key if number == 1 else f"{key}-{number}"}
        answer = json.loads(client.call("POST", path_of("jobs", verb), {**wish, **following}, once))
        total = {name: total[name] + answer[name] for name in COUNTS}
        reasons += answer["reasons"]
        if answer["nextCursor"] is None:
            break
        following, number = {"cursor": answer["nextCursor"]}, number + 1
        if "rate" in wish:
            following["startAt"] = answer["nextStart"]
    print_result(total, reasons, "job", DONE[verb], as_json)
