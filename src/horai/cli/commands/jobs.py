"""`horai jobs`: list, show, create, next, explain, pause, resume, trigger, backfill, delete."""

import json
from typing import Annotated

import typer

from horai.cli import views
from horai.cli.bulk_results import print_result
from horai.cli.client import RestClient, client_of, path_of
from horai.cli.commands.jobs_backfill import backfill
from horai.cli.commands.jobs_create import create
from horai.cli.commands.jobs_explain import explain
from horai.cli.commands.jobs_matching import (
    BulkFlags,
    DryRun,
    EachOwner,
    EachQueue,
    EachTag,
    OneJob,
    change_all,
    require_one,
)
from horai.cli.commands.jobs_next import next_
from horai.cli.commands.jobs_trigger import trigger
from horai.cli.counts import print_count
from horai.cli.errors import BadUsage
from horai.cli.flags import (
    DEFAULT_SERVER,
    ApiKey,
    AsJson,
    Count,
    Everything,
    IdempotencyKey,
    Limit,
    Server,
    Yes,
    confirm_deletion,
    flag,
)
from horai.cli.lazy import new_app
from horai.cli.show import print_json, say, show_fields, show_list
from horai.cli.time_flags import given
from horai.cli.versions import add_versions

app = new_app("Jobs: create, trigger, pause and delete jobs.")

Job = Annotated[str, typer.Argument(help="A job's name or id.")]
Note = Annotated[str | None, flag("--note", about="Reason; shown with the job.", metavar="TEXT")]


@app.command("list")
def list_jobs(
    name: Annotated[str | None, flag("--name", about="Only the job of this name.", metavar="NAME")] = None,
    tag: Annotated[str | None, flag("--tag", about="Only jobs with this tag.", metavar="TAG")] = None,
    status: Annotated[str | None, flag("--status", about="ACTIVE or PAUSED.", metavar="STATUS")] = None,
    queue: Annotated[str | None, flag("--queue", about="Only jobs of this queue.", metavar="QUEUE")] = None,
    owner: Annotated[str | None, flag("--owner", about="Only jobs of this owner.", metavar="TEXT")] = None,
    refresh: Annotated[bool, flag("--refresh", about="Only refresh jobs.")] = False,
    count: Count = False,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List jobs, oldest first."""
    only = {"name": name, "tag": tag, "status": status and status.upper(), "queue": queue, "limit": limit}
    only |= {"refresh": "true" if refresh else None, "owner": owner}
    client = client_of(server, api_key)
    if count:
        print_count(client, path_of("job-count"), only, as_json)
        return
    answer = client.page(path_of("jobs"), only, everything)
    show_list(answer, as_json, views.JOB_COLUMNS, views.job_row)


@app.command()
def show(job: Job, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show one job."""
    _print_job(client_of(server, api_key).call("GET", path_of("jobs", job)), as_json)


app.command()(create)
app.command()(trigger)
app.command()(backfill)
app.command("next")(next_)
app.command()(explain)


@app.command()
def pause(
    job: OneJob = None,
    tag: EachTag = None,
    queue: EachQueue = None,
    owner: EachOwner = None,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Pause a job, or all jobs with a tag, of a queue or of an owner: no new slots fire, and waiting instances stay waiting."""
    _change(
        "pause", client_of(server, api_key), job, {"tag": tag, "queue": queue, "owner": owner, "note": note}, as_json
    )


@app.command()
def resume(
    job: OneJob = None,
    tag: EachTag = None,
    queue: EachQueue = None,
    owner: EachOwner = None,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Resume a paused job, or all paused jobs with a tag, of a queue or of an owner."""
    _change(
        "resume", client_of(server, api_key), job, {"tag": tag, "queue": queue, "owner": owner, "note": note}, as_json
    )


def _change(verb: str, client: RestClient, job: str | None, body: dict[str, str | None], as_json: bool) -> None:
    require_one(verb, job, given(tag=body["tag"], queue=body["queue"], owner=body["owner"]))
    if job is not None:
        _print_job(client.call("POST", path_of("jobs", job, verb), {"note": body["note"]}), as_json)
        return
    changed, held, is_done = 0, 0, False
    while not is_done:
        answer = json.loads(client.call("POST", path_of("jobs", verb), body))
        changed, held = changed + answer["changed"], answer["held"]
        is_done = not (answer["more"] and answer["changed"])
    if as_json:
        print_json(json.dumps({"changed": changed, "held": held}).encode())
    else:
        say(
            f"Jobs {verb}d: {changed}."
            + (f" Not {verb}d, as another request was changing them: {held}." if held else "")
        )


@app.command()
def delete(
    job: OneJob = None,
    tag: EachTag = None,
    queue: EachQueue = None,
    owner: EachOwner = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Remove a job, or all jobs with a tag, of a queue or of an owner: waiting instances are cancelled, running ones finish."""
    client, only = client_of(server, api_key), given(tag=tag, queue=queue, owner=owner)
    require_one("delete", job, only)
    if job is None:
        change_all(client, "delete", only, BulkFlags(dry_run, yes, idempotency_key, as_json))
        return
    if dry_run:
        raise BadUsage("--dry-run counts jobs that match, and cannot be combined with a job.", "Leave it out.")
    if not yes:
        confirm_deletion("job", job)
    once = {"Idempotency-Key": idempotency_key} if idempotency_key else None
    client.call("DELETE", path_of("jobs", job), None, once)
    if as_json:
        print_result({"matched": 1, "changed": 1, "skipped": 0, "held": 0}, (), "job", "deleted", as_json)
    else:
        say(f"Deleted {job}.")


def _print_job(answer: bytes, as_json: bool) -> None:
    show_fields(answer, as_json, views.job_fields)


add_versions(app, "jobs")
