"""One recipe for each write operation of the API: prepares its objects and returns the request to send.

The server of these tests has only the role `api`, so that nothing else writes to the database.
"""

import json
import os
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from pathlib import Path
from typing import Any

import archive_yard as yard
import flows
import letters
import make
from databases import Superuser
from drill_reports import drill_report
from harness import Client

from api import given
from horai.core.outcome import Bury
from horai.db import claims
from horai.features.archive.archiving import archive_partition
from horai.features.events import store as sources
from horai.features.events.store import Unreadable
from horai.features.workflow.runs import advance_runs
from horai.operations.scope import Scope

HOUR = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"}
HOOK = {"type": "http", "url": "http://127.0.0.1:9/hook"}
DUE = datetime(2026, 1, 1, tzinfo=UTC)
_ARCHIVE = tempfile.TemporaryDirectory(prefix="horai-archive-")
ARCHIVE = _ARCHIVE.name
"""The archive directory of servers that answer recipes."""
_DAYS = count(100)
_MILLIS = count(100)


@dataclass(frozen=True, slots=True)
class World:
    """A server without an engine, its database, and a node that seems to be alive."""

    api: Client
    db: Superuser
    scope: Scope
    node: int


@dataclass(frozen=True, slots=True)
class Sent:
    """A request: its path, its body, and another body for the same key."""

    path: str
    body: Any = None
    other: Any = None


Recipe = Callable[[World], Awaitable[Sent]]
RECIPES: dict[tuple[str, str], Recipe] = {}


def recipe(operation: str) -> Callable[[Recipe], Recipe]:
    """Register the recipe of `METHOD /path`, the path as the OpenAPI document has it."""
    method, path = operation.split(" ")

    def register(function: Recipe) -> Recipe:
        RECIPES[method, path] = function
        return function

    return register


async def job(world: World, **fields: Any) -> str:
    """The name of a new job."""
    return (await given.job(world.api, **fields))["name"]


async def secret(world: World) -> str:
    """The path of a new named secret."""
    path = f"/api/v1/secrets/{given.name('secret')}"
    assert (await world.api("PUT", path, {"value": "first"})).status == 201
    return path


async def calendar(world: World) -> str:
    """The path of a new calendar."""
    path = f"/api/v1/calendars/{given.name('calendar')}"
    assert (await world.api("PUT", path, {})).status == 201
    return path


async def waiting(world: World, **more: Any) -> tuple[str, Any]:
    """A job with one instance, of key `a`, which is not due."""
    name = await job(world)
    made = await world.api("PUT", f"/api/v1/jobs/{name}/instances/a", {"executeTime": given.FAR, **more})
    return name, made.json["instance"]


async def dead_letters(world: World, count: int = 1) -> tuple[str, list[int]]:
    """A job with dead letters."""
    name = await job(world)
    return name, await letters.of_keys(world.scope, world.db, [f"k{n}" for n in range(count)], job=name)


async def held(world: World) -> tuple[str, Any]:
    """A job with one RUNNING instance: its name, and the claim."""
    await world.db.execute("update horai.queue set held = false")  # another recipe may have paused all dispatch
    made = await given.job(world.api)
    await make.put(world.scope, "a", DUE, job=made["name"])
    claimed = await make.claim(world.db, world.node)
    return made["name"], next(each.held for each in claimed if each.held.job_id == int(made["id"]))


async def backfill(world: World) -> str:
    """The id of a backfill that has not begun."""
    name = await job(world, every="1m")
    return (await world.api("POST", f"/api/v1/jobs/{name}/backfill", HOUR)).json["id"]


async def run(world: World) -> tuple[str, int]:
    """A workflow of one node whose run has begun: its name, and the run."""
    name = given.name("flow")
    made = await flows.workflow(world.scope, {given.name("node"): ()}, name)
    return name, await flows.start(world.scope, world.db, made)


async def workflow(world: World) -> str:
    """The name of a new workflow."""
    name = given.name("flow")
    await flows.workflow(world.scope, {given.name("node"): ()}, name)
    return name


