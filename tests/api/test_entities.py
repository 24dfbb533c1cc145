"""Entities over REST."""

from typing import Any

import pytest
from databases import Superuser
from harness import Client
from receiver import Answer, Receiver
from sizes import IS_LONG

from api import expect, given

ENTITIES = 1_000_000 if IS_LONG else 20_000


async def refresh_job(api: Client, url: str = "http://127.0.0.1:9/hook", **refresh: Any) -> Any:
    return await given.job(api, url, every="1d", refresh={"window": "10d", **refresh})


def path(job: Any, *more: str) -> str:
    return "/".join([f"/api/v1/jobs/{job['name']}", *more])


async def test_D3_a_refresh_job_shows_its_tick_and_its_window_as_its_own(api: Client):
    job = await refresh_job(api, limit=50)

    read = (await api("GET", path(job))).json
    assert (read["every"], read["refresh"]) == ("1d", {"window": "10d", "limit": 50, "runOnAdd": False})
    plain = await given.job(api)
    everyone, refreshed, others = [
        [each["name"] for each in await given.listed(api, f"/api/v1/jobs{query}")]
        for query in ("", "?refresh=true", "?refresh=false")
    ]
    assert not [name for name in everyone if ":" in name]
    assert job["name"] in refreshed
    assert plain["name"] in others
    assert sorted(refreshed + others) == sorted(everyone)
    coming = (await api("GET", path(job, "next"))).json
    assert len(coming["fires"]) == 10

    patched = await api("PATCH", path(job), {"refresh": {"window": "3d"}})
    assert patched.json["refresh"] == {"window": "3d", "limit": 50, "runOnAdd": False}


async def test_D2_an_entity_is_added_changed_read_and_removed(api: Client):
    job = await refresh_job(api)

    made = await api("PUT", path(job, "entities", "sku/1"), {"payload": {"n": 1.50}})
    again = await api("PUT", path(job, "entities", "sku/1"))
    read = await api("GET", path(job, "entities", "sku/1"))
    gone = await api("DELETE", path(job, "entities", "sku/1"))

    assert (made.status, made.json["status"], made.json["payload"]) == (201, "NOT_RUN", {"n": 1.5})
    assert (again.status, again.json["payload"], read.json) == (200, None, again.json)
    assert gone.status == 204
    expect.problem(await api("GET", path(job, "entities", "sku/1")), 404, "SCH_404_NOT_FOUND", "has no entity")
    expect.problem(await api("DELETE", path(job, "entities", "sku/1")), 404, "SCH_404_NOT_FOUND", "has no entity")


async def test_D1_ten_thousand_are_added_at_once_and_listed_page_by_page(api: Client):
    job = await refresh_job(api)
    items = [{"key": f"a{n:05}"} for n in range(9_990)] + [{"key": f"b{n}", "payload": n} for n in range(10)]

    first = await api("POST", path(job, "entities", "batch"), {"items": items})
    second = await api("POST", path(job, "entities", "batch"), {"items": [*items[:5], {"key": "new"}]})

    assert (first.json, second.json) == ({"added": 10_000, "known": 0}, {"added": 1, "known": 5})
    found = await given.listed(api, path(job, "entities") + "?prefix=b")
    assert [(entity["key"], entity["payload"]) for entity in found] == [(f"b{n}", n) for n in range(10)]
    assert await given.listed(api, path(job, "entities") + "?status=FAILED") == []
    assert await given.listed(api, path(job, "entities") + "?prefix=b&olderThan=1h") == []
    assert len((await api("GET", path(job, "entities") + "?olderThan=0s&limit=3")).json["items"]) == 3


@pytest.mark.timeout(1200 if IS_LONG else 120)
async def test_D1_all_products_are_imported_page_by_page_and_again_without_a_copy(api: Client, db: Superuser):
    job = await refresh_job(api)
    for first in [*range(0, ENTITIES, 10_000), 0]:
        items = [{"key": f"sku{n:07}"} for n in range(first, first + 10_000)]
        assert (await api("POST", path(job, "entities", "batch"), {"items": items})).status == 200

    assert await db.fetchval("select count(*) from horai.entity where job_id = $1", int(job["id"])) == ENTITIES


