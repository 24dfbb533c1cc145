"""Every bad body gets its documented problem and leaves nothing behind."""

import io
import time
from collections.abc import AsyncGenerator

import pytest
from harness import Client

from api import expect, given
from horai.db.pool import Platform

JOBS = "/api/v1/jobs"
HTTP = '"target":{"type":"http","url":"https://example.com/"}'


def nested(depth: int) -> bytes:
    return b'{"name":"x","payload":' + b"[" * depth + b"]" * depth + b"}"


BODIES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "unknown field": (b'{"name":"x","max_retry":1}', ("max_retry: unknown field", "camelCase")),
    "unknown nested field": (b'{"name":"x","retry":{"max":1}}', ("retry.max: unknown field",)),
    "refresh": (b'{"name":"x","every":"1h","refresh":{"window":"soon"}}', ("refresh.window",)),
    "misfire without a schedule": (b'{"name":"x","misfire":"all"}', ("misfire: is only accepted", "cron or every")),
    "misfire of no policy": (b'{"name":"x","every":"1h","misfire":"never"}', ("misfire",)),
    "misfire object of no policy": (b'{"name":"x","every":"1h","misfire":{"policy":"no"}}', ("misfire",)),
    "catch-up of once": (b'{"name":"x","every":"1h","misfire":{"policy":"once","maxCatchup":5}}', ("maxCatchup is only",)),
    "catch-up of none": (b'{"name":"x","every":"1h","misfire":{"policy":"all","maxCatchup":0}}', ("between 1 and",)),
    "window of skip": (b'{"name":"x","every":"1h","misfire":{"policy":"skip","window":"1h"}}', ("window is not",)),
    "misfireAfter": (b'{"name":"x","every":"1h","misfireAfter":"2d"}', ("misfireAfter: is longer than 24h",)),
    "misfireAfter of nothing": (b'{"name":"x","every":"1h","misfireAfter":"0s"}', ("misfireAfter: is shorter",)),
    "overlap without a schedule": (b'{"name":"x","overlap":"skip"}', ("overlap: is only accepted",)),
    "overlap of no kind": (b'{"name":"x","every":"1h","overlap":"perhaps"}', ("overlap",)),
    "jitter without a schedule": (b'{"name":"x","jitter":"5s"}', ("jitter: is only accepted",)),
    "jitter too long": (b'{"name":"x","every":"1h","jitter":"25h"}', ("jitter: is longer than 24h",)),
    "calendar without a schedule": (b'{"name":"x","calendar":["2026-01-01"]}', ("calendar: is only accepted",)),
    "calendar of no dates": (b'{"name":"x","every":"1h","calendar":["Christmas"]}', ("not an excluded date", "12-25")),
    "calendar of a day that is none": (b'{"name":"x","every":"1h","calendar":["2026-02-30"]}', ("not in the calendar",)),
    "calendar of all days": (b'{"name":"x","every":"1h","calendar":["01-01/12-31"]}', ("no next fire time",)),
    "calendar that takes every slot": (b'{"name":"x","cron":"0 0 25 12 *","calendar":["12-25"]}', ("no next fire",)),
    "startAt without a schedule": (b'{"name":"x","startAt":"2026-01-01T00:00:00Z"}', ("startAt: is only accepted",)),
    "endAt before startAt": (
        b'{"name":"x","every":"1h","startAt":"2036-01-02T00:00:00Z","endAt":"2036-01-01T00:00:00Z"}',
        ("endAt: is before startAt",),
    ),
    "no slot in between": (
        b'{"name":"x","cron":"0 9 * * *","startAt":"2036-01-02T10:00:00Z","endAt":"2036-01-02T11:00:00Z"}',
        ("endAt: leaves no slot",),
    ),
    "endAt in the past": (b'{"name":"x","every":"1h","endAt":"2020-01-01T00:00:00Z"}', ("endAt: leaves no slot",)),
    "anchor of a cron": (b'{"name":"x","cron":"0 9 * * *","anchor":"2020-01-01T00:00:00Z"}', ("anchor: is only accepted",)),
    "overlap from the finish": (
        b'{"name":"x","every":"1h","everyFrom":"finish","overlap":"skip"}',
        ("overlap: is not accepted with everyFrom finish",),
    ),
    "unknown dialect": (b'{"name":"x","cron":"0 9 * * *","dialect":"klingon"}', ("dialect",)),
    "encrypted as text": (b'{"name":"x","encrypted":"yes"}', ("encrypted: is neither true nor false",)),
    "encrypted as a number": (b'{"name":"x","encrypted":1}', ("encrypted: is neither true nor false",)),
    "searched entities": (
        b'{"name":"x","every":"1h","refresh":{"window":"1d"},"encrypted":true,"searchPaths":["a"]}',
        ("searchPaths: cannot be combined with refresh",),
    ),
    "search paths in clear": (b'{"name":"x","searchPaths":["a"]}', ("searchPaths: is only accepted for an encrypted job",)),
    "search path as text": (b'{"name":"x","encrypted":true,"searchPaths":"a"}', ("searchPaths",)),
    "empty search path": (b'{"name":"x","encrypted":true,"searchPaths":[""]}', ("searchPaths",)),
    "nine search paths": (
        b'{"name":"x","encrypted":true,"searchPaths":["1","2","3","4","5","6","7","8","9"]}',
        ("searchPaths: are not up to 8 different paths",),
    ),
    "malformed time": (b'{"name":"x","at":"2026-02-30T00:00:00Z"}', ("at:",)),
    "time without offset": (b'{"name":"x","at":"2026-02-20T00:00:00"}', ("at:", "offset")),
    "date as time": (b'{"name":"x","at":"2026-02-20"}', ("at:", "offset")),
    "number as time": (b'{"name":"x","at":1770000000}', ("at:", "offset")),
    "time of another age": (b'{"name":"x","at":"9999-12-31T23:59:59Z"}', ("1970 and 9000",)),
    "time with an absurd offset": (b'{"name":"x","at":"2026-02-20T00:00:00+99:00"}', ("at:",)),
    "deep nesting": (nested(65), ("nested deeper than 64",)),
    "100,000 brackets": (nested(100_000), ("nested deeper than 64",)),
    "100,000 open brackets": (b"[" * 100_000, ("nested deeper than 64",)),
    "a body of many arrays": (b'{"name":"x","payload":[' + b"[]," * 500_001 + b"[]]}", ("more than 500000",)),
    "many unknown fields": (
        b"{" + b",".join(b'"f%d":0' % n for n in range(60_000)) + b"}",
        ("more than 50000 fields",),
    ),
    "NUL in payload": (b'{"name":"x","payload":{"a":["\\u0000"]}}', ("NUL",)),
    "NUL in name": (b'{"name":"a\\u0000b"}', ("NUL",)),
    "NUL in a member's name": (b'{"name":"x","payload":{"\\u0000":1}}', ("NUL",)),
    "raw NUL": (b'{"name":"x\x00"}', ("not JSON",)),
    "NaN": (b'{"name":"x","payload":NaN}', ("NaN",)),
    "Infinity": (b'{"name":"x","payload":[-Infinity]}', ("Infinity",)),
    "1e999": (b'{"name":"x","payload":1e999}', ("too large",)),
    "5,000 digits": (b'{"name":"x","payload":' + b"9" * 5_000 + b"}", ("digits",)),
    "lone surrogate": (b'{"name":"x","payload":"\\ud800"}', ("surrogate",)),
    "reversed surrogates": (b'{"name":"x","payload":"\\ude00\\ud83d"}', ("surrogate",)),
    "invalid UTF-8": (b'{"name":"x","payload":"\xff"}', ("UTF-8",)),
    "surrogate in UTF-8": (b'{"name":"x","payload":"\xed\xa0\x80"}', ("UTF-8",)),
    "UTF-16": ('{"name":"x"}'.encode("utf-16"), ("UTF-8",)),
    "byte order mark": (b'\xef\xbb\xbf{"name":"x"}', ("not JSON",)),
    "duplicate names": (b'{"name":"x","name":"y"}', ("twice",)),
    "duplicate names in payload": (b'{"name":"x","payload":[{"a":1,"a":2}]}', ("twice",)),
    "duplicate names by escape": (b'{"name":"x","payload":{"a":1,"\\u0061":2}}', ("twice",)),
    "trailing comma": (b'{"name":"x",}', ("not JSON",)),
    "two values": (b'{"name":"x"}{"name":"y"}', ("not JSON",)),
    "empty body": (b"", ("name: is missing",)),
    "array body": (b'[{"name":"x"}]', ("body:",)),
    "null body": (b"null", ("body:",)),
    "string body": (b'"x"', ("body:",)),
    "number as name": (b'{"name":7}', ("name:",)),
    "null as name": (b'{"name":null}', ("name:",)),
    "name of digits": (b'{"name":"12345"}', ("only digits",)),
    "empty name": (b'{"name":""}', ("name:",)),
    "long name": (b'{"name":"%s"}' % (b"x" * 129), ("name:",)),
    "name with a slash": (b'{"name":"a/b"}', ("name:",)),
    "name with a line feed": (b'{"name":"a\\n"}', ("name:",)),
    "object as cron": (b'{"name":"x","cron":{}}', ("cron:",)),
    "malformed cron": (b'{"name":"x","cron":"0 61 * * *"}', ("cron:",)),
    "empty cron": (b'{"name":"x","cron":""}', ("cron:",)),
    "cron that never fires": (b'{"name":"x","cron":"0 0 30 2 *"}', ("cron has no next fire time",)),
    "cron of a past year": (b'{"name":"x","cron":"0 0 0 1 1 ? 2001"}', ("cron",)),
    "cron and every": (b'{"name":"x","cron":"0 9 * * *","every":"5s"}', ("cannot be combined with",)),
    "unknown zone": (b'{"name":"x","cron":"0 9 * * *","timezone":"Asia/Shanghia"}', ("timezone:", "Asia/Shanghai")),
    "zone as a path": (b'{"name":"x","cron":"0 9 * * *","timezone":"../../etc/passwd"}', ("timezone",)),
    "zone without cron": (b'{"name":"x","timezone":"UTC"}', ("timezone:",)),
    "every of nothing": (b'{"name":"x","every":"0s"}', ("every:",)),
    "every of a word": (b'{"name":"x","every":"often"}', ("every:",)),
    "number as every": (b'{"name":"x","every":5}', ("every:",)),
    "negative delay": (b'{"name":"x","delay":"-5s"}', ("delay:",)),
    "endless delay": (b'{"name":"x","delay":"99999999d"}', ("delay:",)),
    "boolean as maxLost": (b'{"name":"x","retry":{"maxLost":true}}', ("retry.maxLost",)),
    "negative maxLost": (b'{"name":"x","retry":{"maxLost":-1}}', ("retry.maxLost",)),
    "boolean as maxRetry": (b'{"name":"x","retry":{"maxRetry":true}}', ("retry.maxRetry",)),
    "fraction as maxRetry": (b'{"name":"x","retry":{"maxRetry":1.0}}', ("retry.maxRetry",)),
    "negative maxRetry": (b'{"name":"x","retry":{"maxRetry":-1}}', ("retry.maxRetry",)),
    "huge maxRetry": (b'{"name":"x","retry":{"maxRetry":1%s}}' % (b"0" * 300), ("retry.maxRetry",)),
    "unknown jitter": (b'{"name":"x","retry":{"jitter":"some"}}', ("retry.jitter",)),
    "no timeout": (b'{"name":"x","timeout":"0s"}', ("timeout",)),
    "endless timeout": (b'{"name":"x","timeout":"25h"}', ("timeout",)),
    "unknown priority": (b'{"name":"x","priority":"urgent"}', ("priority:",)),
    "queue with a space": (b'{"name":"x","queue":"a b"}', ("queue:",)),
    "51 tags": (b'{"name":"x","tags":[%s]}' % b",".join([b'"t"'] * 51), ("tags:",)),
    "tag with a comma": (b'{"name":"x","tags":["a,b"]}', ("tags:",)),
    "string as tags": (b'{"name":"x","tags":"a"}', ("tags:",)),
    "unknown status": (b'{"name":"x","status":"DONE"}', ("status:",)),
    "null target type": (b'{"name":"x","target":{"type":null}}', ("target.type",)),
    "target without type": (b'{"name":"x","target":{"url":"https://example.com/"}}', ("target.type",)),
    "target without url": (b'{"name":"x","target":{"type":"http"}}', ("target.url",)),
    "worker with url": (b'{"name":"x","target":{"type":"worker","url":"https://example.com/"}}', ("target.url",)),
    "handler with a space": (b'{"name":"x","target":{"type":"worker","handler":"a b"}}', ("target.handler",)),
    "file url": (b'{"name":"x","target":{"type":"http","url":"file:///etc/passwd"}}', ("http://",)),
    "gopher url": (b'{"name":"x","target":{"type":"http","url":"gopher://example.com/"}}', ("http://",)),
    "url with credentials": (
        b'{"name":"x","target":{"type":"http","url":"https://user:secret@example.com/"}}',
        ("credentials",),
    ),
    "url with a decimal host": (b'{"name":"x","target":{"type":"http","url":"http://2130706433/"}}', ("host",)),
    "url with a line feed": (b'{"name":"x","target":{"type":"http","url":"http://a/\\r\\nX: y"}}', ("target.url",)),
    "method of nonsense": (b'{"name":"x",%s,"method":"GET\\r\\n"}}' % HTTP[:-1].encode(), ("target.method",)),
    "header with a line feed": (
        b'{"name":"x",%s,"headers":{"A":"b\\r\\nEvil: 1"}}}' % HTTP[:-1].encode(),
        ("target.headers", "line breaks"),
    ),
    "header name with a colon": (b'{"name":"x",%s,"headers":{"A: b":"c"}}}' % HTTP[:-1].encode(), ("header name",)),
    "reserved header": (b'{"name":"x",%s,"headers":{"Host":"evil"}}}' % HTTP[:-1].encode(), ("Host",)),
    "our own header": (b'{"name":"x",%s,"headers":{"horai-fence":"9"}}}' % HTTP[:-1].encode(), ("horai-fence",)),
}  # fmt: skip