async def refresh_job(world: World) -> str:
    """The name of a job with one entity."""
    name = await job(world, every="1d", refresh={"window": "10d"})
    await world.api("PUT", f"/api/v1/jobs/{name}/entities/known")
    return name


async def reconciler_body(world: World) -> Any:
    """A reconciler of a new job, which is never run here."""
    query = "select key, execute_time from article where key > $1 order by key limit $2"
    source = {"type": "sql", "databaseUrl": "postgresql://reader@db.example/shop", "query": query}
    return {"name": given.name("reconciler"), "job": await job(world), "source": source, "every": "1h"}


async def reconciler(world: World) -> str:
    """The name of a new reconciler."""
    made = await world.api("POST", "/api/v1/reconcilers", await reconciler_body(world))
    assert made.status == 201, made.json
    return made.json["name"]


async def parked(world: World) -> tuple[str, int]:
    """A job, and a parked event that it can take."""
    source, body = given.name("source"), json.dumps({"key": "a", "executeTime": given.FAR, "id": "e1"}).encode()
    await sources.park_events(world.db, 1, source, [Unreadable("1", "moved", {}, body, "job: is missing")])
    (event,) = await sources.parked_events(world.db, 1, source, 0, 1)
    return await job(world), event.id


def hold_and_release(path: str, create: Callable[[World], Awaitable[str]]) -> None:
    """Register the recipes of `pause` and `resume` for the objects that `create` makes."""
    collection = path.partition("/")[0]

    @recipe(f"POST /api/v1/{path}/pause")
    async def _pause(world: World) -> Sent:
        return Sent(f"/api/v1/{collection}/{await create(world)}/pause", {"note": "a"}, {"note": "b"})

    @recipe(f"POST /api/v1/{path}/resume")
    async def _resume(world: World) -> Sent:
        made = f"/api/v1/{collection}/{await create(world)}"
        await world.api("POST", f"{made}/pause")
        return Sent(f"{made}/resume", {"note": "a"}, {"note": "b"})


hold_and_release("jobs/{job}", job)
hold_and_release("backfills/{backfill}", backfill)
hold_and_release("workflows/{workflow}", workflow)
hold_and_release("reconcilers/{reconciler}", reconciler)


@recipe("POST /api/v1/jobs")
async def _create_job(_: World) -> Sent:
    body = {"name": given.name(), "target": HOOK, "delay": "1d"}
    return Sent("/api/v1/jobs", body, {**body, "delay": "2d"})


@recipe("PATCH /api/v1/jobs/{job}")
async def _patch_job(world: World) -> Sent:
    return Sent(f"/api/v1/jobs/{await job(world)}", {"tags": ["a"]}, {"tags": ["b"]})


@recipe("DELETE /api/v1/jobs/{job}")
async def _delete_job(world: World) -> Sent:
    return Sent(f"/api/v1/jobs/{(await waiting(world))[0]}")


@recipe("POST /api/v1/jobs/pause")
async def _pause_many(world: World) -> Sent:
    body = {"names": [await job(world) for _ in range(3)], "limit": 1}
    return Sent("/api/v1/jobs/pause", body, {**body, "limit": 2})


@recipe("POST /api/v1/jobs/resume")
async def _resume_many(world: World) -> Sent:
    body = {"names": [await job(world) for _ in range(3)], "limit": 1}
    assert (await world.api("POST", "/api/v1/jobs/pause", {"names": body["names"]})).json["changed"] == 3
    return Sent("/api/v1/jobs/resume", body, {**body, "limit": 2})


@recipe("POST /api/v1/jobs/trigger")
async def _trigger_many(world: World) -> Sent:
    body = {"names": [await job(world) for _ in range(3)], "limit": 1}
    return Sent("/api/v1/jobs/trigger", body, {**body, "limit": 2})


@recipe("POST /api/v1/jobs/delete")
async def _delete_many(world: World) -> Sent:
    body = {"names": [await job(world) for _ in range(3)], "limit": 1}
    return Sent("/api/v1/jobs/delete", body, {**body, "limit": 2})


