"""`GET /api/v1/search?q=`: from a few characters to what they may mean."""

from typing import Any

from harness import Client

from api import expect, given


async def found(api: Client, text: str) -> Any:
    reply = await api("GET", f"/api/v1/search?q={text}")
    assert reply.status == 200, reply.json
    return reply.json


async def test_jobs_are_found_by_a_part_of_their_name_the_closest_first(api: Client) -> None:
    for name in ("invoice", "send-Invoice-mail", "invoices-of-today"):
        await given.job(api, name=name)

    jobs = (await found(api, "invoice"))["jobs"]

    assert [job["name"] for job in jobs] == ["invoice", "invoices-of-today", "send-Invoice-mail"]
    assert [job["name"] for job in (await found(api, "INVOICE"))["jobs"]] == [job["name"] for job in jobs]
    assert (await found(api, "in%25ice"))["jobs"] == []


async def test_workflows_are_found_and_not_the_jobs_that_carry_them(api: Client) -> None:
    job = await given.job(api)
    flow = {"name": "nightly-close", "nodes": [{"name": "a", "job": job["name"]}]}
    assert (await api("POST", "/api/v1/workflows", flow)).status == 201

    told = await found(api, "ly-clo")

    assert ([each["name"] for each in told["workflows"]], told["jobs"]) == (["nightly-close"], [])


async def test_an_instance_is_found_by_its_id_and_by_the_beginning_of_its_key(api: Client) -> None:
    job = await given.job(api)
    made = (await given.put(api, job, "order:4711")).json["instance"]
    done = (await given.put(api, job, "order:4712")).json["instance"]
    await api("POST", f"/api/v1/instances/{done['id']}/cancel")

    assert [each["id"] for each in (await found(api, made["id"]))["instances"]] == [made["id"]]
    told = (await found(api, "order:471"))["instances"]
    assert {(each["key"], each["state"]) for each in told} == {("order:4711", "INIT"), ("order:4712", "CANCELLED")}
    assert (await found(api, "rder:471"))["instances"] == []


async def test_at_most_eight_of_each_are_told_and_nothing_is_no_question(api: Client) -> None:
    job = await given.job(api)
    items = [{"key": f"many-{n}", "executeTime": given.FAR} for n in range(20)]
    await api("POST", f"/api/v1/jobs/{job['id']}/instances/batch", {"items": items})

    assert len((await found(api, "many-"))["instances"]) == 8
    for query in ("", "?q=", f"?q={'x' * 201}", "?q=%00"):
        expect.invalid(await api("GET", f"/api/v1/search{query}"))
