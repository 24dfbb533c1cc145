"""Dead letters over REST: found, counted by fault, replayed one by one or by filter, discarded."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from databases import Superuser
from harness import Client, Reply
from receiver import HANG, Answer, Receiver

from api import expect, given
from horai.db.dead_letters import LetterFilter, count_letters
from horai.db.pool import Platform

DLQ = "/api/v1/dlq"
ONCE = {"maxRetry": 0}
FINAL = "SCH_409_FINAL"


async def letters(api: Client, job: Any, **only: str) -> list[Any]:
    """The letters of a job, newest first."""
    filters = "".join(f"&{name}={value}" for name, value in only.items())
    return await given.listed(api, f"{DLQ}?job={job['name']}{filters}")


async def dead(api: Client, receiver: Receiver, *answers: Answer, count: int = 1, **fields: Any) -> tuple[Any, Any]:
    """A job with dead letters, and these, oldest first."""
    job = await given.scripted(api, receiver, *(answers or (Answer(503),)), **{"retry": ONCE, **fields})
    for number in range(count):
        made = (await given.put(api, job, f"key-{number}", None, payload={"n": number})).json["instance"]
        await api.until_state(made["id"], "DEAD")
    return job, (await letters(api, job))[::-1]


async def replay(api: Client, job: Any, **wish: Any) -> Reply:
    return await api("POST", f"{DLQ}/replay", {"job": job["name"], **wish})


async def test_a_letter_says_why_and_of_what(api: Client, receiver: Receiver) -> None:
    job, (letter,) = await dead(api, receiver, Answer(503, json={"message": "order 17 is stuck"}))

    assert letter == {
        "id": letter["id"],
        "job": job["name"],
        "jobId": job["id"],
        "instanceId": letter["instanceId"],
        "key": "key-0",
        "errorCode": "HTTP_503",
        "errorMsg": 'the target answered 503 Service Unavailable: order 17 is stuck\n{"message": "order 17 is stuck"}',
        "tags": ["transient_error"],
        "fingerprint": letter["fingerprint"],
        "payloadRef": f"instance:{letter['instanceId']}",
        "replayStatus": "NEW",
        "replayedAs": None,
        "reason": None,
        "createdAt": letter["createdAt"],
        "changedAt": None,
        "timezone": None,
    }


async def test_instances_and_letters_name_the_zone_of_their_jobs_schedule(api: Client, receiver: Receiver) -> None:
    job, (letter,) = await dead(api, receiver, cron="0 9 1 1 *", timezone="Asia/Shanghai")
    listed = await given.listed(api, f"/api/v1/instances?job={job['name']}&state=DEAD")
    single = (await api("GET", f"/api/v1/instances/{letter['instanceId']}")).json
    waiting = (await given.put(api, job, "later", "2100-01-01T00:00:00Z")).json["instance"]

    assert letter["timezone"] == "Asia/Shanghai"
    assert [row["timezone"] for row in listed] == ["Asia/Shanghai"]
    assert single["timezone"] == "Asia/Shanghai"
    assert (await api("GET", f"/api/v1/instances/{waiting['id']}")).json["timezone"] == "Asia/Shanghai"
    detail = (await api("GET", f"{DLQ}/{letter['id']}")).json
    assert (detail["instance"]["id"], detail["instance"]["payload"]) == (letter["instanceId"], {"n": 0})
    assert {**detail, "instance": None} == {**letter, "instance": None}


@pytest.mark.parametrize(
    ("answer", "code", "tags"),
    [
        (Answer(503), "HTTP_503", ["transient_error"]),
        (HANG, "TIMEOUT", ["transient_error", "timeout"]),
        (Answer(404), "HTTP_404", ["unrecoverable", "http_4xx"]),
        (Answer(410, json={"tags": ["closed"]}), "HTTP_410", ["unrecoverable", "http_4xx", "closed"]),
        (
            Answer(200, json={"result": "FAIL_UNRECOVERABLE", "tags": ["no-such-account", "bad tag", 7, "eu"]}),
            "RESULT_UNRECOVERABLE",
            ["unrecoverable", "no-such-account", "eu"],
        ),
    ],
    ids=["used up", "timeout", "4xx", "4xx with tags", "said so"],
)
async def test_C6_a_letters_tags_say_what_kind_of_fault_it_was(
    api: Client, receiver: Receiver, answer: Answer, code: str, tags: list[str]
) -> None:
    job, (letter,) = await dead(api, receiver, answer, timeout="200ms")

    assert (letter["errorCode"], letter["tags"]) == (code, tags)
    assert [found["id"] for found in await letters(api, job, tag=tags[-1])] == [letter["id"]]
    assert await letters(api, job, tag="no-such-tag") == []


async def test_a_reported_failure_brings_its_tags_and_wrong_ones_are_refused(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(202), timeout="60s")
    running = await given.running(api, receiver, job, "k")
    report = {"fence": running["fence"], "result": "FAIL_UNRECOVERABLE", "message": "no"}
    path = f"/api/v1/instances/{running['id']}/outcome"

    for wrong in (["a b"], [""], ["x" * 65], [f"t{n}" for n in range(11)], "word", [5]):
        expect.invalid(await api("POST", path, {**report, "tags": wrong}), "tags")
    told = await api("POST", path, {**report, "tags": ["blocked-by-bank"]})

    assert told.json["instance"]["state"] == "DEAD"
    assert [letter["tags"] for letter in await letters(api, job)] == [["unrecoverable", "blocked-by-bank"]]


async def test_the_list_is_narrowed_and_paged(api: Client, receiver: Receiver) -> None:
    job, found = await dead(api, receiver, Answer(503), Answer(404), Answer(404), count=9)
    third = found[2]

    assert [letter["id"] for letter in await letters(api, job)] == [letter["id"] for letter in reversed(found)]
    assert len(await letters(api, job, errorCode="HTTP_404")) == 8
    assert len(await letters(api, job, fingerprint=third["fingerprint"])) == 8
    assert len(await letters(api, job, to=third["createdAt"])) == 2
    assert len(await letters(api, job, **{"from": third["createdAt"]})) == 7
    assert len(await letters(api, job, status="new")) == 9
    assert await letters(api, job, status="DISCARDED") == []


@pytest.mark.parametrize("query", ["status=LOST", "from=yesterday", "limit=0", "cursor=x", "color=red", "tag=%00"])
async def test_a_wrong_question_is_refused(api: Client, query: str) -> None:
    expect.invalid(await api("GET", f"{DLQ}?{query}"), query.partition("=")[0])


async def test_a_count_is_the_length_of_the_list_with_the_same_filter(
    api: Client, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, (first, *others) = await dead(api, receiver, count=4)
    await api("POST", f"{DLQ}/{first['id']}/discard", {"reason": "not needed"})
    last = others[-1]
    of_job = f"job={job['name']}"

    async def counted(query: str) -> tuple[int, bool]:
        told = (await api("GET", f"{DLQ}/count?{query}")).json
        return told["count"], told["more"]

    for query, expected in (
        (of_job, 4),
        (f"{of_job}&status=NEW", 3),
        (f"{of_job}&status=DISCARDED", 1),
        (f"{of_job}&errorCode=HTTP_503&tag=transient_error", 4),
        (f"instance={last['instanceId']}", 1),
        (f"{of_job}&from={last['createdAt']}", 1),
        (f"{of_job}&errorCode=NONE", 0),
    ):
        listed = await given.listed(api, f"{DLQ}?{query}")
        assert (len(listed), await counted(query)) == (expected, (expected, False)), query
    monkeypatch.setattr("horai.db.dead_letters.COUNTED", 3)
    assert await counted(f"{of_job}&status=NEW") == (3, False)
    assert await counted(of_job) == (3, True)
    monkeypatch.setattr("horai.db.dead_letters.COUNTED", 2)
    assert await counted(f"{of_job}&status=DISCARDED") == (0, True)
    for wrong in ("limit=1", "order=oldest", "at=2026-01-01T00:00:00Z", "sort=id"):
        expect.invalid(await api("GET", f"{DLQ}/count?{wrong}"), wrong.split("=", maxsplit=1)[0])


async def test_the_list_is_read_in_both_orders_and_begins_at_a_time(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job, made = await dead(api, receiver, count=6)
    ids = [int(letter["id"]) for letter in made]
    equal = datetime(2026, 5, 4, 9, tzinfo=UTC)
    for place, id_ in enumerate(ids):
        at = equal + timedelta(days=place // 3)
        await db.execute("update horai.dead_letter set created_at = $2 where id = $1", id_, at)
    path = f"{DLQ}?job={job['name']}"

    async def listed(query: str) -> list[int]:
        found = [(await api("GET", f"{path}{query}&limit=2")).json]
        while (cursor := found[-1]["nextCursor"]) is not None and len(found) < 10:
            found.append((await api("GET", f"{path}{query}&limit=2&cursor={cursor}")).json)
        return [int(letter["id"]) for page in found for letter in page["items"]]

    assert await listed("&order=newest") == ids[::-1]
    assert await listed("&order=oldest") == ids
    assert await listed("&at=2026-05-04T09:00:00Z") == ids[2::-1]
    assert await listed("&at=2026-05-04T09:00:01Z&order=oldest") == ids[3:]
    for wrong in ("order=sideways", "at=yesterday"):
        expect.invalid(await api("GET", f"{path}&{wrong}"), wrong.split("=", maxsplit=1)[0])


async def test_letters_are_counted_by_fault(api: Client, receiver: Receiver) -> None:
    answers = [Answer(404, json={"message": f"no order {n}"}) for n in range(4)]
    job, found = await dead(api, receiver, Answer(503), *answers, count=5)

    told = (await api("GET", f"{DLQ}/faults?job={job['name']}")).json

    assert [(fault["errorCode"], fault["letters"]) for fault in told["items"]] == [("HTTP_404", 4), ("HTTP_503", 1)]
    assert (told["letters"], told["more"]) == (5, False)
    most = told["items"][0]
    assert (most["fingerprint"], most["lastLetter"]) == (found[1]["fingerprint"], found[-1]["id"])
    assert (most["firstAt"], most["lastAt"]) == (found[1]["createdAt"], found[-1]["createdAt"])
    assert (await api("GET", f"{DLQ}/faults?job={job['name']}&status=DISCARDED")).json["items"] == []


async def test_C3d_C17_one_letter_is_replayed_once(api: Client, receiver: Receiver) -> None:
    _, (letter,) = await dead(api, receiver, Answer(503), Answer(200))
    path = f"{DLQ}/{letter['id']}/replay"

    first, again = await api("POST", path), await api("POST", path)

    made = first.json["instance"]
    assert (first.status, first.json["replayed"], made["replayOf"]) == (201, True, letter["instanceId"])
    assert (first.json["letter"]["replayStatus"], first.json["letter"]["replayedAs"]) == ("REPLAYED", made["id"])
    assert (again.status, again.json["replayed"], again.json["instance"]["id"]) == (200, False, made["id"])
    done = await api.until_state(made["id"], "SUCCESS")
    assert (done["key"], done["payload"], done["fireTime"]) == ("key-0", {"n": 0}, made["fireTime"])
    timeline = (await given.read(api, {"id": letter["instanceId"]}))["timeline"]
    assert timeline[-1]["kind"] == "INSTANCE_REPLAYED"
    assert timeline[-1]["data"] == {"letter": letter["id"], "replayedAs": made["id"]}


async def test_a_receiver_sees_the_unit_again_with_a_higher_fence(api: Client, receiver: Receiver) -> None:
    job, (letter,) = await dead(api, receiver, Answer(503), Answer(200))
    made = (await api("POST", f"{DLQ}/{letter['id']}/replay")).json["instance"]
    await api.until_state(made["id"], "SUCCESS")

    before, after = given.hits(receiver, job)

    assert before.unit == after.unit
    assert int(after.headers["horai-fence"]) == int(before.headers["horai-fence"]) + 1
    assert before.headers["idempotency-key"] != after.headers["idempotency-key"]
    assert before.headers["horai-fire-time"] == after.headers["horai-fire-time"]


async def test_a_dry_run_says_how_many_and_the_replay_replays_them_once(api: Client, receiver: Receiver) -> None:
    job, _ = await dead(api, receiver, *[Answer(503)] * 3, Answer(200), count=3)
    nothing = {"replayed": 0, "superseded": 0, "held": 0, "more": False}

    tried = await replay(api, job, tag="transient_error", dryRun=True)
    done = await replay(api, job, tag="transient_error")
    again = await replay(api, job, tag="transient_error")

    assert tried.json == {**nothing, "matched": 3, "dryRun": True}
    assert done.json == {**nothing, "matched": 3, "replayed": 3, "dryRun": False}
    assert again.json == {**nothing, "matched": 0, "dryRun": False}
    assert {letter["replayStatus"] for letter in await letters(api, job)} == {"REPLAYED"}


async def test_a_replay_keeps_to_its_limit_its_filter_and_its_rate(api: Client, receiver: Receiver) -> None:
    job, found = await dead(api, receiver, Answer(404), *[Answer(503)] * 4, Answer(200), count=5)

    done = await replay(api, job, errorCode="HTTP_503", limit=3, rate="60/m")

    assert (done.json["matched"], done.json["replayed"], done.json["more"]) == (3, 3, True)
    now = (await letters(api, job))[::-1]
    assert [letter["replayStatus"] for letter in now] == ["NEW", "REPLAYED", "REPLAYED", "REPLAYED", "NEW"]
    made = [await given.read(api, {"id": letter["replayedAs"]}) for letter in now[1:4]]
    times = [datetime.fromisoformat(each["executeTime"]) for each in made]
    assert {later - sooner for sooner, later in itertools.pairwise(times)} == {timedelta(seconds=1)}
    assert found[0]["id"] == now[0]["id"]


@pytest.mark.parametrize(
    "wish",
    [{"limit": 0}, {"limit": 10_001}, {"rate": "fast"}, {"rate": "0/s"}, {"rate": 0}, {"status": "NEW"}, {"tag": 5}],
    ids=str,
)
async def test_a_wrong_wish_is_refused_and_replays_nothing(api: Client, receiver: Receiver, wish: Any) -> None:
    job, _ = await dead(api, receiver)

    expect.invalid(await replay(api, job, **wish), next(iter(wish)))

    assert [letter["replayStatus"] for letter in await letters(api, job)] == ["NEW"]


async def test_an_idempotency_key_makes_a_repeat_safe(api: Client, receiver: Receiver) -> None:
    job, _ = await dead(api, receiver, Answer(503), Answer(503), Answer(200), count=2)
    key, path, wish = given.name("key"), f"{DLQ}/replay", {"job": job["name"], "limit": 1}

    first = await api("POST", path, wish, Idempotency_Key=key)
    again = await api("POST", path, wish, Idempotency_Key=key)
    expect.invalid(await api("POST", path, {**wish, "limit": 2}, Idempotency_Key=key), "another body")

    assert (first.json["replayed"], again.json) == (1, first.json)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (await replay(api, job, dryRun=True)).json["matched"] == 1


async def test_a_letter_is_discarded_with_a_reason(api: Client, receiver: Receiver) -> None:
    job, (letter, other) = await dead(api, receiver, count=2)
    path = f"{DLQ}/{letter['id']}"

    gone = await api("POST", f"{path}/discard", {"reason": "the account is closed"})

    assert (gone.status, gone.json["replayStatus"], gone.json["reason"]) == (200, "DISCARDED", "the account is closed")
    assert gone.json["changedAt"] >= gone.json["createdAt"]
    assert (await api("POST", f"{path}/discard")).json == gone.json
    expect.problem(await api("POST", f"{path}/replay"), 409, FINAL, "DISCARDED")
    assert (await replay(api, job)).json["matched"] == 1
    expect.problem(await api("POST", f"{DLQ}/{other['id']}/discard"), 409, FINAL, "REPLAYED")


async def test_X1_a_put_of_the_key_supersedes_its_letter(api: Client, receiver: Receiver) -> None:
    job, (letter,) = await dead(api, receiver)
    await given.put(api, job, "key-0")

    told = await api("POST", f"{DLQ}/{letter['id']}/replay")

    assert (told.status, told.json["replayed"], told.json["instance"]) == (200, False, None)
    assert told.json["letter"]["replayStatus"] == "SUPERSEDED"
    assert (await replay(api, job)).json["matched"] == 0


async def test_a_letter_of_a_deleted_job_is_still_shown_and_says_why_it_is_not_replayed(
    api: Client, receiver: Receiver
) -> None:
    job, (letter,) = await dead(api, receiver)
    await api("DELETE", f"/api/v1/jobs/{job['name']}")

    expect.problem(await api("POST", f"{DLQ}/{letter['id']}/replay"), 409, FINAL, "was deleted", "discard")
    assert (await api("GET", f"{DLQ}/{letter['id']}")).json["job"] == job["name"]
    expect.problem(await replay(api, job), 404, "SCH_404_NOT_FOUND")


async def test_the_replay_of_a_paused_job_waits_for_its_resume(api: Client, receiver: Receiver) -> None:
    job, (letter,) = await dead(api, receiver, Answer(503), Answer(200))
    await api("POST", f"/api/v1/jobs/{job['name']}/pause")
    made = (await api("POST", f"{DLQ}/{letter['id']}/replay")).json["instance"]
    assert (await given.read(api, made))["state"] == "INIT"

    await api("POST", f"/api/v1/jobs/{job['name']}/resume")

    await api.until_state(made["id"], "SUCCESS")


@pytest.mark.parametrize("letter", ["999999999", "x", "9" * 30, "%00"])
async def test_an_unknown_dead_letter_id_gets_404(api: Client, letter: str) -> None:
    for method, path in (("GET", letter), ("POST", f"{letter}/replay"), ("POST", f"{letter}/discard")):
        expect.problem(await given.sent(api, method, f"{DLQ}/{path}", b""), 404, "SCH_404_NOT_FOUND")


async def test_C2a_letters_of_another_tenant_are_not_there(api: Client, receiver: Receiver, db: Superuser) -> None:
    _, (letter,) = await dead(api, receiver)
    other = await db.fetchval("insert into horai.tenant (name) values ('other') returning id")
    await db.execute("update horai.dead_letter set tenant_id = $1 where id = $2", other, int(letter["id"]))

    expect.problem(await api("GET", f"{DLQ}/{letter['id']}"), 404, "SCH_404_NOT_FOUND")
    expect.problem(await api("POST", f"{DLQ}/{letter['id']}/replay"), 404, "SCH_404_NOT_FOUND")
    expect.problem(await api("POST", f"{DLQ}/{letter['id']}/discard"), 404, "SCH_404_NOT_FOUND")
    of_instance = f"instance={letter['instanceId']}"
    assert (await api("GET", f"{DLQ}/count?{of_instance}")).json == {"count": 0, "more": False}
    assert (await api("GET", f"{DLQ}?{of_instance}&order=oldest")).json["items"] == []
    only = LetterFilter(instance_id=int(letter["instanceId"]))
    assert (await count_letters(db, 1, only)).count == 0, "without policies too"
    assert (await count_letters(db, other, only)).count == 1


async def test_two_replays_at_once_of_one_letter_make_one_instance(api: Client, receiver: Receiver) -> None:
    job, (letter,) = await dead(api, receiver)

    told = await asyncio.gather(*(api("POST", f"{DLQ}/{letter['id']}/replay") for _ in range(8)))

    assert sorted(reply.json["replayed"] for reply in told) == [False] * 7 + [True]
    assert len({reply.json["instance"]["id"] for reply in told}) == 1
    assert len(await given.listed(api, f"/api/v1/jobs/{job['name']}/instances")) == 2