@recipe("POST /api/v1/instances/cancel")
async def _cancel_many(world: World) -> Sent:
    name = await job(world)
    items = [{"executeTime": given.FAR}] * 3
    await world.api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": items})
    body = {"job": name, "limit": 1}
    return Sent("/api/v1/instances/cancel", body, {**body, "limit": 2})


@recipe("POST /api/v1/instances/replay")
async def _replay_many(world: World) -> Sent:
    name, _ = await dead_letters(world, 3)
    body = {"job": name, "limit": 1}
    return Sent("/api/v1/instances/replay", body, {**body, "limit": 2})


@recipe("POST /api/v1/jobs/{job}/trigger")
async def _trigger(world: World) -> Sent:
    return Sent(f"/api/v1/jobs/{await job(world)}/trigger", {"payload": 1}, {"payload": 2})


@recipe("POST /api/v1/jobs/{job}/instances/batch")
async def _batch(world: World) -> Sent:
    item = {"executeTime": given.FAR}
    body = {"items": [item, item, {"key": "a", **item}]}
    return Sent(f"/api/v1/jobs/{await job(world)}/instances/batch", body, {"items": [item]})


@recipe("PUT /api/v1/jobs/{job}/instances/{key}")
async def _put(world: World) -> Sent:
    """Replace a running instance: the case in which a repeat would do the work twice."""
    name, _ = await held(world)
    return Sent(f"/api/v1/jobs/{name}/instances/a", {"payload": 1}, {"payload": 2})


@recipe("DELETE /api/v1/jobs/{job}/instances/{key}")
async def _delete(world: World) -> Sent:
    return Sent(f"/api/v1/jobs/{(await waiting(world))[0]}/instances/a")


@recipe("POST /api/v1/instances/{instance}/cancel")
async def _cancel(world: World) -> Sent:
    return Sent(f"/api/v1/instances/{(await waiting(world))[1]['id']}/cancel")


@recipe("POST /api/v1/instances/{instance}/signals/{name}")
async def _signal(world: World) -> Sent:
    path = f"/api/v1/instances/{(await waiting(world))[1]['id']}/signals/approved"
    return Sent(path, {"payload": 1}, {"payload": 2})


@recipe("POST /api/v1/jobs/{job}/instances/{key}/signals/{name}")
async def _signal_of_key(world: World) -> Sent:
    path = f"/api/v1/jobs/{(await waiting(world))[0]}/instances/a/signals/approved"
    return Sent(path, {"payload": 1}, {"payload": 2})


@recipe("POST /api/v1/instances/{instance}/outcome")
async def _outcome(world: World) -> Sent:
    """A late one: it is refused, and kept all the same."""
    name, old = await held(world)
    await make.put(world.scope, "a", DUE + timedelta(days=1), job=name)
    body = {"fence": old.fence, "result": "FAIL_RETRYABLE", "message": "a"}
    return Sent(f"/api/v1/instances/{old.id}/outcome", body, {**body, "message": "b"})


@recipe("PUT /api/v1/queues/{name}")
async def _queue(_: World) -> Sent:
    return Sent(f"/api/v1/queues/{given.name('queue')}", {"maxConcurrency": 3}, {"maxConcurrency": 4})


@recipe("POST /api/v1/signing-secrets")
async def _rotate(_: World) -> Sent:
    return Sent("/api/v1/signing-secrets", {"expireOld": "0s"}, {"expireOld": "0ms"})


@recipe("POST /api/v1/secrets")
async def _create_secret(_: World) -> Sent:
    name = given.name("secret")
    return Sent("/api/v1/secrets", {"name": name, "value": "a"}, {"name": name, "value": "b"})


@recipe("PUT /api/v1/calendars/{name}")
async def _put_calendar(world: World) -> Sent:
    return Sent(await calendar(world), {"holidays": ["12-25"]}, {"holidays": ["12-26"]})


@recipe("POST /api/v1/assets/{name}/updates")
async def _update_asset(world: World) -> Sent:
    name = given.name("asset")
    await given.job(world.api, when=[name])
    return Sent(f"/api/v1/assets/{name}/updates", {"metadata": {"file": "a"}}, {"metadata": {"file": "b"}})


