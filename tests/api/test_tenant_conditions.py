"""Section 7, point 2: each tenant condition of a statement, one at a time. Its loss shows, unless policies hide the rows."""

import base64
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

import harness
import make
import pytest
import raw_workers
from databases import Superuser, superuser
from harness import Client
from keys import created, holder
from long_runs import begun, past
from tenant_conditions import CONDITIONS, Trials
from working import working

from api import given
from api.conftest import SOME_KEY
from api.repeat_recipes import ARCHIVE, HOUR, RECIPES, Sent, World, archived_day, held, run, waiting
from api.test_repeats import DOCUMENT, OF_ACCESS, OF_PLATFORM, WRITES
from horai import Horai
from horai.core.shards import Role
from horai.core.stuck import SAMPLES
from horai.db import controls
from horai.db.stuck import queues_at_limit
from horai.features.events.store import forget_events
from horai.operations import full_queues, stuck

OF_THE_PLATFORM = {
    "begin_count", "delete_jobs_of_tenant", "delete_tenant_hold", "doom_file", "doom_replaced_file", "doom_tenant_files",
    "end_running_of_tenant", "erase_data_keys", "finish_count", "forget_doomed_file", "note_added", "quota_room", "read_keep_times", "read_outbox", "revoke_access_to_tenant", "sample_states", "store_sealed_source", "store_sealed_target",
    "tenant_has_archive", "tenant_holds",
    "wipe_payload_digests", "write_quotas",
}  # fmt: skip
"""Statements of the engine, of commands and of routes of holds, which may see every tenant."""
WITHOUT_EFFECT = {"lane_of", "take_key"}
"""Inserts of the tenant's own row: the condition spares a conflict with a unique index that has the tenant in it."""
NOT_REACHED = {
    "backfill_of_request", "end_of_history", "end_of_history_upwards", "end_of_live", "end_of_live_upwards", "enqueue",
    "enqueue_with_keys", "has_encrypted", "keep_version", "oldest_data_key", "remembered_instance",
}  # fmt: skip
"""Statements of requests that lists of more than 10,000 rows, lost answers, processes without a key, dropped days, unique calls of
encrypted jobs or more than fifty versions of a definition need."""


