"""Lists: keyset paging over live and finished instances, and their filters."""

import asyncio
from typing import Any

import pytest

from api import expect, given
from harness import Client
from horai.db.pool import Dedicated
from receiver import HANG, Answer, Receiver


async def test_C22_paging_gives_every_instance_once_while_rows_move_from_live_to_history(api: Client) -> None:
    job = await given.job(api)
    items = [{"key": f"k{n}", "executeTime": f"2999-01-{1 + n // 4:02}T00:00:00Z"} for n in range(60)]
    made = (await api("POST", f"/api/v1/jobs/{job['id']}/instances/batch", {"items": items})).json["items"]
    path = f"/api/v1/jobs/{job['id']}/instances?limit=7"
    seen: list[Any] = []
    cursor: str | None = ""
    turn = 0

    while cursor is not None:
        page = (await api("GET", path + (f"&cursor={cursor}" if cursor else ""))).json
        seen += page["items"]
        cursor = page["nextCursor"]
        await asyncio.gather(*(api("POST", f"/api/v1/instances/{m['instanceId']}/cancel") for m in made[turn::10]))
        turn += 1

    assert sorted(row["id"] for row in seen) == sorted(item["instanceId"] for item in made)
    order = [(row["fireTime"], int(row["id"])) for row in seen]
    assert order == sorted(order, reverse=True)