@recipe("DELETE /api/v1/calendars/{name}")
async def _delete_calendar(world: World) -> Sent:
    return Sent(await calendar(world))


@recipe("PUT /api/v1/secrets/{name}")
async def _put_secret(world: World) -> Sent:
    return Sent(await secret(world), {"value": "a"}, {"value": "b"})


@recipe("DELETE /api/v1/secrets/{name}")
async def _delete_secret(world: World) -> Sent:
    return Sent(await secret(world))


ALERTS = "/api/v1/alerts"


async def _channel(world: World) -> str:
    """The path of a new channel, to which nothing listens."""
    name = given.name("channel")
    made = await world.api("POST", f"{ALERTS}/channels", {"name": name, "kind": "slack", "url": "http://127.0.0.1:9/"})
    assert made.status == 201, made.json
    return f"{ALERTS}/channels/{name}"


async def _rule(world: World) -> str:
    """The path of a new rule."""
    name, channel = given.name("rule"), (await _channel(world)).rpartition("/")[2]
    made = await world.api("POST", f"{ALERTS}/rules", {"name": name, "kind": "INSTANCE_DEAD", "channels": [channel]})
    assert made.status == 201, made.json
    return f"{ALERTS}/rules/{name}"


async def _heartbeat(world: World) -> str:
    """The path of a new heartbeat."""
    path = f"/api/v1/heartbeats/{given.name('beat')}"
    assert (await world.api("PUT", path, {"every": "1d"})).status == 201
    return path


@recipe("POST /api/v1/alerts/channels")
async def _create_channel(_: World) -> Sent:
    body = {"name": given.name("channel"), "kind": "slack", "url": "http://127.0.0.1:9/"}
    return Sent(f"{ALERTS}/channels", body, {**body, "kind": "wecom"})


@recipe("PUT /api/v1/alerts/channels/{name}")
async def _put_channel(world: World) -> Sent:
    body = {"kind": "slack", "url": "***", "language": "zh-CN"}
    return Sent(await _channel(world), body, {**body, "language": "en"})


@recipe("DELETE /api/v1/alerts/channels/{name}")
async def _delete_channel(world: World) -> Sent:
    return Sent(await _channel(world))


@recipe("POST /api/v1/alerts/channels/{name}/test")
async def _test_channel(world: World) -> Sent:
    return Sent(f"{await _channel(world)}/test")


@recipe("POST /api/v1/alerts/rules")
async def _create_rule(world: World) -> Sent:
    channel = (await _channel(world)).rpartition("/")[2]
    body = {"name": given.name("rule"), "kind": "RUN_BLOCKED", "channels": [channel]}
    return Sent(f"{ALERTS}/rules", body, {**body, "groupWait": "1s"})


@recipe("PUT /api/v1/alerts/rules/{name}")
async def _put_rule(world: World) -> Sent:
    channel = (await _channel(world)).rpartition("/")[2]
    body = {"kind": "RUN_BLOCKED", "channels": [channel]}
    return Sent(await _rule(world), body, {**body, "enabled": False})


@recipe("DELETE /api/v1/alerts/rules/{name}")
async def _delete_rule(world: World) -> Sent:
    return Sent(await _rule(world))


@recipe("POST /api/v1/alerts/{alert}/acknowledge")
async def _acknowledge_alert(world: World) -> Sent:
    name = (await _rule(world)).rpartition("/")[2]
    alert = await world.db.fetchval(
        """insert into horai.alert (tenant_id, rule_id, object, occurrence, data, since)
           select tenant_id, id, '1', 0, '{}', now() from horai.alert_rule where name = $1 returning id""",
        name,
    )
    return Sent(f"{ALERTS}/{alert}/acknowledge", {"note": "one"}, {"note": "other"})


@recipe("POST /api/v1/alerts/deliveries/{delivery}/redeliver")
async def _redeliver(world: World) -> Sent:
    tested = await world.api("POST", f"{await _channel(world)}/test")
    assert tested.status == 200, tested.json
    return Sent(f"{ALERTS}/deliveries/{tested.json['id']}/redeliver")


