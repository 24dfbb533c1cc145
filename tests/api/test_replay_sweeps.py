"""`POST /api/v1/instances/replay`: dead instances, many at once, by what they have in common."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform

PATH = "/api/v1/instances/replay"


async def dead(api: Client, receiver: Receiver, count: int, **fields: Any) -> tuple[Any, list[Any]]:
    """A job that is well again, and instances of it that died before."""
    answers = [Answer(410)] * count + [Answer(200)]
    job = await given.scripted(api, receiver, *answers, retry={"maxRetry": 0}, **fields)
    items = [{"key": f"k{n % 2}-{n}", "payload": {"order": {"id": n}}} for n in range(count)]
    made = await api("POST", f"/api/v1/jobs/{job['id']}/instances/batch", {"items": items})
    ids = [item["instanceId"] for item in made.json["items"]]
    return job, [await api.until_state(id_, "DEAD") for id_ in ids]


async def replays(api: Client, job: Any) -> list[str]:
    """Return the keys of the dead instances that were run again."""
    found = await given.listed(api, f"/api/v1/jobs/{job['id']}/instances")
    return sorted(row["key"] for row in found if row["replayOf"] is not None)


async def test_all_that_are_dead_and_match_are_replayed_once(api: Client, receiver: Receiver) -> None:
    job, _ = await dead(api, receiver, 6)

    dry = (await api("POST", PATH, {"job": job["name"], "keyPrefix": "k1-", "dryRun": True})).json
    assert (dry["matched"], dry["replayed"], dry["dryRun"]) == (3, 0, True)
    done = (await api("POST", PATH, {"job": job["name"], "keyPrefix": "k1-"})).json
    again = (await api("POST", PATH, {"job": job["name"], "keyPrefix": "k1-"})).json

    assert done == {"matched": 3, "replayed": 3, "superseded": 0, "held": 0, "nextCursor": None, "dryRun": False}
    assert (again["matched"], again["replayed"]) == (0, 0)
    assert await replays(api, job) == ["k1-1", "k1-3", "k1-5"]


async def test_a_limit_and_its_cursor_go_on_behind_what_was_replayed(
    api: Client, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horai.features.dead_letters.replay_matching.PORTION", 2)
    job, _ = await dead(api, receiver, 5)

    first = (await api("POST", PATH, {"job": job["name"], "limit": 3})).json
    second = (await api("POST", PATH, {"job": job["name"], "limit": 3, "cursor": first["nextCursor"]})).json

    assert (first["replayed"], second["replayed"]) == (3, 2)
    assert first["nextCursor"] is not None
    assert second["nextCursor"] is None
    assert len(await replays(api, job)) == 5


async def test_a_rate_spaces_the_starts_of_all_pages_of_a_request(
    api: Client, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horai.features.dead_letters.replay_matching.PORTION", 2)
    job, _ = await dead(api, receiver, 5)

    done = (await api("POST", PATH, {"job": job["name"], "rate": "1/h"})).json

    assert (done["replayed"], done["nextCursor"]) == (5, None)
    found = await given.listed(api, f"/api/v1/jobs/{job['id']}/instances")
    starts = sorted(datetime.fromisoformat(row["executeTime"]) for row in found if row["replayOf"] is not None)
    assert {later - earlier for earlier, later in pairwise(starts)} == {timedelta(hours=1)}


async def test_chosen_ones_are_replayed_and_others_of_the_choice_are_passed_over(
    api: Client, receiver: Receiver
) -> None:
    job, found = await dead(api, receiver, 3)
    waiting = (await given.put(api, job, "waits")).json["instance"]

    done = (await api("POST", PATH, {"ids": [found[0]["id"], found[2]["id"], waiting["id"], "999999"]})).json

    assert (done["matched"], done["replayed"]) == (2, 2)
    assert await replays(api, job) == ["k0-0", "k0-2"]


async def test_a_dead_letter_locked_by_another_transaction_stays_open_and_is_counted_as_held(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job, found = await dead(api, receiver, 2)
    held = db.transaction()
    await held.start()
    await db.execute("select from horai.dead_letter where instance_id = $1 for update", int(found[0]["id"]))

    done = (await api("POST", PATH, {"job": job["name"]})).json
    await held.rollback()

    assert (done["matched"], done["replayed"], done["held"]) == (2, 1, 1)
    assert (await api("POST", PATH, {"job": job["name"]})).json["replayed"] == 1


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "everything"),
        ({"dryRun": True}, "everything"),
        ({"state": "SUCCESS"}, "DEAD"),
        ({"ids": []}, "ids"),
        ({"ids": ["x"]}, "ids"),
        ({"payload": "order"}, "payload"),
        ({"job": "j", "cursor": "x"}, "cursor"),
        ({"job": "j", "rate": "fast"}, "rate"),
    ],
)
async def test_a_replay_that_makes_no_sense_is_refused(api: Client, body: Any, word: str) -> None:
    if body.get("job") == "j":
        body = {**body, "job": (await given.job(api))["name"]}
    expect.invalid(await api("POST", PATH, body), word)
