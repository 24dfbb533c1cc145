"""`/events/parked`: what event sources could not have take effect, over HTTP."""

import json

import pytest
from databases import Superuser
from harness import Client

from api import expect, given
from horai.features.events import store as sources
from horai.features.events.store import BODY_KEPT, Unreadable

PATH = "/api/v1/events/parked"
AT = "2999-01-01T09:00:00Z"


async def park(db: Superuser, *bodies: bytes, reason: str = "job: is missing") -> tuple[str, list[str]]:
    """Messages that a source of their own has put aside: its name, and their ids."""
    source = f"test:{given.name('source')}"
    put_aside = [
        Unreadable(f"{n:03}", "article.moved", {"by": "desk"}, body, reason) for n, body in enumerate(bodies, 1)
    ]
    await sources.park_events(db, 1, source, put_aside)
    return source, [str(one.id) for one in await sources.parked_events(db, 1, source, 0, 100)]


def change(key: str, **more: object) -> bytes:
    return json.dumps({"key": key, "executeTime": AT, **more}).encode()


async def listed(api: Client, source: str) -> list[str]:
    answer = await api("GET", f"{PATH}?source={source}")
    return [one["id"] for one in answer.json["items"]]


async def test_parked_events_are_listed_oldest_first_page_by_page(api: Client, db: Superuser) -> None:
    source, ids = await park(db, *(change(f"k{n}", payload="é" * 600) for n in range(5)))

    first = (await api("GET", f"{PATH}?source={source}&limit=2")).json
    second = (await api("GET", f"{PATH}?source={source}&limit=3&cursor={first['nextCursor']}")).json
    rest = (await api("GET", f"{PATH}?source={source}&cursor={second['nextCursor']}")).json

    assert [one["id"] for page in (first, second) for one in page["items"]] == ids
    assert (rest["items"], rest["nextCursor"]) == ([], None)
    shown = first["items"][0]
    named = (shown["source"], shown["place"], shown["subject"], shown["reason"], shown["isWhole"])
    assert named == (source, "001", "article.moved", "job: is missing", True)
    assert shown["preview"].startswith('{"key": "k0"')
    assert len(shown["preview"]) <= 500 < shown["size"]
    whole = (await api("GET", f"{PATH}/{ids[0]}")).json
    assert (json.loads(whole["body"])["key"], whole["headers"]) == ("k0", {"by": "desk"})


async def test_a_retry_has_the_event_take_effect_once(api: Client, db: Superuser) -> None:
    job = await given.job(api)
    source, (parked, repeated) = await park(db, change("a", id="e1"), change("a", id="e1"))

    first = await api("POST", f"{PATH}/{parked}/retry", {"job": job["name"]})
    again = await api("POST", f"{PATH}/{repeated}/retry", {"job": job["name"]})

    assert (first.status, first.json["decision"], first.json["reason"]) == (200, "INSERTED", None)
    made = (await api("GET", f"/api/v1/instances/{first.json['instanceId']}")).json
    assert (made["job"], made["key"], made["state"]) == (job["name"], "a", "INIT")
    assert (again.status, again.json["decision"], again.json["instanceId"]) == (200, "REPEATED", None)
    assert await listed(api, source) == []
    expect.problem(await api("POST", f"{PATH}/{parked}/retry"), 404, "SCH_404_NOT_FOUND")


@pytest.mark.parametrize("body", [b"no JSON \xff", change("a")])
async def test_a_parked_event_that_still_fails_stays_parked_with_a_reason(
    api: Client, db: Superuser, body: bytes
) -> None:
    source, (parked,) = await park(db, body)

    answer = await api("POST", f"{PATH}/{parked}/retry")

    assert (answer.status, answer.json["decision"]) == (200, "PARKED")
    assert answer.json["reason"]
    assert await listed(api, source) == [parked]


async def test_an_event_that_is_not_kept_whole_is_not_retried(api: Client, db: Superuser) -> None:
    source, (parked,) = await park(db, b"x" * (BODY_KEPT + 1))

    refused = await api("POST", f"{PATH}/{parked}/retry")

    expect.problem(refused, 409, "SCH_409_CONFLICT")
    assert await listed(api, source) == [parked]


async def test_a_discarded_event_is_gone_and_its_reason_is_kept(api: Client, db: Superuser) -> None:
    source, (parked, other) = await park(db, b"nonsense", b"nonsense too")

    gone = await api("POST", f"{PATH}/{parked}/discard", {"reason": "a test of the desk"})

    assert (gone.status, gone.json["id"]) == (200, parked)
    assert await listed(api, source) == [other]
    told = await db.fetchval(
        "select data from horai.event where kind = 'PARKED_EVENT_DISCARDED' and data ->> 'id' = $1", parked
    )
    assert json.loads(told) == {
        "id": parked,
        "source": source,
        "place": "001",
        "subject": "article.moved",
        "parkedFor": "job: is missing",
        "reason": "a test of the desk",
    }
    expect.problem(await api("POST", f"{PATH}/{parked}/discard"), 404, "SCH_404_NOT_FOUND")


async def test_another_tenants_parked_event_is_not_there(api: Client, db: Superuser) -> None:
    await sources.park_events(db, 999, "test:others", [Unreadable("1", "s", {}, change("a"), "why")])
    (others,) = await sources.parked_events(db, 999, "test:others", 0, 10)

    assert await listed(api, "test:others") == []
    for verb in ("", "/retry", "/discard"):
        method = "POST" if verb else "GET"
        expect.problem(await api(method, f"{PATH}/{others.id}{verb}"), 404, "SCH_404_NOT_FOUND")
    assert len(await sources.parked_events(db, 999, "test:others", 0, 10)) == 1