@pytest.mark.parametrize(("body", "words"), BODIES.values(), ids=BODIES)
async def test_a_bad_job_is_refused_and_leaves_nothing(
    api: Client, db: Platform, body: bytes, words: tuple[str, ...]
) -> None:
    before = await expect.contents(db)

    reply = await given.sent(api, "POST", JOBS, io.BytesIO(body), Idempotency_Key="bad")

    told = expect.invalid(reply, *words)
    assert len(str(told)) < 20_000
    assert "secret" not in str(told)
    assert await expect.contents(db) == before


async def test_all_faults_of_a_job_are_told_at_once_each_at_its_field(api: Client) -> None:
    told = expect.invalid(
        await api("POST", JOBS, {"name": "1", "queue": "a b", "timeout": "x", "retry": {"base": "y"}, "every": "z"})
    )

    fields = {error["field"] for error in told["errors"]}
    assert fields == {"name", "queue", "timeout", "retry.base", "every"}


async def test_C46_a_cron_that_never_fires_is_refused_with_that_reason(api: Client) -> None:
    expect.invalid(await api("POST", JOBS, {"name": "feb30", "cron": "0 0 0 30 2 ?"}), "cron has no next fire time")


async def test_a_malformed_cron_is_told_where_and_what_to_do(api: Client) -> None:
    told = expect.invalid(await api("POST", JOBS, {"name": "x", "cron": "0 25 * * *"}), "25", "hour")

    assert told["hint"]


