"""`/reconcilers`: over HTTP, against a node that compares by itself."""

from datetime import datetime
from typing import Any

import pytest
from harness import Client

from api import expect, given
from horai.db.pool import Platform

ARTICLES = "select key, execute_time from article where desk = '{desk}' and key > $1 order by key limit $2"


async def desk(api: Client, db: Platform, articles: int = 3, **fields: Any) -> tuple[Any, str]:
    """A job, and a desk with articles for it; the body that makes a reconciler of both, and the desk's name."""
    job, name = await given.job(api), given.name("desk")
    await db.execute("create table if not exists article (key text, desk text, execute_time timestamptz)")
    await db.execute(
        "insert into article select 'a:' || lpad(n::text, 5, '0'), $1, '2999-01-01Z' from generate_series(1, $2) n",
        name,
        articles,
    )
    source = {"type": "sql", "source": "business", "query": ARTICLES.format(desk=name)}
    return {"name": name, "job": job["name"], "source": source, **fields}, name


async def reports(api: Client, name: str) -> list[Any]:
    return (await api("GET", f"/api/v1/reconcilers/{name}/reports")).json["items"]


async def test_B16_deleted_instances_are_created_again_once_within_one_period(api: Client, db: Platform) -> None:
    body, name = await desk(api, db, 1_500, every="1s")
    made = await api("POST", "/api/v1/reconcilers", body)
    assert made.status == 201, made.json
    own = "from horai.instance_live where job_id = $1"

    async def is_complete() -> bool:
        return await db.fetchval(
            f"select count(*) = 1500 and count(distinct key) = 1500 {own}", int(made.json["jobId"])
        )

    await given.until(is_complete)
    gone = await db.execute(
        f"delete from horai.instance_live where id in (select id {own} order by random() limit 1000)",
        int(made.json["jobId"]),
    )
    assert gone == "DELETE 1000"
    deleted_at = await db.fetchval("select clock_timestamp()")

    async def told() -> Any:
        """All that ended until the first which began after the deletion; some may be made by one that was under way."""
        ended = [one for one in reversed(await reports(api, name)) if one["finishedAt"]]
        begun = [datetime.fromisoformat(one["startedAt"]) > deleted_at for one in ended]
        return ended[: begun.index(True) + 1] if any(begun) else None

    comparisons = await given.until(told)

    assert await is_complete()
    await api("DELETE", f"/api/v1/reconcilers/{name}")
    events = await db.fetchval(
        "select count(*) from horai.event where kind = 'RECONCILE_DRIFT' and job_id = $1", int(made.json["jobId"])
    )
    assert sum(one["created"] for one in comparisons) == sum(one["missing"] for one in comparisons) == 2_500
    assert {(one["found"], one["surplus"], one["leftAlone"]) for one in comparisons} == {(1_500, 0, 0)}
    assert events == sum(1 for one in comparisons if one["missing"])
    assert all(len(one["examples"]["missing"]) == min(20, one["missing"]) for one in comparisons)


async def test_B16_a_reconciler_runs_once_per_idempotency_key_and_its_instance_returns_the_report(
    api: Client, db: Platform
) -> None:
    body, name = await desk(api, db)
    made = (await api("POST", "/api/v1/reconcilers", body)).json
    expect.problem(await api("POST", f"/api/v1/reconcilers/{name}/run"), 400, "SCH_400_IDEMPOTENCY_KEY_REQUIRED")

    run = await api("POST", f"/api/v1/reconcilers/{made['id']}/run", Idempotency_Key="now")
    again = await api("POST", f"/api/v1/reconcilers/{name}/run", Idempotency_Key="now")

    assert run.status == 202
    expect.problem(again, 409, "SCH_409_DUPLICATE")
    ended = await api.until_state(run.json["instance"]["id"], "SUCCESS")
    (report,) = await reports(api, name)
    assert (ended["result"]["created"], ended["result"]["reportId"]) == (3, report["id"])
    assert (report["instanceId"], report["error"]) == (ended["id"], None)
    assert report["finishedAt"]


