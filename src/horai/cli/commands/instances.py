"""`horai instances`: list, show, why, steps, put, signal, cancel, history."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from horai.cli import views
from horai.cli.call_flags import CallExpires, CallPriority, CallQueue, ConcurrencyKey, settings_of
from horai.cli.client import client_of, path_of
from horai.cli.commands.instances_history import history
from horai.cli.commands.instances_steps import steps
from horai.cli.commands.instances_why import why
from horai.cli.counts import print_count
from horai.cli.documents import payload_of
from horai.cli.errors import BadUsage
from horai.cli.flags import (
    DEFAULT_SERVER,
    ApiKey,
    AsJson,
    Count,
    Everything,
    Limit,
    Payload,
    Server,
    duration,
    flag,
    words,
)
from horai.cli.lazy import new_app
from horai.cli.show import console, fields, print_json, say, show_list, table

app = new_app("Instances: the planned and past executions of jobs.")
app.command()(history)
app.command()(why)
app.command()(steps)

Text = str | None
JobFlag = Annotated[Text, flag("--job", about="Name or id of the job.", metavar="JOB")]
KeyFlag = Annotated[Text, flag("--key", about="Business key of the instance.", metavar="KEY")]


@app.command("list")
def list_instances(
    job: JobFlag = None,
    state: Annotated[list[str] | None, flag("--state", about="Repeatable; INIT, RUNNING, FAILED, …")] = None,
    key: KeyFlag = None,
    queue: Annotated[Text, flag("--queue", about="Only of this queue.", metavar="QUEUE")] = None,
    tag: Annotated[Text, flag("--tag", about="Only of jobs with this tag.", metavar="TAG")] = None,
    payload: Annotated[
        Text, flag("--payload", about="Only with this payload field, such as order.id=17.", metavar="PATH=VALUE")
    ] = None,
    since: Annotated[Text, flag("--from", about="First fire time, with an offset.", metavar="TIME")] = None,
    until: Annotated[Text, flag("--to", about="Fire times before this one.", metavar="TIME")] = None,
    count: Count = False,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List instances, live and finished, newest fire time first."""
    states = ",".join(words(state)) or None
    only = {"job": job, "state": states, "key": key, "queue": queue, "tag": tag}
    only |= {"payload": payload, "from": since, "to": until}
    only |= {"limit": limit}
    client = client_of(server, api_key)
    if count:
        print_count(client, path_of("instances", "count"), only, as_json)
        return
    answer = client.page(path_of("instances"), only, everything)
    show_list(answer, as_json, views.INSTANCE_COLUMNS, views.instance_row)


@app.command()
def show(
    instance: Annotated[str, typer.Argument(help="An instance's id.")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show one instance with its attempts, their log lines and its timeline."""
    answer = client_of(server, api_key).call("GET", path_of("instances", instance))
    if as_json:
        print_json(answer)
        return
    found, out = json.loads(answer), console()
    out.print(fields(views.instance_fields(found)))
    if found["attempts"]:
        out.print()
        out.print(table(views.ATTEMPT_COLUMNS, map(views.attempt_row, found["attempts"])))
    if lines := views.log_rows(found["attempts"]):
        out.print()
        out.print(table(views.LOG_COLUMNS, lines))
    if found["timeline"]:
        out.print()
        out.print(table(views.EVENT_COLUMNS, map(views.event_row, found["timeline"])))


@app.command()
def put(
    job: Annotated[str, typer.Argument(help="A job's name or id.")],
    key: Annotated[str, typer.Argument(help="The business key, such as article:42.")],
    at: Annotated[
        Text, flag("--at", about="Execute time, such as 2026-11-15T09:00:00+08:00 (now).", metavar="TIME")
    ] = None,
    delay: Annotated[Text, flag("--in", about="Delay from now, by this machine's clock.", metavar="DURATION")] = None,
    payload: Payload = None,
    version: Annotated[
        int | None,
        flag("--version", about="A put with a lower version than before is IGNORED.", metavar="N"),
    ] = None,
    again: Annotated[bool, flag("--again", about="Run the key again after its success.")] = False,
    keep_steps: Annotated[
        bool, flag("--keep-steps", about="Keep the finished steps of an instance that is moved or replaced.")
    ] = False,
    concurrency_key: ConcurrencyKey = None,
    queue: CallQueue = None,
    priority: CallPriority = None,
    expires: CallExpires = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create or reschedule the instance of a key."""
    if at is not None and delay is not None:
        raise BadUsage("--at and --in cannot be combined.", "Give one of them, or none for now.")
    if delay is not None:
        at = (datetime.now(UTC) + duration("--in", delay)).isoformat()
    body: dict[str, Any] = {"executeTime": at, "version": version, "again": again, **payload_of(payload)}
    if keep_steps:
        body["keepSteps"] = True
    body |= settings_of(concurrency_key, queue, priority, expires)
    answer = client_of(server, api_key).call("PUT", path_of("jobs", job, "instances", key), body)
    if as_json:
        print_json(answer)
    else:
        made = json.loads(answer)
        console().print(fields([("decision", made["decision"]), *views.instance_fields(made["instance"])]))


@app.command()
def signal(
    name: Annotated[str, typer.Argument(help="The name of the signal, as in wait_for(NAME).")],
    instance: Annotated[Text, typer.Argument(help="An instance's id; or use --job and --key.")] = None,
    job: JobFlag = None,
    key: KeyFlag = None,
    payload: Payload = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Send a signal to a live instance, whose function waits for it now or later."""
    match instance, job, key:
        case str(), None, None:
            path = path_of("instances", instance, "signals", name)
        case None, str(), str():
            path = path_of("jobs", job, "instances", key, "signals", name)
        case _:
            raise BadUsage("Which instance?", "Give its id, or --job and --key.")
    answer = client_of(server, api_key).call("POST", path, payload_of(payload))
    if as_json:
        print_json(answer)
        return
    sent = json.loads(answer)
    woken = "it is due now" if sent["woken"] else "it does not wait for this signal yet"
    say(f"Signal {name} sent to instance {sent['instanceId']}: {woken}.")


@app.command()
def cancel(
    instance: Annotated[Text, typer.Argument(help="An instance's id; or use --job and --key.")] = None,
    job: JobFlag = None,
    key: KeyFlag = None,
    compensate: Annotated[
        bool, flag("--compensate", about="Run the compensations of its finished steps first.")
    ] = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Cancel a live instance. A call that it has already sent is not undone."""
    client = client_of(server, api_key)
    query = "?compensate=true" if compensate else ""
    match instance, job, key:
        case str(), None, None:
            answer = client.call("POST", path_of("instances", instance, "cancel") + query)
        case None, str(), str():
            answer = client.call("DELETE", path_of("jobs", job, "instances", key) + query)
        case _:
            raise BadUsage("Which instance?", "Give its id, or --job and --key.")
    if as_json:
        print_json(answer)
    else:
        document = json.loads(answer)
        cancelled, steps = document["instance"], document.get("compensates")
        if steps:
            say(
                f"Instance {cancelled['id']} of {cancelled['job']} is cancelled after its steps {', '.join(steps)} are compensated."
            )
        else:
            why = ": it has no finished step to compensate" if compensate else ""
            say(f"Cancelled instance {cancelled['id']} of {cancelled['job']}{why}.")