KEYS = {
    "a NUL": ("a%00b", 422),
    "too long": ("k" * 513, 422),
    "too long in bytes": ("%E4%B8%AD" * 513, 422),
    "empty": ("", 422),
}


@pytest.mark.parametrize(("key", "status"), KEYS.values(), ids=KEYS)
async def test_a_bad_key_is_refused_and_leaves_nothing(api: Client, db: Platform, key: str, status: int) -> None:
    job = await given.job(api)
    before = await expect.contents(db)

    for method in ("PUT", "DELETE"):
        reply = await given.sent(api, method, f"{JOBS}/{job['name']}/instances/{key}", b"{}")
        expect.problem(reply, status, "SCH_422_INVALID", "key")

    assert await expect.contents(db) == before


PUTS: dict[str, tuple[bytes, str]] = {
    "unknown field": (b'{"executeTime":null,"at":"x"}', "at"),
    "negative version": (b'{"version":-1}', "version"),
    "huge version": (b'{"version":99999999999999999999}', "version"),
    "text as version": (b'{"version":"1"}', "version"),
    "boolean as version": (b'{"version":true}', "version"),
    "number as again": (b'{"again":1}', "again"),
    "time without offset": (b'{"executeTime":"2026-01-01T00:00:00"}', "executeTime"),
    "time of nonsense": (b'{"executeTime":"soon"}', "executeTime"),
    "time before 1970": (b'{"executeTime":"1969-12-31T23:59:59Z"}', "executeTime"),
    "snake case": (b'{"execute_time":"2999-01-01T00:00:00Z"}', "execute_time"),
}