async def test_B16_a_reconciler_is_listed_read_and_deleted_without_what_it_made(api: Client, db: Platform) -> None:
    body, name = await desk(api, db, cron="0 3 * * *", timezone="Asia/Shanghai")
    made = (await api("POST", "/api/v1/reconcilers", body, Idempotency_Key=name)).json
    expect.problem(await api("POST", "/api/v1/reconcilers", body, Idempotency_Key=name), 409, "SCH_409_DUPLICATE")
    expect.problem(await api("POST", "/api/v1/reconcilers", body), 409, "SCH_409_DUPLICATE", name)

    listed = (await api("GET", "/api/v1/reconcilers?limit=1")).json
    read = (await api("GET", f"/api/v1/reconcilers/{made['id']}")).json

    assert listed["items"][0] == read == made
    assert listed["nextCursor"]
    assert (read["job"], read["cron"], read["timezone"], read["status"]) == (
        body["job"],
        "0 3 * * *",
        "Asia/Shanghai",
        "ACTIVE",
    )
    assert (await api("DELETE", f"/api/v1/reconcilers/{name}")).status == 204
    expect.problem(await api("GET", f"/api/v1/reconcilers/{name}"), 404, "SCH_404_NOT_FOUND", name)
    expect.problem(await api("GET", f"/api/v1/reconcilers/{made['id']}/reports"), 404, "SCH_404_NOT_FOUND")


async def test_B16_the_list_shows_the_last_report_and_the_next_fire_of_each_reconciler(
    api: Client, db: Platform
) -> None:
    body, name = await desk(api, db, cron="0 3 * * *")
    made = await api("POST", "/api/v1/reconcilers", body)
    assert (made.json["lastReport"], made.json["nextFire"][11:16]) == (None, "03:00")
    run = await api("POST", f"/api/v1/reconcilers/{name}/run", Idempotency_Key="now")
    await api.until_state(run.json["instance"]["id"], "SUCCESS")

    listed = (await api("GET", "/api/v1/reconcilers?limit=1")).json["items"][0]

    (report,) = await reports(api, name)
    fields = ("id", "startedAt", "finishedAt", "found", "missing", "created", "surplus", "error")
    assert listed["lastReport"] == {field: report[field] for field in fields}
    assert (listed["lastReport"]["created"], listed["nextFire"]) == (3, made.json["nextFire"])


async def test_B16_a_reconciler_is_paused_and_resumed(api: Client, db: Platform) -> None:
    body, name = await desk(api, db, every="1h")
    made = (await api("POST", "/api/v1/reconcilers", body)).json

    held = await api("POST", f"/api/v1/reconcilers/{name}/pause", {"note": "moving house"})
    resumed = await api("POST", f"/api/v1/reconcilers/{made['id']}/resume")

    assert (held.status, resumed.status) == (200, 200)
    assert (held.json["status"], held.json["note"], held.json["nextFire"]) == ("PAUSED", "moving house", None)
    assert (resumed.json["status"], resumed.json["note"]) == ("ACTIVE", None)
    assert resumed.json["nextFire"]
    expect.problem(await api("POST", "/api/v1/reconcilers/nobody/pause"), 404, "SCH_404_NOT_FOUND")


