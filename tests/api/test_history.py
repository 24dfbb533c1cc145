"""`GET …/instances/{key}/history`: what happened to a key, as one chain."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from urllib.parse import quote

import make
from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from horai.features.events.change import parse_change
from horai.features.events.service import Arrival, accept_changes

START = datetime(2100, 1, 1, tzinfo=UTC)


def path(job: str, key: str) -> str:
    return f"/api/v1/jobs/{job}/instances/{quote(key, safe='')}/history"


async def test_A16_a_hundred_reschedules_of_one_key_read_as_one_chain(api: Client) -> None:
    job = (await given.job(api))["name"]
    for n in range(101):
        at = (START + timedelta(hours=n)).isoformat()
        reply = await api("PUT", f"/api/v1/jobs/{job}/instances/article:42", {"executeTime": at, "version": n})
        assert reply.status in {200, 201}

    entries, cursor = [], ""
    sizes: list[int] = []
    while cursor is not None:
        page = (await api("GET", path(job, "article:42") + f"?limit=40{cursor and '&cursor=' + cursor}")).json
        sizes.append(len(page["items"]))
        entries += page["items"]
        cursor = page["nextCursor"]

    assert sizes == [40, 40, 21]
    assert [entry["kind"] for entry in entries] == ["INSTANCE_INSERTED"] + ["INSTANCE_RESCHEDULED"] * 100
    assert len({entry["instanceId"] for entry in entries}) == 1
    assert [entry["seq"] for entry in entries] == list(range(101))
    for before, after in pairwise(entries):
        assert instant(after["data"]["was"]) == instant(before["data"]["executeTime"])
        assert after["at"] >= before["at"]
    assert instant(entries[-1]["data"]["executeTime"]) == START + timedelta(hours=100)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_a_chain_goes_on_over_successors_and_to_the_end(api: Client, receiver: Receiver) -> None:
    job = (await given.scripted(api, receiver, Answer(202), timeout="60s"))["name"]
    now = datetime.now(UTC)
    put = f"/api/v1/jobs/{job}/instances/a/b"
    first = (await api("PUT", put, {"executeTime": now.isoformat()})).json["instance"]["id"]
    await api.until_state(first, "RUNNING")
    second = (await api("PUT", put, {"executeTime": (now + timedelta(hours=1)).isoformat()})).json["instance"]["id"]
    await api("DELETE", put)

    page = (await api("GET", path(job, "a/b"))).json

    assert page["nextCursor"] is None
    assert [(entry["instanceId"], entry["kind"]) for entry in page["items"]] == [
        (first, "INSTANCE_INSERTED"),
        (first, "INSTANCE_CANCELLED"),
        (second, "INSTANCE_INSERTED"),
        (second, "INSTANCE_CANCELLED"),
    ]
    assert page["items"][1]["data"]["reason"] == "SUPERSEDED"
    assert page["items"][2]["data"]["supersedes"] == first
    assert page["items"][3]["data"]["reason"] == "USER"


async def test_a_success_ends_the_chain_and_an_ignored_event_is_told(
    api: Client, receiver: Receiver, database: str
) -> None:
    job = (await given.scripted(api, receiver, Answer()))["name"]
    made = (await api("PUT", f"/api/v1/jobs/{job}/instances/k", {"version": 5})).json["instance"]["id"]
    await api.until_state(made, "SUCCESS")
    body = b'{"job": "%s", "key": "k", "executeTime": "2100-01-01T00:00:00Z", "version": 4, "id": "e-4"}' % job.encode()
    async with make.scope(database) as scope:
        await accept_changes(scope, "nats:articles", [Arrival("1", "s", {}, body, parse_change(body, {}))])

    items = (await api("GET", path(job, "k"))).json["items"]

    assert [item["kind"] for item in items] == ["INSTANCE_INSERTED", "INSTANCE_DONE", "CHANGE_IGNORED"]
    assert items[2]["data"] == {"source": "nats:articles", "eventId": "id:e-4", "version": 4}
    assert items[2]["seq"] is None


async def test_a_key_without_history_and_a_strange_cursor_are_refused(api: Client) -> None:
    job = (await given.job(api))["name"]
    expect.problem(await api("GET", path(job, "nobody")), 404, "SCH_404_NOT_FOUND")
    expect.problem(await api("GET", path("no-such-job", "k")), 404, "SCH_404_NOT_FOUND")
    await api("PUT", f"/api/v1/jobs/{job}/instances/k", {"executeTime": START.isoformat()})
    for cursor in ("x", "MS4x", "OTk5OTk5OTk5OTk5OTk5OTk5LjEuMQ", "MS4xLjk5OTk5OTk5OTk"):
        expect.problem(await api("GET", path(job, "k") + f"?cursor={cursor}"), 422, "SCH_422_INVALID")


async def test_a_key_that_ends_like_the_path_is_still_a_key(api: Client) -> None:
    job = (await given.job(api))["name"]

    assert (
        await api("PUT", f"/api/v1/jobs/{job}/instances/a/history", {"executeTime": START.isoformat()})
    ).status == 201
    assert (await api("GET", f"/api/v1/jobs/{job}/instances/a/history/history")).status == 200