async def test_C2a_without_a_tenant_condition_a_statement_reaches_rows_of_others_unless_policies_hide_them(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = await superuser(url, "horai conditions")
    monkeypatch.setenv("BUSINESS_DB_URL", url)
    monkeypatch.setenv("HORAI_ENCRYPTION_KEY", base64.b64encode(SOME_KEY.key).decode())
    nothing = await db.fetchval("insert into horai.tenant (name) values ('nothing') returning id")
    trials = Trials(nothing)
    with trials.watching():
        async with served(url, db) as world:
            await given.job(world.api)
            own = [operation for operation in WRITES if not operation[1].startswith(OF_PLATFORM)]
            sent = {operation: await RECIPES[operation](world) for operation in own}
            await trouble(world)
            for method, path, body in requests(sent):
                await ask(world.api, method, path, body)
            await archived(world)
            await functions(url)
            await functions(url)  # which are declared now
            async with raw_workers.working(world.api, "send"):  # a remote worker of functions that the tenant has
                pass
            await search(world)
            await standstill(world)
            await quotas(world)
            await events(world)
            await holds(world, sent)
            await alerts(world)
            await compensated(world)
            await assets(world)
            await keys(world)
    db.terminate()
    assert {name for name, _ in CONDITIONS - trials.noticed} == OF_THE_PLATFORM | WITHOUT_EFFECT | NOT_REACHED
    assert trials.unwalled == set(), "policies must hide the rows of another tenant from the role of requests"
    assert len(trials.walled) > 80


async def archived(world: World) -> None:
    """Read a day of instances in the archive."""
    day = date.fromisoformat((await archived_day(world)).rpartition("/")[2])
    span = f"from={day}T00:00:00Z&to={day + timedelta(days=1)}T00:00:00Z"
    read = await world.api("GET", f"/api/v1/instances?archived=true&{span}")
    assert len(read.json["items"]) == 3, read.json


async def holds(world: World, sent: dict[tuple[str, str], Sent]) -> None:
    """Let the tenant hold its dispatch and refuse backfills, which no other tenant may notice."""
    hold = (
        "insert into horai.tenant_hold (tenant_id, kind, actor) values (1, 'dispatch', 'ada'), (1, 'backfill', 'ada')"
    )
    await world.db.execute(hold)
    operation = ("POST", "/api/v1/jobs/{job}/backfill")
    refused = await world.api(operation[0], sent[operation].path, sent[operation].body)
    assert refused.status == 429, refused.json
    waiting = await world.db.fetchval("select id from horai.instance_live where tenant_id = 1 and state = 0 limit 1")
    assert (await world.api("GET", f"/api/v1/instances/{waiting}/why")).status == 200
    async with world.scope.read() as connection:  # attention keeps its answer for five seconds
        assert len(await controls.holds_in_force(connection, 1)) == 2


async def standstill(world: World) -> None:
    """Let a run hang in a queue with one slot, and let a workflow run be blocked."""
    _, claim = await held(world)
    await begun(world.db, claim.id, timedelta(hours=1))
    await past(world.db, claim.job_id, SAMPLES, timedelta(seconds=1))
    queue = await world.db.fetchval(
        """update horai.queue set max_concurrency = 1 where id = (select queue_id from horai.lane join horai.instance_live live
            on live.lane = lane.id where live.id = $1) returning id""",
        claim.id,
    )
    await world.db.execute(
        """insert into horai.queue_slot (tenant_id, queue_id, n, version, instance_id, fence, node, taken_at)
            values (1, $1, 1, 0, $2, $3, $4, now() - interval '1 h')""",
        *(queue, claim.id, claim.fence, claim.node),
    )
    _, blocked = await run(world)
    await world.db.execute("update horai.workflow_run set phase = 1 where id = $1", blocked)
    for path in ("stuck", "clogged", "blocked"):
        assert len((await world.api("GET", f"/api/v1/scheduler/{path}")).json["items"]) == 1, path
    assert "stuck" in (await world.api("GET", f"/api/v1/instances/{claim.id}/why")).json["why"]
    _, late = await waiting(world)
    await world.db.execute("update horai.instance_live set due = now() - interval '1 h' where id = $1", int(late["id"]))
    async with world.scope.read() as connection:  # attention keeps its answer for five seconds
        now = await world.db.fetchval("select clock_timestamp()")
        assert [one.id for one in await queues_at_limit(connection, 1, now)] == [queue]
        [found] = await full_queues.with_followers(connection, 1, await stuck.stuck_runs(connection, 1, now, 1))
        assert found.waiting > 0
    await world.db.execute("delete from horai.queue_slot where queue_id = $1", queue)
    await world.db.execute("update horai.queue set max_concurrency = null where id = $1", queue)


async def compensated(world: World) -> None:
    """Cancel an instance of the tenant that has a finished step to compensate."""
    _, instance = await waiting(world)
    await world.db.execute(
        """insert into horai.step (instance_id, tenant_id, kind, progress, n, fence, started_at, finished_at, name)
            values ($1, 1, 1, 1, 1, 0, now(), now(), 'charge'), ($1, 1, 4, 0, 1, 0, now(), null, 'charge')""",
        int(instance["id"]),
    )
    cancelled = await world.api("POST", f"/api/v1/instances/{instance['id']}/cancel?compensate=true")
    assert cancelled.json["compensates"] == ["charge#1"]


async def alerts(world: World) -> None:
    """Let the tenant have an alert, a delivery, and a channel that a rule uses."""
    path, body = "/api/v1/alerts", {"name": "told", "kind": "INSTANCE_DEAD", "channels": ["used"]}
    hook = {"name": "used", "kind": "slack", "url": "http://127.0.0.1:9/"}
    assert (await world.api("POST", f"{path}/channels", hook)).status == 201
    assert (await world.api("POST", f"{path}/rules", body)).status == 201
    tested = (await world.api("POST", f"{path}/channels/used/test")).json
    assert (await world.api("POST", f"{path}/deliveries/{tested['id']}/redeliver")).status == 201
    assert (await world.api("POST", f"{path}/deliveries/{tested['id']}/redeliver")).status == 409  # it is still tried
    await world.db.execute(
        """insert into horai.alert (tenant_id, rule_id, object, occurrence, data, since)
            select tenant_id, id, 'x', 0, '{}', now() from horai.alert_rule where name = 'told'"""
    )
    for listed in ("", "/deliveries"):
        assert (await world.api("GET", path + listed)).json["items"]
    assert (await world.api("DELETE", f"{path}/channels/used")).status == 409
    changed = {"kind": "RUN_BLOCKED", "channels": ["used"]}
    assert (await world.api("PUT", f"{path}/rules/told", changed)).status == 200


async def undelivered(world: World) -> None:
    """Give the tenant a parked sink, a channel that fails, and a calendar that a rule uses."""
    sink = {"kind": "webhook", "url": "http://127.0.0.1:9/parked"}
    assert (await world.api("PUT", "/api/v1/sinks/parked", sink)).status == 201
    await world.db.execute(
        "update horai.sink set status = 'PARKED', next_try = now() + interval '1 h' where name = 'parked'"
    )
    channel = {"name": "failing", "kind": "slack", "url": "http://127.0.0.1:9/failing"}
    assert (await world.api("POST", "/api/v1/alerts/channels", channel)).status == 201
    assert (await world.api("POST", "/api/v1/alerts/channels/failing/test")).json["status"] == "FAILED"
    assert (await world.api("PUT", "/api/v1/calendars/ruled", {})).status == 201
    rule = {"kind": "NOT_SUCCESS_BY", "job": "none", "by": "06:00", "calendar": "ruled", "enabled": False}
    assert (
        await world.api("POST", "/api/v1/alerts/rules", {**rule, "name": "ruled", "channels": ["failing"]})
    ).status == 201
    assert (await world.api("DELETE", "/api/v1/calendars/ruled")).status == 409


async def trouble(world: World) -> None:
    """Give the tenant everything that the pages of figures and of trouble show."""
    await world.db.execute("delete from horai.signing_secret where tenant_id <> 1")
    await world.api("PUT", "/api/v1/queues/stopped", {"paused": True})
    await undelivered(world)
    _, claim = await held(world)
    done = {"fence": claim.fence, "result": "SUCCESS"}
    assert (await world.api("POST", f"/api/v1/instances/{claim.id}/outcome", done)).status == 200
    for fields in ({"every": "1h", "startAt": "2999-01-01T00:00:00Z"}, {"every": "1h", "everyFrom": "finish"}):
        await given.job(world.api, **fields)
    await world.db.execute(
        """update horai.instance_live set retry_count = 1, error_code = 'X' where id in (select id from horai.instance_live
            where state in (0, 3) limit 1);
        update horai.instance_live set fire_time = now() - interval '1 h', due = now() - interval '1 h'
            where state in (0, 3) and lane <> 0;
        insert into horai.minute (tenant_id, at, node, started, succeeded, failed, dead, delays)
            values (1, date_trunc('minute', now()), 1, 1, 1, 0, 0, '[]');
        insert into horai.gauge (tenant_id, at, retrying, dead_letters, parked_events)
            values (1, date_trunc('minute', now()), 1, 1, 1);
        insert into horai.reconcile_report (tenant_id, reconciler_id, instance_id, attempt, source_version, error)
            select 1, id, 1000000 + id, 1, 1, 'down' from horai.reconciler limit 1;"""
    )
    assert (await world.api("PUT", "/api/v1/calendars/used", {"weekend": []})).status == 201
    await given.job(world.api, cron="0 9 * * *", calendar={"name": "used"})
    await given.job(world.api, every="1h", everyFrom="finish", calendar={"name": "used"})
    await world.db.execute(
        """insert into horai.catchup (tenant_id, schedule_id, job_id, next_time, until_time)
            select tenant_id, schedule_id, id, now(), now() from horai.job
            where definition -> 'calendar' ->> 'name' = 'used' and schedule_id is not null"""
    )
    assert (await world.api("PUT", "/api/v1/calendars/used", {"holidays": ["12-25"]})).status == 200
    assert (await world.api("GET", "/api/v1/jobs?recent=1&limit=500")).status == 200
    assert (await world.api("GET", "/api/v1/calendars")).status == 200
    assert (await world.api("DELETE", "/api/v1/calendars/used")).status == 409
    times = dict.fromkeys(("fireTime", "diedAt"), "2026-01-01T00:00:00Z")
    letter = {"origin": "known", "job": (await given.job(world.api))["name"], "errorCode": "E", **times}
    for is_dry, found in ((False, 0), (True, 1)):
        told = await world.api("POST", "/api/v1/dlq/import", {"letters": [letter], "dryRun": is_dry})
        assert told.json["known"] == found
    assert (await world.api("PUT", "/api/v1/secrets/used", {"value": "v"})).status == 201
    headers = {"X-Key": {"secret": "used"}}
    await given.job(world.api, target={"type": "http", "url": "http://127.0.0.1:9/hook", "headers": headers})
    assert (await world.api("DELETE", "/api/v1/secrets/used")).status == 409


async def functions(url: str) -> None:
    """Declare functions, one of them encrypted, and add instances of them on each path."""
    app = Horai("conditions", database_url=url)
    app.queue("conditioned", max_concurrency=3)

    @app.job
    async def send(number: int | None) -> None: ...

    @app.job(encrypted=True)
    async def seal(number: int | None) -> None: ...

    async with working(app):
        await send.enqueue(1)
        await send.enqueue_many([1, 2])
        await (await send.enqueue(3, at=datetime(2026, 1, 1, tzinfo=UTC))).result("30s")
        await seal.enqueue(1)


async def search(world: World) -> None:
    """Search the payloads of an encrypted job."""
    job = await given.job(world.api, encrypted=True, searchPaths=["card"])
    assert (await given.put(world.api, job, "k", payload={"card": 1})).status == 201
    found = await world.api("GET", f"/api/v1/instances?job={job['name']}&payload=card%3D1")
    assert len(found.json["items"]) == 1


async def assets(world: World) -> None:
    """Update an asset, read it, and let its job wait for it no longer."""
    name = given.name("asset")
    path = f"/api/v1/assets/{name}"
    job = (await given.job(world.api, when=[name]))["name"]
    assert (await world.api("POST", f"{path}/updates", {"metadata": {"rows": 1}})).status == 201
    assert len((await world.api("GET", path)).json["history"]) == 1
    assert (await world.api("PATCH", f"/api/v1/jobs/{job}", {"when": None})).status == 200


async def quotas(world: World) -> None:
    tenant = "/api/v1/tenants/default"
    limits = {"jobs": 10_000, "liveInstances": 10_000, "enqueuePerSecond": 10_000, "concurrency": 5}
    assert (await world.api("PATCH", tenant, {"quotas": limits})).status == 200
    name = (await given.job(world.api, every="1m"))["name"]
    await world.api("POST", f"/api/v1/jobs/{name}/trigger", Idempotency_Key="quota")
    await world.api("POST", f"/api/v1/jobs/{name}/trigger", Idempotency_Key="quota")
    for _ in range(2):
        await world.api("POST", f"/api/v1/jobs/{name}/backfill", HOUR, Idempotency_Key="backfill")
        await world.api("POST", "/api/v1/signing-secrets", {"expireOld": "0s"})
    for verb in ("pause", "resume"):
        assert (await world.api("POST", f"{tenant}/{verb}")).status == 200
    assert (await world.api("PATCH", tenant, {"quotas": dict.fromkeys(limits)})).status == 200


async def events(world: World) -> None:
    """Forget an old event, as a source does."""
    await world.db.execute(
        """insert into horai.source_event (tenant_id, source, job_id, event_id, at)
            select 1, 'test', id, 'old', now() - interval '1 day' from horai.job where tenant_id = 1 limit 1"""
    )
    async with world.scope.write(autocommit=True) as connection:
        await forget_events(connection, world.scope.tenant_id, timedelta(hours=1), 10)


async def keys(world: World) -> None:
    """Close the server, and use keys."""
    root = await holder(world.api, "platform-admin")
    assert (await root("POST", "/api/v1/tenants", {"name": "acme"})).status == 201
    admin = await holder(root, "admin", "acme")
    await given.job(admin)
    assert (await admin("PUT", "/api/v1/secrets/own", {"value": "v"})).status == 201
    second = await created(admin, "viewer", "acme")
    assert len((await admin("GET", "/api/v1/keys")).json["items"]) == 2
    assert (await admin("DELETE", f"/api/v1/keys/{second['id']}")).status == 200


async def ask(api: Client, method: str, path: str, body: Any) -> None:
    """Send a request, whose answer does not matter: some objects do not fit the operation."""
    headers = {} if method == "GET" else {"Idempotency-Key": given.name("key")}
    async with api.session.request(method, api.base + path, json=body, headers=headers) as response:
        text = await response.text()  # an export runs its statements while it is read
        assert response.status < 500, text


def requests(sent: dict[tuple[str, str], Sent]) -> Iterator[tuple[str, str, Any]]:
    """Yield every operation on objects that the recipes have made, first those that read."""
    known = [(template, _parts(template, each.path)) for (_, template), each in sent.items()]
    for template, verbs in DOCUMENT["paths"].items():
        if "get" not in verbs or template == "/api/v1/events" or template.startswith(OF_ACCESS):
            continue
        names = set(re.findall(r"\{(\w+)\}", template))
        fits = [p for other, p in known if names <= set(p) and other.split("/{")[0] == template.split("/{")[0]]
        for parts in fits[:3] if names else [{}]:
            path = template.format(**parts)
            yield "GET", f"{path}{QUERIES.get(template, '')}", None
    yield from (("GET", path, None) for path in MORE)
    for (method, _), each in sorted(sent.items(), key=lambda one: not one[0][1].endswith("/outcome")):
        yield method, each.path, each.body


QUERIES = {
    "/api/v1/search": "?q=job",
    "/api/v1/jobs/{job}/explain": "?at=2026-01-01T00:00:00Z",
    "/api/v1/forecast/minute": f"?at={(datetime.now(UTC) + timedelta(hours=1)):%Y-%m-%dT%H:%M:00Z}",
    "/api/v1/forecast/what-if": "?every=1h",
}
MORE = (
    "/api/v1/instances?order=oldest&limit=1", "/api/v1/instances?limit=1", "/api/v1/instances?order=oldest&state=DEAD&limit=1",
    "/api/v1/instances?state=DEAD&limit=1",
    "/api/v1/search?q=flow", "/api/v1/search?q=a", "/api/v1/workflows/1", "/api/v1/dlq?order=oldest",
    *(f"/api/v1/jobs?order={order}" for order in ("newest", "name", "nameReversed")),
)  # fmt: skip


def _parts(template: str, path: str) -> dict[str, str]:
    found = re.match(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/?]+)", template), path)
    return found.groupdict() if found else {}


@asynccontextmanager
async def served(url: str, db: Superuser) -> AsyncGenerator[World]:
    node = harness.node(
        url,
        lease=timedelta(seconds=60),
        roles=frozenset({Role.api}),
        encryption_keys=(SOME_KEY,),
        archive_dir=ARCHIVE,
    )
    async with node as api, make.scope(url) as scope:
        yield World(api, db, scope, await make.node(db, timedelta(hours=1), given.name("quiet-node")))