@recipe("POST /api/v1/alerts/silences")
async def _create_silence(_: World) -> Sent:
    return Sent(f"{ALERTS}/silences", {"lasts": "1h", "job": "none"}, {"lasts": "2h", "job": "none"})


@recipe("DELETE /api/v1/alerts/silences/{silence}")
async def _delete_silence(world: World) -> Sent:
    made = await world.api("POST", f"{ALERTS}/silences", {"lasts": "1h", "job": "none"})
    return Sent(f"{ALERTS}/silences/{made.json['id']}")


@recipe("PUT /api/v1/heartbeats/{name}")
async def _put_heartbeat(world: World) -> Sent:
    return Sent(await _heartbeat(world), {"every": "1h"}, {"every": "2h"})


@recipe("POST /api/v1/heartbeats/{name}")
async def _beat_heartbeat(world: World) -> Sent:
    return Sent(await _heartbeat(world))


@recipe("DELETE /api/v1/heartbeats/{name}")
async def _delete_heartbeat(world: World) -> Sent:
    return Sent(await _heartbeat(world))


@recipe("POST /api/v1/schedules/preview")
async def _preview(_: World) -> Sent:
    return Sent("/api/v1/schedules/preview", {"cron": "0 0 1 1 *"})


@recipe("POST /api/v1/dlq/replay")
async def _replay_letters(world: World) -> Sent:
    name, _ = await dead_letters(world, 3)
    body = {"job": name, "limit": 1}
    return Sent("/api/v1/dlq/replay", body, {**body, "limit": 2})


@recipe("POST /api/v1/dlq/discard")
async def _discard_letters(world: World) -> Sent:
    name, _ = await dead_letters(world, 3)
    body = {"job": name, "limit": 1, "reason": "a"}
    return Sent("/api/v1/dlq/discard", body, {**body, "limit": 2})


@recipe("POST /api/v1/dlq/import")
async def _import_letters(world: World) -> Sent:
    at = DUE.isoformat()
    letter = {"origin": given.name("origin"), "job": await job(world), "fireTime": at, "diedAt": at, "errorCode": "E"}
    return Sent("/api/v1/dlq/import", {"letters": [letter]}, {"letters": [{**letter, "errorCode": "F"}]})


@recipe("POST /api/v1/dlq/{letter}/replay")
async def _replay_letter(world: World) -> Sent:
    return Sent(f"/api/v1/dlq/{(await dead_letters(world))[1][0]}/replay")


@recipe("POST /api/v1/dlq/{letter}/discard")
async def _discard_letter(world: World) -> Sent:
    return Sent(f"/api/v1/dlq/{(await dead_letters(world))[1][0]}/discard", {"reason": "a"}, {"reason": "b"})


@recipe("POST /api/v1/jobs/{job}/backfill")
async def _backfill(world: World) -> Sent:
    return Sent(f"/api/v1/jobs/{await job(world, every='1m')}/backfill", HOUR, {**HOUR, "note": "b"})


@recipe("POST /api/v1/backfills/{backfill}/cancel")
async def _cancel_backfill(world: World) -> Sent:
    return Sent(f"/api/v1/backfills/{await backfill(world)}/cancel", {"note": "a"}, {"note": "b"})


@recipe("POST /api/v1/workflows")
async def _create_workflow(world: World) -> Sent:
    body = {"name": given.name("flow"), "nodes": [{"name": "only", "job": await job(world)}]}
    return Sent("/api/v1/workflows", body, {**body, "tags": ["b"]})


@recipe("POST /api/v1/compositions")
async def _compose(world: World) -> Sent:
    called = await job(world)
    await world.api("POST", "/api/v1/compositions", {"chain": [{"job": called}]})  # it defines the form
    return Sent("/api/v1/compositions", {"chain": [{"job": called}]}, {"chain": [{"job": called, "payload": 2}]})


@recipe("PATCH /api/v1/workflows/{workflow}")
async def _patch_workflow(world: World) -> Sent:
    return Sent(f"/api/v1/workflows/{await workflow(world)}", {"tags": ["a"]}, {"tags": ["b"]})


