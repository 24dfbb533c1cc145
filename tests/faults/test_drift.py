"""One instance in a hundred is deleted by hand, again and again, while two nodes run them under a load.

What is due meanwhile runs, and its article stays in the source: nothing may be made again that has ended. `HORAI_LONG=1` takes
ten times as many, and more rounds.
"""

from datetime import datetime
from pathlib import Path

import pytest
from sizes import IS_LONG

from faults.cluster import cluster, database_now
from faults.load import Load, load
from faults.outside import job_document, receiving, until, violations
from horai.db.pool import Platform

ARTICLES = 20_000 if IS_LONG else 2_000
ROUNDS = 30 if IS_LONG else 2
RATE = 300 if IS_LONG else 100
SOON = "3 s"
"""Half of the articles are due so soon, spread over a few seconds; the others are not due in this test."""
TABLE = f"""create table article as
    select 'article:' || lpad(n::text, 6, '0') as key,
        clock_timestamp() + case when n % 2 = 0 then interval '{SOON}' + n * interval '{ROUNDS / ARTICLES:f} s' else interval '1 d' end as execute_time
    from generate_series(1, {ARTICLES}) n"""
QUERY = "select key, execute_time from article where key > $1 order by key limit $2"
DELETE = """delete from horai.instance_live where id in (
    select id from horai.instance_live where job_id = $1 and state <> 1 order by random() limit $2 for update skip locked
)"""
LOST = """select count(*) from article where key not in (
    select key from horai.instance_live where job_id = $1 and key is not null
    union all select key from horai.instance_history where job_id = $1 and key is not null
)"""
TWICE = """select key from (
    select key from horai.instance_live where job_id = $1
    union all select key from horai.instance_history where job_id = $1
) known group by key having count(*) > 1"""


async def compared_since(connection: Platform, since: datetime) -> None:
    """Returns when the first comparison that began after `since` is over."""

    async def is_over() -> bool:
        return await connection.fetchval(
            "select finished_at is not null from horai.reconcile_report where started_at > $1 order by id limit 1",
            since,
        )

    await until(is_over, 60, "a comparison by the schedule")


async def begin(running: Load, target: str) -> int:
    """A job for the articles, and a reconciler that looks every second; the job's id."""
    job = await running.api("POST", "/api/v1/jobs", job_document("publish", target, timeout="30s"))
    source = {"type": "sql", "source": "business", "query": QUERY}
    body = {"name": "articles", "job": "publish", "every": "1s", "source": source}
    made = await running.api("POST", "/api/v1/reconcilers", body)
    assert (job.status, made.status) == (201, 201), (job.json, made.json)
    return int(job.json["id"])


async def test_B16_one_percent_deleted_under_load_is_back_after_one_comparison_and_nothing_runs_twice(
    url: str, connection: Platform, short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_SOURCE_BUSINESS", url)
    with receiving(tmp_path / "hits") as receiver:
        async with (
            cluster(short_place, url, "one", "two", lease=3) as nodes,
            load(nodes.doors, RATE, receiver.url("/load")) as running,
        ):
            await connection.execute(TABLE)
            job = await begin(running, receiver.url("/publish"))
            await compared_since(connection, await database_now(connection))
            for _ in range(ROUNDS):
                assert await connection.execute(DELETE, job, ARTICLES // 100) == f"DELETE {ARTICLES // 100}"
                await compared_since(connection, await database_now(connection))
                assert await connection.fetchval(LOST, job) == 0

            async def are_published() -> bool:
                ended = "select count(*) from horai.instance_history where job_id = $1 and state = 2"
                return await connection.fetchval(ended, job) == ARTICLES // 2

            await until(are_published, 120, "all that is due is published")
            await compared_since(connection, await database_now(connection))
            twice = await connection.fetch(TWICE, job)
            told = await connection.fetchrow(
                "select sum(created) as created, sum(missing) as missing from horai.reconcile_report"
            )
            last = await connection.fetchrow(
                "select * from horai.reconcile_report where finished_at is not null order by id desc limit 1"
            )
        hits = [hit for hit in receiver.hits() if hit.path == "/publish"]
    assert twice == []
    assert told is not None
    assert told["created"] == told["missing"] == ARTICLES + ROUNDS * (ARTICLES // 100)
    assert last is not None
    assert (last["found"], last["missing"], last["left_alone"], last["surplus"]) == (ARTICLES, 0, ARTICLES // 2, 0)
    assert len({hit.unit for hit in hits}) == len({hit.key for hit in hits}) == ARTICLES // 2
    assert await violations(connection) == []