async def test_C22_paging_is_stable_while_instances_run(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    items = [{"key": f"k{n}"} for n in range(40)]
    path = f"/api/v1/jobs/{job['id']}/instances"
    made = (await api("POST", f"{path}/batch", {"items": items})).json["items"]
    expected = sorted(item["instanceId"] for item in made)

    while True:
        rows = await given.listed(api, path)
        assert sorted(row["id"] for row in rows) == expected
        if all(row["state"] == "SUCCESS" for row in rows):
            break
        await asyncio.sleep(0)


@pytest.fixture(scope="module")
def one_of_each(runner: asyncio.Runner, api: Client, receiver: Receiver) -> dict[str, Any]:
    """A job with an instance in every state that can be had, by state."""

    async def make() -> dict[str, Any]:
        script = [Answer(200), Answer(503, headers={"Retry-After": "3600"}), Answer(400), HANG]
        job = await given.scripted(api, receiver, *script, timeout="60s", tags=["blue", "all"], queue="lists")
        made: dict[str, Any] = {"job": job}
        for state in ("SUCCESS", "FAIL", "DEAD", "RUNNING"):
            instance = (await given.put(api, job, state.lower(), None)).json["instance"]
            made[state] = await api.until_state(instance["id"], state)
        await given.until(lambda: _hit(receiver, job, 4))
        for state in ("CANCELLED", "INIT"):
            made[state] = (await given.put(api, job, state.lower())).json["instance"]
        await api("POST", f"/api/v1/instances/{made['CANCELLED']['id']}/cancel")
        return made

    return runner.run(make())


async def _hit(receiver: Receiver, job: Any, count: int) -> bool:
    return len(given.hits(receiver, job)) >= count


@pytest.mark.parametrize(
    ("word", "states"),
    [
        ("SUCCESS", {"SUCCESS"}),
        ("DONE", {"SUCCESS"}),
        ("2", {"SUCCESS"}),
        ("INIT", {"INIT"}),
        ("PENDING", {"INIT"}),
        ("0", {"INIT"}),
        ("RUNNING", {"RUNNING"}),
        ("1", {"RUNNING"}),
        ("FAIL", {"FAIL"}),
        ("3", {"FAIL"}),
        ("FAILED", {"FAIL", "DEAD"}),
        ("DEAD", {"DEAD"}),
        ("CANCELLED", {"CANCELLED"}),
        ("BLOCKED", set[str]()),
        ("done,RUNNING", {"SUCCESS", "RUNNING"}),
    ],
)
async def test_C22_a_list_is_narrowed_by_state(
    api: Client, one_of_each: dict[str, Any], word: str, states: set[str]
) -> None:
    for path in (f"/api/v1/jobs/{one_of_each['job']['name']}/instances?", "/api/v1/instances?queue=lists&"):
        rows = await given.listed(api, f"{path}state={word}")
        assert {row["state"] for row in rows} == states
        assert {row["id"] for row in rows} == {one_of_each[state]["id"] for state in states}


async def test_C22_a_list_is_narrowed_by_key_time_tag_queue_and_job(api: Client, one_of_each: dict[str, Any]) -> None:
    job = one_of_each["job"]
    every = {one_of_each[state]["id"] for state in one_of_each if state != "job"}
    far = {one_of_each[state]["id"] for state in ("CANCELLED", "INIT")}
    of_job = f"/api/v1/jobs/{job['id']}/instances"

    for path, expected in (
        (f"{of_job}?key=dead", {one_of_each["DEAD"]["id"]}),
        (f"{of_job}?key=nobody", set[str]()),
        (f"{of_job}?from={given.FAR}", far),
        (f"{of_job}?to={given.FAR}", every - far),
        (f"{of_job}?from=2999-01-01T08:00:00%2B08:00&to=2999-01-01T00:00:00.001Z", far),
        (f"{of_job}?tag=blue", every),
        (f"{of_job}?tag=red", set[str]()),
        ("/api/v1/instances?tag=blue", every),
        ("/api/v1/instances?queue=lists", every),
        ("/api/v1/instances?queue=nobody", set[str]()),
        (f"/api/v1/instances?job={job['name']}", every),
        (f"/api/v1/instances?job={job['id']}&key=init", {one_of_each["INIT"]["id"]}),
    ):
        assert {row["id"] for row in await given.listed(api, path)} == expected, path


async def test_a_listed_instance_has_every_field_of_the_contract(api: Client, one_of_each: dict[str, Any]) -> None:
    fields = {
        "id", "job", "jobId", "key", "state", "reason", "fireTime", "executeTime", "attempt", "retryCount", "fence",
        "queue", "priority", "payload", "errorCode", "errorMsg", "startedAt", "finishedAt", "node", "result",
        "supersedes", "replayOf",
    }  # fmt: skip
    for row in await given.listed(api, f"/api/v1/jobs/{one_of_each['job']['id']}/instances"):
        assert fields <= row.keys()
        detail = await given.read(api, row)
        assert {"attempts", "timeline"} <= detail.keys()


async def test_jobs_are_listed_page_by_page_and_narrowed(api: Client) -> None:
    mine = given.name("tag")
    jobs = [await given.job(api, tags=[mine], queue=f"q{n % 2}-{mine}") for n in range(9)]
    await api("POST", f"/api/v1/jobs/{jobs[0]['id']}/pause")
    ids = [job["id"] for job in jobs]

    for path, expected in (
        (f"?tag={mine}", ids),
        (f"?tag={mine}&status=PAUSED", ids[:1]),
        (f"?tag={mine}&status=ACTIVE", ids[1:]),
        (f"?queue=q1-{mine}", ids[1::2]),
        (f"?name={jobs[3]['name']}", ids[3:4]),
        ("?name=nobody", []),
    ):
        assert [job["id"] for job in await given.listed(api, f"/api/v1/jobs{path}")] == expected, path


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/instances"])
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=501", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("limit=ten", "limit"),
        ("cursor=nonsense", "cursor"),
        ("cursor=", "cursor"),
        ("cursor=OTk5OTk5OTk5OTk5OTk5OTk5LjE", "cursor"),
        ("cursor=%00", "cursor"),
        ("cursor=%E4%B8%AD", "cursor"),
        ("sort=name", "sort"),
        ("tag=%00", "tag"),
    ],
)
async def test_C22_a_query_that_makes_no_sense_is_refused(api: Client, path: str, query: str, field: str) -> None:
    told = expect.invalid(await api("GET", f"{path}?{query}"))

    assert [error["field"] for error in told["errors"]] == [field]


@pytest.mark.parametrize(
    "query",
    [
        "state=NOPE",
        "state=",
        "state=4",
        "from=yesterday",
        "to=2026-01-01",
        "from=2026-01-01T00:00:00",
        "key=%00",
        "from_=2026-01-01T00:00:00Z",
    ],
)
async def test_C22_a_filter_that_makes_no_sense_is_refused(api: Client, query: str) -> None:
    told = expect.invalid(await api("GET", f"/api/v1/instances?{query}"))

    assert [error["field"] for error in told["errors"]] == [query.split("=", maxsplit=1)[0]]


async def test_a_status_that_is_none_is_refused(api: Client) -> None:
    expect.invalid(await api("GET", "/api/v1/jobs?status=DONE"))


async def test_limit_may_be_one_and_five_hundred(api: Client, db: Dedicated) -> None:
    await given.job(api)
    assert len((await api("GET", "/api/v1/jobs?limit=1")).json["items"]) == 1
    assert (await api("GET", "/api/v1/jobs?limit=500")).status == 200