@recipe("DELETE /api/v1/workflows/{workflow}")
async def _delete_workflow(world: World) -> Sent:
    return Sent(f"/api/v1/workflows/{await workflow(world)}")


@recipe("POST /api/v1/workflows/{workflow}/trigger")
async def _trigger_workflow(world: World) -> Sent:
    return Sent(f"/api/v1/workflows/{await workflow(world)}/trigger", {"payload": 1}, {"payload": 2})


@recipe("POST /api/v1/workflows/{workflow}/runs/{run}/rerun")
async def _rerun(world: World) -> Sent:
    name, started = await run(world)
    for claimed in await make.claim(world.db, world.node):
        await claims.bury_if_running(world.db, [(claimed.held, Bury("X", "x"))])
    (node,) = (await flows.states(world.db, started)).keys()
    return Sent(f"/api/v1/workflows/{name}/runs/{started}/rerun", {"from": node}, {"from": "other"})


@recipe("POST /api/v1/workflows/{workflow}/runs/cancel")
async def _cancel_runs(world: World) -> Sent:
    name, started = await run(world)
    return Sent(f"/api/v1/workflows/{name}/runs/cancel", {"ids": [str(started)]}, {"state": "RUNNING"})


@recipe("POST /api/v1/workflows/{workflow}/runs/rerun")
async def _rerun_runs(world: World) -> Sent:
    name, started = await run(world)
    for claimed in await make.claim(world.db, world.node):
        await claims.bury_if_running(world.db, [(claimed.held, Bury("X", "x"))])
    await advance_runs(world.db, [started], world.scope.keyring)
    return Sent(f"/api/v1/workflows/{name}/runs/rerun", {"ids": [str(started)]}, {"state": "BLOCKED"})


@recipe("POST /api/v1/jobs/{job}/entities/remove")
async def _remove_entities(world: World) -> Sent:
    path = f"/api/v1/jobs/{await refresh_job(world)}/entities/remove"
    return Sent(path, {"keys": ["known"]}, {"prefix": "k"})


@recipe("POST /api/v1/workflows/{workflow}/runs/{run}/cancel")
async def _cancel_run(world: World) -> Sent:
    name, started = await run(world)
    return Sent(f"/api/v1/workflows/{name}/runs/{started}/cancel")


@recipe("POST /api/v1/jobs/{job}/entities/batch")
async def _add_entities(world: World) -> Sent:
    body = {"items": [{"key": "known"}, {"key": "new"}]}
    return Sent(f"/api/v1/jobs/{await refresh_job(world)}/entities/batch", body, {"items": [{"key": "other"}]})


@recipe("PUT /api/v1/jobs/{job}/entities/{key}")
async def _put_entity(world: World) -> Sent:
    return Sent(f"/api/v1/jobs/{await refresh_job(world)}/entities/new", {"payload": 1}, {"payload": 2})


@recipe("DELETE /api/v1/jobs/{job}/entities/{key}")
async def _delete_entity(world: World) -> Sent:
    return Sent(f"/api/v1/jobs/{await refresh_job(world)}/entities/known")


@recipe("POST /api/v1/reconcilers")
async def _create_reconciler(world: World) -> Sent:
    body = await reconciler_body(world)
    return Sent("/api/v1/reconcilers", body, {**body, "every": "2h"})


@recipe("PATCH /api/v1/reconcilers/{reconciler}")
async def _patch_reconciler(world: World) -> Sent:
    return Sent(f"/api/v1/reconcilers/{await reconciler(world)}", {"every": "2h"}, {"every": "3h"})


@recipe("DELETE /api/v1/reconcilers/{reconciler}")
async def _delete_reconciler(world: World) -> Sent:
    return Sent(f"/api/v1/reconcilers/{await reconciler(world)}")


@recipe("POST /api/v1/reconcilers/{reconciler}/run")
async def _run_reconciler(world: World) -> Sent:
    return Sent(f"/api/v1/reconcilers/{await reconciler(world)}/run")


