"""Lists: keyset paging over live and finished instances, and their filters."""

import asyncio
from typing import Any

import pytest
from harness import Client
from receiver import HANG, Answer, Receiver

from api import expect, given
from horai.db.pool import Platform


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
async def test_F6b_C22_a_list_is_narrowed_by_state(
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


async def test_jobs_are_listed_in_four_orders_page_by_page(api: Client) -> None:
    mine = given.name("tag")
    names = [f"{letter}{mine}" for letter in "CAEBDFaHG"]
    ids = {name: (await given.job(api, name=name, tags=[mine]))["id"] for name in names}

    for order, expected in (
        ("oldest", names),
        ("newest", names[::-1]),
        ("name", sorted(names)),
        ("nameReversed", sorted(names, reverse=True)),
    ):
        listed = await given.listed(api, f"/api/v1/jobs?tag={mine}&order={order}")
        assert [job["id"] for job in listed] == [ids[name] for name in expected], order
    assert [job["id"] for job in await given.listed(api, f"/api/v1/jobs?tag={mine}")] == [ids[name] for name in names]
    expect.invalid(await api("GET", "/api/v1/jobs?order=size"), "order")
    expect.invalid(await api("GET", "/api/v1/jobs?order=name&cursor=nonsense"), "cursor")


async def test_C2a_jobs_of_another_tenant_are_in_no_order(api: Client, db: Platform) -> None:
    mine = given.name("tag")
    job = await given.job(api, tags=[mine])
    tenant = await db.fetchval("insert into horai.tenant (name) values ($1) returning id", given.name("tenant"))
    await db.execute("update horai.job set tenant_id = $1 where id = $2", tenant, int(job["id"]))

    for order in ("oldest", "newest", "name", "nameReversed"):
        assert await given.listed(api, f"/api/v1/jobs?tag={mine}&order={order}") == [], order


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


async def test_limit_may_be_one_and_five_hundred(api: Client, db: Platform) -> None:
    await given.job(api)
    assert len((await api("GET", "/api/v1/jobs?limit=1")).json["items"]) == 1
    assert (await api("GET", "/api/v1/jobs?limit=500")).status == 200


async def test_a_list_is_narrowed_by_error_code_and_by_the_beginning_of_a_key(
    api: Client, one_of_each: dict[str, Any]
) -> None:
    of_job, dead = f"/api/v1/jobs/{one_of_each['job']['id']}/instances", one_of_each["DEAD"]
    for path, expected in (
        (f"{of_job}?errorCode={dead['errorCode']}", {"DEAD"}),
        (f"/api/v1/instances?errorCode={dead['errorCode']}&queue=lists", {"DEAD"}),
        (f"{of_job}?keyPrefix=de", {"DEAD"}),
        (f"{of_job}?keyPrefix=s&state=SUCCESS,DEAD", {"SUCCESS"}),
        ("/api/v1/instances?keyPrefix=run&queue=lists", {"RUNNING"}),
        (f"{of_job}?keyPrefix=%25", set[str]()),
        (f"{of_job}?errorCode=NOBODY", set[str]()),
    ):
        assert {row["state"] for row in await given.listed(api, path)} == expected, path


async def test_a_list_of_what_is_rare_goes_on_behind_what_was_looked_at(
    api: Client, db: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that looks at five rows finds one in ten all the same, page by page, and ends."""
    job = await given.job(api, tags=[(tag := given.name("tag"))])
    items = [{"key": f"{n % 10}-{n}", "executeTime": f"2999-03-{1 + n:02}T00:00:00Z"} for n in range(30)]
    made = (await api("POST", f"/api/v1/jobs/{job['id']}/instances/batch", {"items": items})).json["items"]
    for n in range(0, 30, 2):
        await api("POST", f"/api/v1/instances/{made[n]['instanceId']}/cancel")
    monkeypatch.setattr("horai.db.instance_lists.LOOKED_AT", 5)

    rows = await given.listed(api, f"/api/v1/instances?keyPrefix=4-&tag={tag}&from=2999-03-01T00:00:00Z")
    live = await given.listed(api, f"/api/v1/jobs/{job['id']}/instances?state=INIT")

    assert [row["key"] for row in rows] == ["4-24", "4-14", "4-4"]
    assert [row["key"] for row in live] == [item["key"] for item in reversed(items[1::2])]


async def test_a_list_upwards_is_the_same_list_the_other_way_round(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await given.job(api)
    items = [{"key": f"{n % 5}-{n}", "executeTime": f"2999-04-{1 + n // 2:02}T00:00:00Z"} for n in range(40)]
    made = (await api("POST", f"/api/v1/jobs/{job['id']}/instances/batch", {"items": items})).json["items"]
    for n in range(0, 40, 3):
        await api("POST", f"/api/v1/instances/{made[n]['instanceId']}/cancel")
    monkeypatch.setattr("horai.db.instance_lists.LOOKED_AT", 6)

    for path in (f"/api/v1/jobs/{job['id']}/instances?", f"/api/v1/instances?job={job['name']}&keyPrefix=3-&"):
        down, up = [await given.listed(api, f"{path}order={order}") for order in ("newest", "oldest")]
        assert [row["id"] for row in up] == [row["id"] for row in reversed(down)]
        assert len(up) in {40, 8}
    expect.invalid(await api("GET", "/api/v1/instances?order=sideways"), "order")


async def test_a_list_is_narrowed_by_a_member_of_the_payload(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await given.job(api)
    of_job = f"/api/v1/jobs/{job['id']}/instances"
    for number, payload in enumerate(
        ({"order": {"id": 17, "vip": True}}, {"order": {"id": "17"}}, {"order": 17}, [17])
    ):
        await given.put(api, job, f"k{number}", payload=payload)
    await given.put(api, job, "none")
    monkeypatch.setattr("horai.db.instance_lists.PAYLOADS_LOOKED_AT", 2)

    async def found(member: str) -> list[str]:
        return sorted(row["key"] for row in await given.listed(api, f"{of_job}?payload={member}"))

    assert await found("order.id%3D17") == ["k0", "k1"]
    assert await found("order.vip%3Dtrue") == ["k0"]
    assert await found("order%3D17") == ["k2"]
    assert await found("0%3D17") == ["k3"]
    assert await found("order.id%3D18") == []


async def test_past_instances_are_listed_apart_from_planned_ones(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    done = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")
    later, sooner = [
        (await given.put(api, job, at[:4], at)).json["instance"] for at in (given.FAR, "2998-01-01T00:00:00Z")
    ]
    of_job = f"/api/v1/jobs/{job['id']}/instances"

    assert [row["id"] for row in await given.listed(api, f"{of_job}?when=happened")] == [done["id"]]
    planned = await given.listed(api, f"{of_job}?when=planned&order=oldest")
    assert [row["id"] for row in planned] == [sooner["id"], later["id"]]
    assert len(await given.listed(api, f"{of_job}?when=planned&from=2998-06-01T00:00:00Z")) == 1
    expect.invalid(await api("GET", f"{of_job}?when=never"), "when")


@pytest.mark.parametrize("member", ["order", "%3D17", "a..b%3D1", ".".join("abcdefghijk") + "%3D1"])
async def test_an_invalid_payload_filter_is_refused(api: Client, member: str) -> None:
    expect.invalid(await api("GET", f"/api/v1/instances?payload={member}"), "payload")


async def test_a_job_in_a_list_has_its_last_instances_and_its_next_fire(api: Client, receiver: Receiver) -> None:
    mine = given.name("tag")
    job = await given.scripted(api, receiver, Answer(200), Answer(400), tags=[mine], every="1h", misfire="skip")
    for state in ("SUCCESS", "DEAD"):
        await api.until_state((await given.triggered(api, job))["id"], state)
    idle = await given.job(api, tags=[mine])
    await given.put(api, idle, "far")
    later = await given.job(api, tags=[mine], cron="0 0 9 * * ?", startAt="2999-01-01T09:30:00Z")

    first, second, third = (await api("GET", f"/api/v1/jobs?tag={mine}&recent=20")).json["items"]

    assert [one["state"] for one in first["recent"]] == ["DEAD", "SUCCESS"]
    assert first["nextFire"] == (await api("GET", f"/api/v1/jobs/{job['id']}/next")).json["fires"][0]["fireTime"]
    assert (second["recent"], second["nextFire"]) == ([], given.FAR)
    assert (third["id"], third["nextFire"]) == (later["id"], "2999-01-02T09:00:00Z")
    plain = (await api("GET", f"/api/v1/jobs?tag={mine}")).json["items"]
    assert not any("recent" in item for item in plain)
    (one,) = (await api("GET", f"/api/v1/jobs?tag={mine}&recent=1&limit=1")).json["items"]
    assert [glimpse["state"] for glimpse in one["recent"]] == ["DEAD"]


async def test_jobs_are_found_by_a_part_of_their_name_in_any_case(api: Client) -> None:
    job = await given.job(api, name=(name := given.name("Nightly_Report")))

    async def found(part: str) -> list[str]:
        return [each["id"] for each in await given.listed(api, f"/api/v1/jobs?nameContains={part}")]

    assert await found(name[3:].upper()) == [job["id"]]
    assert await found("ightly%25") == []
    expect.invalid(await api("GET", "/api/v1/jobs?nameContains="))


async def test_the_builtin_job_of_a_workflow_is_not_listed_among_the_jobs(api: Client) -> None:
    job = await given.job(api)
    graph = {"name": given.name("house"), "nodes": [{"name": "a", "job": job["name"]}]}
    assert (await api("POST", "/api/v1/workflows", graph)).status == 201

    assert await given.listed(api, f"/api/v1/jobs?nameContains={graph['name']}") == []