@pytest.mark.parametrize(("body", "field"), PUTS.values(), ids=PUTS)
async def test_a_bad_put_is_refused_and_leaves_nothing(api: Client, db: Platform, body: bytes, field: str) -> None:
    job = await given.job(api)
    before = await expect.contents(db)

    told = expect.invalid(await given.sent(api, "PUT", f"{JOBS}/{job['name']}/instances/a", body))

    assert [error["field"] for error in told["errors"]] == [field]
    assert await expect.contents(db) == before


async def test_field_names_are_camel_case_only(api: Client, db: Platform) -> None:
    before = await expect.contents(db)

    expect.invalid(await api("POST", JOBS, {"name": "x", "retry": {"max_retry": 1}}), "retry.max_retry")

    assert await expect.contents(db) == before


async def test_a_body_over_two_mebibytes_is_refused(api: Client, db: Platform) -> None:
    before = await expect.contents(db)
    large = b'{"name":"x","payload":"' + b"x" * (2 * 1024 * 1024) + b'"}'

    async def in_chunks() -> AsyncGenerator[bytes]:
        for start in range(0, len(large), 65_536):
            yield large[start : start + 65_536]

    for data in (io.BytesIO(large), in_chunks()):
        expect.problem(await given.sent(api, "POST", JOBS, data), 413, "SCH_413_TOO_LARGE", "2097152")
    payload = b'{"name":"x","payload":"' + b"x" * (1024 * 1024) + b'"}'
    expect.problem(await given.sent(api, "POST", JOBS, io.BytesIO(payload)), 413, "SCH_413_TOO_LARGE", "payload")

    assert await expect.contents(db) == before


async def test_a_hostile_body_does_not_hold_up_the_server(api: Client) -> None:
    endless = b'"' + b'\\"' * 1_000_000
    began = time.monotonic()

    reply = await given.sent(api, "POST", JOBS, io.BytesIO(endless))

    expect.invalid(reply, "not JSON")
    assert time.monotonic() - began < 5


async def test_an_answer_does_not_grow_with_the_name_of_an_unknown_field(api: Client) -> None:
    told = expect.invalid(await api("POST", JOBS, {"name": "x", "y" * 100_000: 1}), "unknown field")

    assert len(str(told)) < 1_000


async def test_a_body_that_is_not_declared_as_json_is_refused(api: Client, db: Platform) -> None:
    before = await expect.contents(db)

    for declared in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", ""):
        reply = await given.sent(api, "POST", JOBS, b'{"name":"x"}', content_type=declared)
        expect.invalid(reply, "application/json")

    assert await expect.contents(db) == before
    accepted = await given.sent(
        api, "POST", JOBS, b'{"name":"declared"}', content_type="Application/JSON; charset=utf-8"
    )
    assert accepted.status == 201
