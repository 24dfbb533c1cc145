"""The overview: the counts of the last hours, and the jobs and instances that need an operator."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
from databases import Superuser, as_node
from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from horai.core.health import EngineHealth
from horai.core.minute_stats import MINUTE, MinuteCounts, minute_of, series
from horai.core.states import State
from horai.db import minute_stats
from horai.db.stage_connection import StageConnection
from horai.engine.minute_stats import MinuteStats
from horai.features.overview import needs_attention

NOON = datetime(2026, 3, 2, 12, 0, 30, tzinfo=UTC)


async def fresh(api: Client, path: str) -> Any:
    """Return an answer that is not in the cache: each caller asks for another number of minutes."""
    return (await api("GET", path)).json


async def test_C23_stats_count_started_and_ended_attempts_per_minute(api: Client, receiver: Receiver) -> None:
    good = await given.scripted(api, receiver, Answer(200))
    bad = await given.scripted(api, receiver, Answer(400))
    for job, state in ((good, "SUCCESS"), (good, "SUCCESS"), (bad, "DEAD")):
        await api.until_state((await given.triggered(api, job))["id"], state)
    asked = iter(range(5, 1440))

    async def is_written() -> Any:
        told = await fresh(api, f"/api/v1/scheduler/stats?minutes={next(asked)}")
        return told if sum(minute["dead"] for minute in told["minutes"]) else None

    told = await given.until(is_written, within=30)

    total = {name: sum(each[name] for each in told["minutes"]) for name in ("started", "succeeded", "failed", "dead")}
    assert total == {"started": 3, "succeeded": 2, "failed": 1, "dead": 1}
    busy = [each for each in told["minutes"] if each["started"]]
    assert all(0 < each["delayP50Ms"] <= each["delayP95Ms"] <= each["delayP99Ms"] for each in busy)
    times = [datetime.fromisoformat(each["at"]) for each in told["minutes"]]
    assert {later - earlier for earlier, later in itertools.pairwise(times)} == {MINUTE}
    assert told["liveExact"] is True
    assert set(told["live"]) == {"INIT", "BLOCKED", "RUNNING", "FAIL"}


async def test_C23_gauges_are_listed_per_minute_and_are_null_for_minutes_without_a_measurement(
    api: Client, db: Superuser
) -> None:
    before = (await db.fetchval("select clock_timestamp()")) - timedelta(minutes=3)
    await db.execute("delete from horai.gauge where at = $1", minute_of(before) - MINUTE)
    await db.execute(
        "insert into horai.gauge (tenant_id, at, retrying, dead_letters, parked_events) values (1, $1, 5, 6, 7)",
        minute_of(before),
    )

    told = await fresh(api, "/api/v1/scheduler/stats?minutes=1439")

    by_minute = {datetime.fromisoformat(each["at"]): each for each in told["minutes"]}
    waited = [
        [by_minute[at][name] for name in ("retrying", "deadLetters", "parkedEvents")]
        for at in (minute_of(before), minute_of(before) - MINUTE)
    ]
    assert waited == [[5, 6, 7], [None, None, None]]


@pytest.mark.parametrize("query", ["minutes=0", "minutes=1441", "minutes=x", "hours=1"])
async def test_a_span_that_makes_no_sense_is_refused(api: Client, query: str) -> None:
    expect.invalid(await api("GET", f"/api/v1/scheduler/stats?{query}"))


async def test_an_answer_holds_for_five_seconds(api: Client) -> None:
    first = await api("GET", "/api/v1/scheduler/attention")
    again = await api("GET", "/api/v1/scheduler/attention")

    assert first.headers["Cache-Control"] == "private, max-age=5"
    assert again.json["computedAt"] == first.json["computedAt"]


async def test_one_answer_lists_all_jobs_queues_nodes_and_refreshes_that_need_attention(
    api: Client, receiver: Receiver, db: Superuser
) -> None:
    dying = await given.scripted(api, receiver, Answer(400))
    await api.until_state((await given.triggered(api, dying))["id"], "DEAD")
    failing = await given.scripted(api, receiver, Answer(503, headers={"Retry-After": "3600"}))
    await api.until_state((await given.triggered(api, failing))["id"], "FAIL")
    late = (await api("POST", "/api/v1/jobs", {"name": given.name("late")})).json
    waiting = await given.triggered(api, late)
    await db.execute(
        "update horai.instance_live set due = due - interval '2 minutes', fire_time = fire_time - interval '2 minutes' where id = $1",
        int(waiting["id"]),
    )
    paused = await given.job(api)
    await api("POST", f"/api/v1/jobs/{paused['id']}/pause", {"note": "later"})
    queue = given.name("queue")
    await api("PUT", f"/api/v1/queues/{queue}", {"paused": True})
    lost = await make.node(db, name="gone")
    await db.execute("update horai.node set fenced_at = clock_timestamp() where incarnation = $1", lost)
    refresh = (
        await api("POST", "/api/v1/jobs", {"name": given.name("r"), "every": "1h", "refresh": {"window": "1d"}})
    ).json
    await api("PUT", f"/api/v1/jobs/{refresh['id']}/entities/old")
    await db.execute("update horai.entity set create_time = create_time - interval '3 days' where key = 'old'")

    async def told() -> Any:
        found = await fresh(api, "/api/v1/scheduler/attention")
        return found if found["late"]["count"] and found["staleRefreshes"] else None

    found = await given.until(told, within=30)

    assert (dying["name"], 1) in [(each["job"], each["instances"]) for each in found["dying"]]
    assert [(each["job"], each["errorCode"]) for each in found["failing"]] == [(failing["name"], "HTTP_503")]
    assert (found["late"]["count"], found["late"]["examples"][0]["id"]) == (1, waiting["id"])
    assert [node["name"] for node in found["lostNodes"]] == ["gone"]
    assert (found["pausedJobs"]["count"], found["pausedJobs"]["examples"][0]["note"]) == (1, "later")
    assert [each["name"] for each in found["pausedQueues"]] == [queue]
    assert (found["backfills"], found["drifts"]) == ([], [])
    assert [(each["job"], each["window"]) for each in found["staleRefreshes"]] == [(refresh["name"], "1d")]


async def test_instances_of_a_paused_queue_are_not_listed_as_late(api: Client, db: Superuser) -> None:
    queue = given.name("held")
    await api("PUT", f"/api/v1/queues/{queue}", {"paused": True})
    held = (await api("POST", "/api/v1/jobs", {"name": given.name("held"), "queue": queue})).json
    free = (await api("POST", "/api/v1/jobs", {"name": given.name("free")})).json
    ids = [int((await given.triggered(api, job))["id"]) for job in (held, free)]
    await db.execute(
        "update horai.instance_live set due = due - interval '1 hour', fire_time = fire_time - interval '1 hour'"
        " where id = any ($1)",
        ids,
    )
    now = await db.fetchval("select clock_timestamp()")

    late = await needs_attention.late_instances(db, 1, now - timedelta(minutes=30), (), 10)

    assert [one.id for one in late] == [ids[1]]
    (paused,) = [one for one in await needs_attention.paused_queues(db, 1, 10) if one.name == queue]
    assert (paused.waiting.count, paused.waiting.more) == (1, False)


async def test_a_paused_job_is_told_with_the_due_instances_that_it_holds(api: Client, db: Superuser) -> None:
    job = (await api("POST", "/api/v1/jobs", {"name": given.name("held")})).json
    await api("POST", f"/api/v1/jobs/{job['id']}/pause", {"note": "later"})
    for _ in range(3):
        await given.triggered(api, job)
    await api("PUT", f"/api/v1/jobs/{job['id']}/instances/far", {"executeTime": "2199-01-01T00:00:00Z"})

    (held,) = [one for one in await needs_attention.paused_jobs(db, 1, 500) if one.name == job["name"]]

    assert (held.waiting.count, held.waiting.more) == (3, False)


async def test_scheduled_and_overdue_instances_are_counted_apart(api: Client) -> None:
    job = (await api("POST", "/api/v1/jobs", {"name": given.name("unclaimed")})).json
    before = await fresh(api, "/api/v1/scheduler/stats")
    await given.triggered(api, job)
    await api("PUT", f"/api/v1/jobs/{job['id']}/instances/later", {"executeTime": "2199-01-01T00:00:00Z"})

    async def counted() -> Any:
        told = await fresh(api, "/api/v1/scheduler/stats")
        grown = (told["live"]["INIT"] - before["live"]["INIT"], told["overdue"] - before["overdue"])
        return grown if grown[0] == 2 else None

    assert await given.until(counted, within=30) == (2, 1)


async def told_of(api: Client, kind: str, name: str, field: str = "job") -> Any:
    """The first of that kind that names it, once an answer is new enough to know of it."""

    async def look() -> Any:
        found = await fresh(api, "/api/v1/scheduler/attention")
        return next((each for each in found[kind] if each[field] == name), None)

    return await given.until(look, within=30)


async def test_a_backfill_is_told_while_it_is_not_over(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200), every="1m")
    wish = {"from": "2026-01-10T00:00:00Z", "to": "2026-01-10T01:00:00Z", "rate": "1/m"}
    backfill = (await api("POST", f"/api/v1/jobs/{job['name']}/backfill", wish)).json

    told = await told_of(api, "backfills", job["name"])

    assert (told["id"], told["status"], told["total"]) == (backfill["id"], "RUNNING", 60)
    assert told["createdAt"] == backfill["createdAt"]
    await api("POST", f"/api/v1/backfills/{backfill['id']}/cancel")


async def test_a_reconciler_is_told_when_its_last_report_has_found_more_than_it_mended(
    api: Client, db: Superuser
) -> None:
    job, name = await given.job(api), given.name("desk")
    source = {"type": "sql", "source": "business", "query": "select $1::text as key, $2::int as n"}
    made = await api("POST", "/api/v1/reconcilers", {"name": name, "job": job["name"], "source": source})
    assert made.status == 201, made.json
    report = (
        "insert into horai.reconcile_report (tenant_id, reconciler_id, instance_id, attempt, source_version, missing, created, surplus)"
        " values (1, $1, $2, 1, 1, $3, $4, $5)"
    )
    await db.execute(report, int(made.json["id"]), -1, 5, 3, 2)

    told = await told_of(api, "drifts", name, "name")

    assert (told["missing"], told["created"], told["surplus"]) == (5, 3, 2)

    await db.execute(report, int(made.json["id"]), -2, 4, 4, 0)

    async def is_calm() -> bool:
        found = await fresh(api, "/api/v1/scheduler/attention")
        return all(each["name"] != name for each in found["drifts"])

    await given.until(is_calm, within=30)


# The minutes alone


def test_minutes_of_several_processes_are_one_series() -> None:
    first = minute_of(NOON)
    found = [
        (first, MinuteCounts(3, 2, 1, 1, ((4, 3),))),
        (first, MinuteCounts(1, 1, 0, 0, ((2, 1), (4, 1)))),
        (first + 2 * MINUTE, MinuteCounts(1)),
        (first - MINUTE, MinuteCounts(9)),
        (first + 3 * MINUTE, MinuteCounts(9)),
    ]

    assert series(found, first, 3) == [MinuteCounts(4, 3, 1, 1, ((2, 1), (4, 4))), MinuteCounts(), MinuteCounts(1)]


async def test_the_stage_writes_a_minute_as_a_whole_and_nothing_while_nothing_happens(
    url: str, connection: Superuser
) -> None:
    async with make.scope(url) as scope:
        job = (await make.job(scope)).id
    health = EngineHealth()
    health.incarnation = 7
    minute_stats_stage = MinuteStats(StageConnection(url, "horai minute_stats"), health, NOON)
    assert await minute_stats_stage.step(NOON) == NOON + timedelta(seconds=10)
    assert await minute_stats.minutes_since(connection, 1, NOON - MINUTE) == []

    health.observe_delays(0.0, [job, job], [0.001, 0.001])
    health.observe_outcomes(0.0, failed=[job], succeeded=[job], dead=[job])
    await minute_stats_stage.step(NOON + timedelta(seconds=10))
    health.observe_outcomes(0.0, succeeded=[job] * 5)
    assert await minute_stats_stage.step(NOON + timedelta(seconds=25)) == minute_of(NOON) + MINUTE
    await minute_stats_stage.step(minute_of(NOON) + MINUTE)
    health.observe_outcomes(0.0, succeeded=[job] * 2)
    await minute_stats_stage.step(minute_of(NOON) + MINUTE + timedelta(seconds=10))

    (first, second) = await minute_stats.minutes_since(connection, 1, minute_of(NOON))
    assert first == (minute_of(NOON), MinuteCounts(2, 6, 1, 1, first[1].delays))
    assert sum(count for _, count in first[1].delays) == 2
    assert second == (minute_of(NOON) + MINUTE, MinuteCounts(0, 2))
    await minute_stats.forget_minutes(connection, timedelta(days=1))
    assert await minute_stats.minutes_since(connection, 1, minute_of(NOON)) == []
    await minute_stats_stage.line.close()


async def test_C2a_counts_go_to_the_tenant_of_their_job(url: str, connection: Superuser) -> None:
    other = await connection.fetchval("insert into horai.tenant (name) values ('shop') returning id")
    async with make.scope(url) as scope:
        job = (await make.job(scope)).id
        theirs = (await make.job(make.of_tenant(scope, other, "shop"))).id
    health = EngineHealth()
    stage = MinuteStats(StageConnection(url, "horai minute_stats"), health, NOON)

    health.observe_delays(0.0, [job, theirs, theirs], [0.001, 3.0, 3.0])
    health.observe_outcomes(0.0, failed=[theirs], succeeded=[job, 987654])
    await stage.flush()
    health.observe_outcomes(0.0, succeeded=[theirs])
    await stage.flush()
    await stage.line.close()

    (own,) = await minute_stats.minutes_since(connection, 1, NOON - MINUTE)
    (shop,) = await minute_stats.minutes_since(connection, other, NOON - MINUTE)
    assert (own[1].started, own[1].succeeded, own[1].failed) == (1, 1, 0)
    assert (shop[1].started, shop[1].succeeded, shop[1].failed) == (2, 1, 1)
    assert shop[1].delay_quantile(0.5) > 2 > own[1].delay_quantile(0.5)
    assert health.by_job == {}, "also those of a job without a row"


async def test_a_tenant_that_is_being_deleted_gets_no_counts(url: str, connection: Superuser) -> None:
    other = await connection.fetchval("insert into horai.tenant (name) values ('shop') returning id")
    async with make.scope(url) as scope:
        theirs = (await make.job(make.of_tenant(scope, other, "shop"))).id
    await connection.execute("update horai.tenant set paused_at = now(), deleting_at = now() where id = $1", other)
    health = EngineHealth()
    stage = MinuteStats(StageConnection(as_node(url), "horai minute_stats"), health, NOON)

    health.observe_outcomes(0.0, succeeded=[theirs])
    await stage.flush()
    await stage.line.close()

    assert await minute_stats.minutes_since(connection, other, NOON - MINUTE) == []


async def test_few_live_instances_are_counted_and_many_are_estimated(
    connection: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connection.execute(
        "insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard, state)"
        " select n, 1, now(), now(), now(), now(), -n, 1, 1, n % 32, case when n % 4 = 0 then 3 else 0 end"
        " from generate_series(1, 8000) n"
    )
    counted = await minute_stats.count_states(connection, 1)
    assert (counted.instances, counted.is_exact) == ({State.INIT: 6000, State.FAIL: 2000}, True)
    assert counted.overdue == 6000

    monkeypatch.setattr("horai.db.minute_stats.COUNTED", 4_000)
    await connection.execute("analyze horai.instance_live")
    await connection.execute("select pg_stat_force_next_flush()")
    estimated = await minute_stats.count_states(connection, 1)
    assert not estimated.is_exact
    assert 3_000 < estimated.instances[State.INIT] < 9_000
    assert estimated.overdue == estimated.instances[State.INIT]