async def test_D9_D15_the_life_of_entities_from_tick_to_tick(api: Client, receiver: Receiver):
    job = await given.scripted(api, receiver, every="1d", refresh={"window": "10d"})
    await api("POST", path(job, "entities", "batch"), {"items": [{"key": "a"}, {"key": "b"}]})
    fresh = (await api("GET", path(job, "refresh"))).json

    ticked = await api("POST", path(job, "trigger"), Idempotency_Key=given.name("key"))
    await given.until(lambda: _covers(api, job))
    done = await api.until_state(ticked.json["instance"]["id"], "SUCCESS")

    told = (await api("GET", path(job, "refresh"))).json
    batch = ticked.json["instance"]["id"]
    assert (fresh["coverage"], fresh["neverRun"], fresh["lastTick"]) == (0.0, 2, None)
    assert (told["coverage"], told["neverRun"], told["due"], told["overdue"], told["running"]) == (1.0, 0, 0, 0, 0)
    assert (told["lastTick"]["batchNo"], told["lastTick"]["loaded"], told["lastTick"]["succeeded"]) == (batch, 2, 2)
    assert done["result"] == {"due": 2, "loaded": 2, "running": 0, "succeeded": 2, "failed": 0}
    loaded = await given.listed(api, path(job, "entities") + f"?batch={batch}")
    assert [(entity["key"], entity["status"], entity["remark"]) for entity in loaded] == [
        ("a", "SUCCESS", "执行成功"),
        ("b", "SUCCESS", "执行成功"),
    ]
    assert sorted(hit.json["key"] for hit in given.hits(receiver, job)) == ["a", "b"]


async def test_entities_whose_last_run_failed_are_told_apart_from_those_that_are_fresh(api: Client, receiver: Receiver):
    answers = (Answer(410), Answer(200))
    job = await given.scripted(api, receiver, *answers, every="1d", refresh={"window": "10d"}, retry={"maxRetry": 0})
    await api("POST", path(job, "entities", "batch"), {"items": [{"key": key} for key in "abc"]})

    await api("POST", path(job, "trigger"), Idempotency_Key=given.name("key"))
    await given.until(lambda: _covers(api, job))

    told = (await api("GET", path(job, "refresh"))).json
    assert (told["coverage"], told["failed"], told["lastTick"]["failed"]) == (1.0, 1, 1)


async def _covers(api: Client, job: Any) -> bool:
    return (await api("GET", path(job, "refresh"))).json["coverage"] == 1.0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"refresh": {"window": "10d"}}, "has no tick"),
        ({"every": "1d", "refresh": {}}, "refresh.window: is missing"),
        ({"every": "1d", "refresh": {"window": "10d", "often": 1}}, "unknown field"),
    ],
)
async def test_a_job_with_invalid_refresh_options_is_refused(api: Client, body: Any, words: str):
    expect.invalid(await api("POST", "/api/v1/jobs", {"name": given.name(), **body}), words)


async def test_invalid_refresh_and_entity_requests_are_refused(api: Client):
    job, plain = await refresh_job(api), await given.job(api)

    expect.invalid(await api("GET", path(plain, "refresh")), "not a refresh job")
    expect.invalid(await api("PUT", path(plain, "entities", "a")), "not a refresh job")
    expect.invalid(await api("GET", path(job, "entities") + "?olderThan=soon"), "olderThan")
    expect.invalid(await api("GET", path(job, "entities") + "?cursor=!"), "cursor")
    expect.invalid(await api("POST", path(job, "entities", "batch"), {"items": []}))
    expect.invalid(await api("POST", "/api/v1/jobs", {"name": "a:refresh"}), "is not a name: use letters")
    expect.problem(await api("GET", "/api/v1/jobs/nobody/refresh"), 404, "SCH_404_NOT_FOUND")


AGES = {"b": 3, "a": 3, "d": None, "c": 3, "f": 1, "e": None, "g": 7}
"""Entities in the order of their ids, and the days since their last runs; None for those that have not run."""


@pytest.mark.parametrize(("order", "keys"), [("stalest", "degbacf"), ("freshest", "fcabged"), ("key", "abcdefg")])
async def test_entities_are_listed_by_age_and_those_that_have_not_run_are_the_stalest(
    api: Client, db: Superuser, order: str, keys: str
):
    job = await refresh_job(api)
    for key in AGES:
        await api("PUT", path(job, "entities", key))
    for key, days in AGES.items():
        await db.execute(
            "update horai.entity set fresh_at = timestamptz '2026-05-09' - make_interval(days => $3)"
            " where job_id = $1 and key = $2 and $3::int is not null",
            int(job["id"]),
            key,
            days,
        )

    for size in (1, 2, 3, 7):
        found, cursor = "", ""
        for _ in range(9):
            reply = (await api("GET", path(job, "entities") + f"?order={order}&limit={size}{cursor}")).json
            found += "".join(each["key"] for each in reply["items"])
            cursor = f"&cursor={reply['nextCursor']}"
            if reply["nextCursor"] is None:
                break
        assert found == keys, size
    narrowed = (await api("GET", path(job, "entities") + f"?order={order}&prefix=e&olderThan=0s&status=NOT_RUN")).json
    assert [each["key"] for each in narrowed["items"]] == ["e"]


@pytest.mark.parametrize("query", ["order=size", "order=stalest&cursor=nonsense", "order=freshest&cursor=YQ"])
async def test_an_order_or_a_cursor_that_makes_no_sense_is_refused(api: Client, query: str):
    job = await refresh_job(api)

    expect.invalid(await api("GET", path(job, "entities") + f"?{query}"))