@recipe("POST /api/v1/events/parked/{event}/retry")
async def _retry_parked(world: World) -> Sent:
    name, event = await parked(world)
    return Sent(f"/api/v1/events/parked/{event}/retry", {"job": name}, {"job": "other"})


@recipe("POST /api/v1/events/parked/{event}/discard")
async def _discard_parked(world: World) -> Sent:
    return Sent(f"/api/v1/events/parked/{(await parked(world))[1]}/discard", {"reason": "a"}, {"reason": "b"})


_MODES = cycle(("RETRY_SHORT_FIRST", "CORE_ONLY"))  # of equal effect; others would set a rate or refuse backfills


@recipe("POST /api/v1/scheduler/mode")
async def post_mode(world: World) -> Sent:
    body = {"mode": next(_MODES), "state": "ON"}
    await world.api("POST", "/api/v1/scheduler/mode", {**body, "state": "AUTO"})
    return Sent("/api/v1/scheduler/mode", body, {**body, "state": "OFF"})


@recipe("PUT /api/v1/scheduler/thresholds")
async def put_thresholds(_: World) -> Sent:
    fresh = 1 + int.from_bytes(os.urandom(3), "big")  # the same thresholds again would change nothing
    return Sent("/api/v1/scheduler/thresholds", {"retryBacklog": fresh}, {"retryBacklog": fresh + 1})


@recipe("POST /api/v1/scheduler/pause")
async def pause_dispatch(_: World) -> Sent:
    return Sent("/api/v1/scheduler/pause", {"note": "one"}, {"note": "other"})


@recipe("POST /api/v1/scheduler/resume")
async def resume_dispatch(world: World) -> Sent:
    await world.api("POST", "/api/v1/scheduler/pause")
    return Sent("/api/v1/scheduler/resume", {"note": "one"}, {"note": "other"})


@recipe("POST /api/v1/scheduler/freeze")
async def freeze_work(_: World) -> Sent:
    return Sent("/api/v1/scheduler/freeze", {"what": "low-priority"}, {"what": "low-priority", "note": "other"})


@recipe("POST /api/v1/scheduler/unfreeze")
async def unfreeze_work(world: World) -> Sent:
    await world.api("POST", "/api/v1/scheduler/freeze", {"what": "low-priority"})
    return Sent("/api/v1/scheduler/unfreeze", {"what": "low-priority"}, {"what": "low-priority", "note": "other"})


async def archived_day(world: World) -> str:
    """The path of a day of its own with archived instances."""
    day = yard.ago(next(_DAYS))
    await job(world)
    newest = "select id, lane_id from horai.job where tenant_id = 1 order by id desc limit 1"
    part = await yard.history(world.db, yard.Lane(*await world.db.fetchrow(newest) or ()), day, 3)
    await archive_partition(world.db, await yard.place(world.db, Path(ARCHIVE)), part)
    await world.db.execute(f"drop table horai.instance_history_{day:%Y%m%d}")
    return f"/api/v1/archive/restored/{day}"


@recipe("POST /api/v1/archive/restored/{day}")
async def restore_day(world: World) -> Sent:
    path = await archived_day(world)
    assert (await world.api("POST", path)).status == 200
    await world.db.execute("delete from horai.restored_instance where key = 'key-1'")  # the request restores it again
    return Sent(path)


@recipe("DELETE /api/v1/archive/restored/{day}")
async def remove_restored_day(world: World) -> Sent:
    path = await archived_day(world)
    assert (await world.api("POST", path)).status == 200
    return Sent(path)


@recipe("POST /api/v1/incidents")
async def create_incident(_: World) -> Sent:
    body = {"severity": "P2", "title": "one"}
    return Sent("/api/v1/incidents", body, {**body, "title": "other"})


async def _incident(world: World) -> str:
    made = await world.api("POST", "/api/v1/incidents", {"severity": "P2", "title": "one"})
    return f"/api/v1/incidents/{made.json['id']}"


@recipe("POST /api/v1/incidents/{incident}/notes")
async def add_incident_note(world: World) -> Sent:
    return Sent(f"{await _incident(world)}/notes", {"note": "one"}, {"note": "other"})