async def test_B16_a_reconcilers_times_and_source_are_changed_by_who_has_read_it(api: Client, db: Platform) -> None:
    body, name = await desk(api, db)
    made = await api("POST", "/api/v1/reconcilers", body)
    path = f"/api/v1/reconcilers/{name}"
    http = {"type": "http", "url": "https://example.com/wanted", "headers": {"Authorization": "hunter2"}}

    timed = await api("PATCH", path, {"every": "1h"}, If_Match=made.headers["ETag"])
    stale = await api("PATCH", path, {"every": "2h"}, If_Match=made.headers["ETag"])
    moved = await api("PATCH", path, {"source": http, "cron": "0 3 * * *", "timezone": "Asia/Shanghai"})
    freed = await api("PATCH", path, {"cron": None, "timezone": None})

    assert timed.status == 200, timed.json
    assert (timed.json["every"], timed.json["version"]) == ("1h", made.json["version"] + 1)
    assert timed.headers["ETag"] == f'"{timed.json["version"]}"'
    expect.problem(stale, 412, "SCH_412_PRECONDITION", name)
    assert (moved.json["every"], moved.json["cron"], moved.json["timezone"]) == (None, "0 3 * * *", "Asia/Shanghai")
    assert moved.json["source"] == {**http, "headers": {"Authorization": "***"}}
    assert (freed.json["cron"], freed.json["nextFire"], freed.json["source"]["type"]) == (None, None, "http")
    changes = await db.fetch(
        "select data::text from horai.event where kind = 'RECONCILER_CHANGED' and job_id = $1 order by at",
        int(made.json["runJobId"]),
    )
    assert len(changes) == 3
    assert not any("hunter2" in row["data"] for row in changes)
    expect.problem(await api("DELETE", path, If_Match=made.headers["ETag"]), 412, "SCH_412_PRECONDITION")
    assert (await api("DELETE", path, If_Match=freed.headers["ETag"])).status == 204


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"every": "soon"}, ("every",)),
        ({"source": None}, ("cannot be removed",)),
        ({"source": {"type": "sql"}}, ("source.query", "source.source")),
        ({"name": "other"}, ("name",)),
        ({"job": "other"}, ("job",)),
    ],
)
async def test_B16_a_change_that_makes_no_sense_is_refused_whole(
    api: Client, db: Platform, change: Any, words: tuple[str, ...]
) -> None:
    body, name = await desk(api, db, every="1h")
    made = (await api("POST", "/api/v1/reconcilers", body)).json

    expect.invalid(await api("PATCH", f"/api/v1/reconcilers/{name}", change), *words)

    assert (await api("GET", f"/api/v1/reconcilers/{name}")).json["version"] == made["version"]


async def test_B16_passwords_and_headers_of_a_source_are_never_shown(api: Client, db: Platform) -> None:
    body, name = await desk(api, db)
    source = {
        "type": "sql",
        "query": body["source"]["query"],
        "databaseUrl": "postgresql://shop:hunter2@db.example.com:5432/shop?sslmode=require&sslpassword=hunter2",
    }
    made = await api("POST", "/api/v1/reconcilers", {**body, "source": source})
    http = {"type": "http", "url": "https://example.com/wanted", "headers": {"Authorization": "Bearer hunter2"}}
    other = await api("POST", "/api/v1/reconcilers", {**body, "name": given.name("desk"), "source": http})

    assert (made.status, other.status) == (201, 201)
    assert made.json["source"]["databaseUrl"] == (
        "postgresql://shop:***@db.example.com:5432/shop?sslmode=require&sslpassword=***"
    )
    assert other.json["source"]["headers"] == {"Authorization": "***"}
    seen = [
        await api("GET", path) for path in ("/api/v1/reconcilers", f"/api/v1/jobs/{name}", "/api/v1/jobs?limit=500")
    ]
    assert not any("hunter2" in str(reply.json) for reply in seen)
    told = await db.fetch("select data::text from horai.event")
    assert not any("hunter2" in (row["data"] or "") for row in told)


SQL = {"type": "sql", "query": ARTICLES, "source": "business"}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"type": "sql"}, ("source.query", "source.source")),
        ({**SQL, "query": "select 1"}, ("needs $1",)),
        ({**SQL, "databaseUrl": "postgresql://h/d"}, ("either source",)),
        ({"type": "sql", "query": ARTICLES, "databaseUrlEnv": "BUSINESS_DB_URL"}, ("source.databaseUrlEnv",)),
        ({"type": "sql", "query": ARTICLES, "databaseUrl": "mysql://h/d"}, ("postgresql://",)),
        ({"type": "sql", "query": ARTICLES, "databaseUrl": "postgresql:///d?host=/tmp/socket"}, ("one host",)),
        ({"type": "sql", "query": ARTICLES, "databaseUrl": "postgresql://h/d?host=/tmp"}, ("one host",)),
        ({"type": "sql", "query": ARTICLES, "databaseUrl": "postgresql://%2Ftmp/d"}, ("one host",)),
        ({"type": "sql", "query": ARTICLES, "databaseUrl": "postgresql://a,b/d"}, ("one host",)),
        ({"type": "sql", "query": ARTICLES, "databaseUrl": "postgresql://u:p@inside@h/d"}, ("one host",)),
        ({"type": "sql", "query": ARTICLES, "databaseUrl": "postgresql://h/d?sslkey=/etc/key"}, ("files",)),
        ({"type": "http", "url": "ftp://h/"}, ("http://",)),
        ({"type": "http", "url": "http://h/", "query": ARTICLES}, ("belongs to a source of type sql",)),
        ({"type": "python"}, ("sql",)),
    ],
)
async def test_B16_a_source_that_cannot_be_read_is_refused(
    api: Client, db: Platform, source: Any, words: tuple[str, ...]
) -> None:
    body, name = await desk(api, db)

    refused = await api("POST", "/api/v1/reconcilers", {**body, "source": source})

    expect.invalid(refused, *words)
    expect.problem(await api("GET", f"/api/v1/jobs/{name}"), 404, "SCH_404_NOT_FOUND")


