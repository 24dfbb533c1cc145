"""`horai jobs trigger`: run a job now, and with `--wait` wait for its final state; or run all jobs that match."""

import itertools
import json
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

import msgspec

from horai.cli import views
from horai.cli.call_flags import CallExpires, CallPriority, ConcurrencyKey, settings_of
from horai.cli.client import RestClient, client_of, path_of
from horai.cli.commands.jobs_matching import BulkFlags, DryRun, EachOwner, EachTag, OneJob, change_all, require_one
from horai.cli.documents import Members, payload_of
from horai.cli.errors import BadUsage, CommandFailed
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, IdempotencyKey, Payload, Server, Yes, duration, flag
from horai.cli.show import console, fields, once_headers, print_json, say
from horai.cli.time_flags import given
from horai.core.states import FINAL, State
from horai.time.durations import format_duration

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0


def trigger(
    job: OneJob = None,
    tag: EachTag = None,
    owner: EachOwner = None,
    payload: Payload = None,
    idempotency_key: IdempotencyKey = None,
    unique: Annotated[
        str | None,
        flag(
            "--unique",
            about="Return the instance of an earlier unique trigger with the same payload if it is live, or began less than "
            "DURATION ago; `live`: only if it is live.",
            metavar="DURATION",
        ),
    ] = None,
    concurrency_key: ConcurrencyKey = None,
    queue: Annotated[
        str | None,
        flag(
            "--queue",
            about="Run it in this queue instead of that of the job; without a job: all jobs of this queue.",
            metavar="QUEUE",
        ),
    ] = None,
    priority: CallPriority = None,
    expires: CallExpires = None,
    wait: Annotated[bool, flag("--wait", about="Wait for the final state; exit with 1 unless it is SUCCESS.")] = False,
    timeout: Annotated[
        str | None, flag("--timeout", about="With --wait: longest time to wait (no limit).", metavar="DURATION")
    ] = None,
    rate: Annotated[
        str | None, flag("--rate", about="Of many jobs: rate of starts, such as 100/s, 30/m.", metavar="RATE")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Run a job now, or all jobs with a tag, of a queue or of an owner."""
    within = None if timeout is None else duration("--timeout", timeout)
    client = client_of(server, api_key)
    require_one("trigger", job, given(tag=tag, owner=owner, queue=queue if job is None else None))
    if job is None:
        of_one = {"--unique": unique, "--concurrency-key": concurrency_key, "--priority": priority}
        _refuse_flags({**of_one, "--expires": expires, "--wait": wait, "--timeout": timeout}, "need a job")
        wish = {**given(tag=tag, queue=queue, owner=owner, rate=rate), **payload_of(payload)}
        change_all(client, "trigger", wish, BulkFlags(dry_run, yes, idempotency_key, as_json))
        return
    _refuse_flags({"--rate": rate, "--dry-run": dry_run}, "cannot be combined with a job")
    body = payload_of(payload) | _unique_of(unique)
    settings = settings_of(concurrency_key, queue, priority, expires)
    body |= {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in settings.items()}
    answer = client.call("POST", path_of("jobs", job, "trigger"), body, once_headers(idempotency_key))
    if wait:
        answer = _wait(client, json.loads(answer)["instance"]["id"], within)
    instance = json.loads(answer)["instance"]
    if as_json:
        print_json(answer)
    else:
        console().print(fields(views.instance_fields(instance)))
    if wait and instance["state"] != State.SUCCESS.name:
        raise CommandFailed(f"Instance {instance['id']} ended {instance['state']}.", _look_at(instance["id"]))


def _refuse_flags(flags: Mapping[str, object], why: str) -> None:
    """Raise `BadUsage` if one of the flags is given."""
    if named := [name for name, value in flags.items() if value]:
        raise BadUsage(f"horai jobs trigger: {', '.join(named)} {why}.", "horai jobs trigger --help lists the flags.")


def _unique_of(text: str | None) -> Members:
    """Return the member `unique`, or no member without the flag."""
    if text is None:
        return {}
    within = True if text == "live" else format_duration(duration("--unique", text))
    return {"unique": msgspec.Raw(msgspec.json.encode(within))}


def _wait(client: RestClient, instance_id: str, within: timedelta | None) -> bytes:
    """Wait until the instance is final, and return it as `{instance}`."""
    say(f"Waiting for instance {instance_id}.")
    deadline = None if within is None else time.monotonic() + within.total_seconds()
    finals = {state.name for state in FINAL}
    for turn in itertools.count():
        answer = client.call("GET", path_of("instances", instance_id))
        state = json.loads(answer)["state"]
        if state in finals:
            return msgspec.json.encode({"instance": msgspec.Raw(answer)})
        if within is not None and deadline is not None and time.monotonic() >= deadline:
            waited = format_duration(within)
            raise CommandFailed(f"Instance {instance_id} is still {state} after {waited}.", _look_at(instance_id))
        time.sleep(min(FIRST_PAUSE * 2 ** min(turn, 10), LONGEST_PAUSE))
    raise AssertionError("counts for ever")


def _look_at(instance_id: str) -> str:
    return f"horai instances show {instance_id} shows more."