@recipe("POST /api/v1/incidents/{incident}/close")
async def close_incident(world: World) -> Sent:
    return Sent(f"{await _incident(world)}/close", {"note": "one"}, {"note": "other"})


@recipe("POST /api/v1/drills")
async def file_drill(_: World) -> Sent:
    body = drill_report(failedAt=f"2026-11-03T04:00:00.{next(_MILLIS):03}Z")
    return Sent("/api/v1/drills", body, {**body, "machine": "other"})


@recipe("POST /api/v1/recover")
async def recover(world: World) -> Sent:
    earlier, first, second = [(await _incident(world)).rpartition("/")[2] for _ in range(3)]
    # Requeues the letters of other tests, so that every repetition has the same effect.
    assert (await world.api("POST", "/api/v1/recover", {"incident": earlier})).status == 200
    return Sent("/api/v1/recover", {"incident": first}, {"incident": second})


async def _sink(world: World) -> str:
    path = f"/api/v1/sinks/{given.name('sink')}"
    assert (await world.api("PUT", path, {"kind": "log"})).status == 201
    return path


@recipe("PUT /api/v1/sinks/{name}")
async def put_sink(world: World) -> Sent:
    body = {"kind": "log", "types": ["horai.instance.done"]}
    return Sent(await _sink(world), body, {"kind": "log"})


@recipe("DELETE /api/v1/sinks/{name}")
async def delete_sink(world: World) -> Sent:
    return Sent(await _sink(world))


@recipe("POST /api/v1/sinks/{name}/pause")
async def pause_sink(world: World) -> Sent:
    return Sent(f"{await _sink(world)}/pause", {"note": "one"}, {"note": "other"})


@recipe("POST /api/v1/sinks/{name}/resume")
async def resume_sink(world: World) -> Sent:
    path = await _sink(world)
    assert (await world.api("POST", f"{path}/pause")).status == 200
    return Sent(f"{path}/resume", {"note": "one"}, {"note": "other"})


@recipe("POST /api/v1/sinks/{name}/replay")
async def replay_sink(world: World) -> Sent:
    body = {"since": "2026-11-17T09:00:00Z"}
    return Sent(f"{await _sink(world)}/replay", body, {"since": "2026-11-17T10:00:00Z"})


@recipe("POST /api/v1/definitions/apply")
async def _apply_definitions(_: World) -> Sent:
    one, other = ({"kind": "job", "name": given.name("applied")} for _ in range(2))
    return Sent("/api/v1/definitions/apply", {"definitions": [one]}, {"definitions": [other]})


async def _restored(world: World, path: str, method: str, *bodies: Any) -> Sent:
    """Two versions of an object, and the request that restores the first."""
    versions = [(await world.api(method, path, body)).json["version"] for body in bodies]
    return Sent(f"{path}/versions/{versions[0]}/restore", {}, {"dryRun": False})


@recipe("POST /api/v1/jobs/{name}/versions/{version}/restore")
async def _restore_job(world: World) -> Sent:
    job = await given.job(world.api)
    return await _restored(world, f"/api/v1/jobs/{job['id']}", "PATCH", {"tags": ["a"]}, {"tags": ["b"]})


@recipe("POST /api/v1/workflows/{name}/versions/{version}/restore")
async def _restore_workflow(world: World) -> Sent:
    path = f"/api/v1/workflows/{await workflow(world)}"
    return await _restored(world, path, "PATCH", {"tags": ["a"]}, {"tags": ["b"]})


@recipe("POST /api/v1/queues/{name}/versions/{version}/restore")
async def _restore_queue(world: World) -> Sent:
    path = f"/api/v1/queues/{given.name('queue')}"
    return await _restored(world, path, "PUT", {"rate": "5/s"}, {"rate": "6/s"})


@recipe("POST /api/v1/reconcilers/{name}/versions/{version}/restore")
async def _restore_reconciler(world: World) -> Sent:
    path = f"/api/v1/reconcilers/{await reconciler(world)}"
    return await _restored(world, path, "PATCH", {"every": "2h"}, {"every": "3h"})