async def test_S2_no_name_but_that_of_an_allowed_source_leads_to_a_database(
    api: Client, db: Platform, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("DATABASE_URL", "HORAI_DATABASE_URL", "HORAI_SOURCE_LATE"):
        monkeypatch.setenv(variable, database)
    body, name = await desk(api, db)
    names = ("DATABASE_URL", "HORAI_DATABASE_URL", "late", "nobody", "Business", "business ", "../business", "", "PATH")

    told = set[str]()
    for each in names:
        refused = await api("POST", "/api/v1/reconcilers", {**body, "source": {**SQL, "source": each}})
        expect.invalid(refused, "source.source")
        told.add(str(refused.json))

    assert len(told) == 1
    expect.problem(await api("GET", f"/api/v1/jobs/{name}"), 404, "SCH_404_NOT_FOUND")
    made = await api("POST", "/api/v1/reconcilers", body)
    changed = await api("PATCH", f"/api/v1/reconcilers/{name}", {"source": {**SQL, "source": "DATABASE_URL"}})
    assert made.status == 201, made.json
    expect.invalid(changed, "source.source")


async def test_B16_an_unknown_job_is_not_watched_over(api: Client, db: Platform) -> None:
    body, name = await desk(api, db)

    refused = await api("POST", "/api/v1/reconcilers", {**body, "job": "nobody"})

    expect.problem(refused, 404, "SCH_404_NOT_FOUND", "nobody")
    expect.problem(await api("GET", f"/api/v1/jobs/{name}"), 404, "SCH_404_NOT_FOUND")


async def test_the_handlers_of_the_house_are_nobodys_to_use(api: Client, db: Platform) -> None:
    house = {"type": "worker", "handler": "horai:reconcile"}
    body, name = await desk(api, db)
    assert (await api("POST", "/api/v1/reconcilers", body)).status == 201
    own = await given.job(api)

    for refused in (
        await api("POST", "/api/v1/jobs", {"name": given.name(), "target": house}),
        await api("PATCH", f"/api/v1/jobs/{own['name']}", {"target": house}),
        await api("PATCH", f"/api/v1/jobs/{name}", {"target": {"type": "worker", "handler": "mine"}}),
    ):
        expect.invalid(refused, "belongs to Horai itself")
    expect.invalid(await api("PATCH", f"/api/v1/jobs/{name}", {"every": "5m"}), "belongs to Horai itself")
    expect.problem(await api("DELETE", f"/api/v1/jobs/{name}"), 409, "SCH_409_CONFLICT")


async def test_a_job_that_is_watched_over_is_not_deleted_before_its_reconciler(api: Client, db: Platform) -> None:
    body, name = await desk(api, db)
    assert (await api("POST", "/api/v1/reconcilers", body)).status == 201

    refused = await api("DELETE", f"/api/v1/jobs/{body['job']}")
    assert (refused.status, refused.json["reconciler"]) == (409, name)
    assert (await api("GET", f"/api/v1/jobs/{body['job']}")).status == 200

    assert (await api("DELETE", f"/api/v1/reconcilers/{name}")).status == 204
    assert (await api("DELETE", f"/api/v1/jobs/{body['job']}")).status == 204
