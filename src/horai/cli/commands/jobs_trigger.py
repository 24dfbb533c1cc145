"""`horai jobs trigger`: run a job now, and with `--wait` wait for its final state."""

import itertools
import json
import time
from datetime import timedelta
from typing import Annotated

import msgspec
import typer

from horai.cli import views
from horai.cli.client import RestClient, client_of, path_of
from horai.cli.documents import payload_of
from horai.cli.errors import CommandFailed
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, IdempotencyKey, Payload, Server, duration, flag
from horai.cli.show import console, fields, once_headers, print_json, say
from horai.core.states import FINAL, State
from horai.time.durations import format_duration

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0


def trigger(
    job: Annotated[str, typer.Argument(help="A job's name or id.")],
    payload: Payload = None,
    idempotency_key: IdempotencyKey = None,
    wait: Annotated[bool, flag("--wait", about="Wait for the final state; exit with 1 unless it is SUCCESS.")] = False,
    timeout: Annotated[
        str | None, flag("--timeout", about="With --wait: longest time to wait (no limit).", metavar="DURATION")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Run a job now."""
    within = None if timeout is None else duration("--timeout", timeout)
    client, once = client_of(server, api_key), once_headers(idempotency_key)
    answer = client.call("POST", path_of("jobs", job, "trigger"), payload_of(payload), once)
    if wait:
        answer = _wait(client, json.loads(answer)["instance"]["id"], within)
    instance = json.loads(answer)["instance"]
    if as_json:
        print_json(answer)
    else:
        console().print(fields(views.instance_fields(instance)))
    if wait and instance["state"] != State.SUCCESS.name:
        raise CommandFailed(f"Instance {instance['id']} ended {instance['state']}.", _look_at(instance["id"]))


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
