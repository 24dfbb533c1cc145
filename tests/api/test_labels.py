"""The title, description and owner of a job over REST: stored in any script, found, changed, removed, refused."""

from typing import Any
from urllib.parse import quote

import pytest
from harness import Client

from api import expect, given

LABELS = {"title": "发放优惠券", "description": "每五分钟一次。\n失败时联系市场部。", "owner": "市场部 Ольга"}


async def test_a_job_is_shown_with_its_labels_in_any_script(api: Client) -> None:
    name = given.name("coupon")

    created = await api("POST", "/api/v1/jobs", {"name": name, **LABELS})

    assert (created.status, {field: created.json[field] for field in LABELS}) == (201, LABELS)
    assert (await api("GET", f"/api/v1/jobs/{name}")).json == created.json
    assert not LABELS.keys() & (await given.job(api)).keys(), "a job without labels has none"


async def test_labels_are_changed_one_by_one_and_removed_by_null(api: Client) -> None:
    job = await given.job(api, **LABELS)

    patched = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"title": "Coupons", "owner": None})

    assert (patched.status, patched.json["title"]) == (200, "Coupons")
    assert patched.json["description"] == LABELS["description"]
    assert "owner" not in patched.json


async def test_jobs_are_listed_and_searched_by_title_and_listed_by_owner(api: Client) -> None:
    owner = given.name("team")
    job = await given.job(api, title="夜间对账 Ledger", owner=owner)
    other = await given.job(api, owner=owner)
    await given.job(api, owner=owner + "-2")

    listed = (await api("GET", f"/api/v1/jobs?nameContains={quote('对账 lED')}")).json["items"]
    found = (await api("GET", f"/api/v1/search?q={quote('间对')}")).json["jobs"]
    owned = (await api("GET", f"/api/v1/jobs?owner={owner}")).json["items"]

    assert [each["name"] for each in listed] == [job["name"]]
    assert [(each["name"], each["title"]) for each in found] == [(job["name"], "夜间对账 Ledger")]
    assert [each["name"] for each in owned] == [job["name"], other["name"]]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("title", "x" * 201, "longer than 200"),
        ("description", "x" * 4_001, "longer than 4000"),
        ("owner", " \t ", "no visible character"),
        ("title", "two\nlines", "line break"),
        ("owner", "red\x1b[31m", "control character"),
        ("title", 7, "string"),
    ],
)
async def test_a_label_that_cannot_be_shown_is_refused(api: Client, field: str, value: object, said: str) -> None:
    expect.invalid(await api("POST", "/api/v1/jobs", {"name": given.name(), field: value}), field, said)


async def test_a_queue_has_labels_and_the_reason_of_its_pause_until_they_are_removed(api: Client) -> None:
    name = given.name("reports")
    path = f"/api/v1/queues/{name}"
    asked = {**LABELS, "paused": True, "note": "仓库搬迁", "maxConcurrency": 3}

    put = await api("PUT", path, asked)

    assert (put.status, {field: put.json[field] for field in asked}) == (200, asked)
    (held,) = [
        queue
        for queue in (await api("GET", "/api/v1/scheduler/attention")).json["pausedQueues"]
        if queue["name"] == name
    ]
    assert held["note"] == "仓库搬迁"
    bare = (await api("PUT", path, {"paused": False})).json
    assert [bare[field] for field in (*LABELS, "note")] == [None] * 4


async def test_a_label_of_a_queue_that_cannot_be_shown_is_refused(api: Client) -> None:
    path = f"/api/v1/queues/{given.name('bad')}"

    expect.invalid(await api("PUT", path, {"title": "two\nlines"}), "title", "line break")
    expect.invalid(await api("PUT", path, {"owner": ""}), "owner", "no visible character")
    expect.invalid(await api("PUT", path, {"note": "x" * 2_001}), "note", "2000")


async def test_workflows_are_found_by_name_title_owner_tag_and_status_in_any_script(api: Client) -> None:
    owner, tag = given.name("财务"), given.name("tag")
    nodes = [{"name": "only", "job": (await given.job(api))["name"]}]

    async def flow(**fields: Any) -> str:
        made = await api("POST", "/api/v1/workflows", {"name": given.name("flow"), "nodes": nodes, **fields})
        assert made.status == 201, made.json
        return made.json["name"]

    async def found(query: str) -> list[str]:
        return [each["name"] for each in (await api("GET", f"/api/v1/workflows?{query}")).json["items"]]

    labelled = await flow(title=f"每日结算 Ledger {owner}", owner=owner, tags=[tag])
    other = await flow(owner=owner)
    await flow(owner=given.name("市场部"))
    await api("POST", f"/api/v1/workflows/{other}/pause")

    assert await found(f"nameContains={quote(f'结算 lEDger {owner}')}") == [labelled]
    assert await found(f"nameContains={other.upper()}") == [other]
    assert await found(f"owner={quote(owner)}") == [labelled, other]
    assert await found(f"owner={quote(owner)}&status=PAUSED") == [other]
    assert await found(f"tag={tag}") == [labelled]
    assert await found(f"owner={quote(owner)}&tag=absent") == []
    expect.invalid(await api("GET", "/api/v1/workflows?nameContains="), "nameContains")
    expect.invalid(await api("GET", "/api/v1/workflows?state=PAUSED"), "state")
