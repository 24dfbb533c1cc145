"""The times to keep history and dead letters, as people write them: by REST, in code, and for a tenant."""

import json
from datetime import timedelta
from typing import Any

import harness
import pytest
from databases import Superuser
from keys import created, holder, holding

from horai import Horai, Node
from horai.core.errors import Invalid

WRONG = [
    ({"keepHistory": "23h"}, "keepHistory", "is not between 1d and 3650d"),
    ({"keepHistory": "3651d"}, "keepHistory", "is not between 1d and 3650d"),
    ({"keepDeadLetters": "0s"}, "keepDeadLetters", "is not between 1d and 3650d"),
    ({"keepHistory": "soon"}, "keepHistory", "soon"),
    ({"keepHistory": "30d", "keepDeadLetters": "29d"}, "keepDeadLetters", "is shorter than keepHistory"),
    ({"keepHistory": 30}, "keepHistory", ""),
]


async def kept(connection: Superuser) -> dict[tuple[int, bool], tuple[timedelta | None, timedelta | None]]:
    """The stored times by tenant, and whether they are those of a job."""
    rows = await connection.fetch(
        "select tenant_id, job_id <> 0 as is_job, keep_history, keep_dead_letters from horai.retention"
    )
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


async def test_a_time_out_of_range_is_refused_with_its_field_and_a_hint(url: str, connection: Superuser) -> None:
    async with harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        admin = await holder(root, "admin", "default")
        for fields, field, words in WRONG:
            made = await admin("POST", "/api/v1/jobs", {"name": "receipts", **fields})
            changed = await root("PATCH", "/api/v1/tenants/default", fields)
            for refused in (made, changed):
                assert (refused.status, refused.json["code"]) == (422, "SCH_422_INVALID"), refused.json
                (error,) = refused.json["errors"]
                assert (error["field"], words in error["message"]) == (field, True), error
        hinted = await admin("POST", "/api/v1/jobs", {"name": "receipts", "keepHistory": "1h"})
        assert "30d" in hinted.json["hint"]
        unknown = await admin("POST", "/api/v1/jobs", {"name": "receipts", "keepNotes": "30d"})
        assert unknown.status == 422
    assert await kept(connection) == {}


async def test_the_times_of_a_job_are_written_changed_and_removed(url: str, connection: Superuser) -> None:
    async with harness.node(url) as api:
        fields = {"keepHistory": "720h", "keepDeadLetters": "90d"}
        made = await api("POST", "/api/v1/jobs", {"name": "receipts", **fields})
        assert (made.json["keepHistory"], made.json["keepDeadLetters"]) == ("30d", "90d")
        assert await kept(connection) == {(1, True): (timedelta(days=30), timedelta(days=90))}
        changed = await api("PATCH", "/api/v1/jobs/receipts", {"keepHistory": "1d", "keepDeadLetters": None})
        assert (changed.json["keepHistory"], "keepDeadLetters" in changed.json) == ("1d", False)
        assert await kept(connection) == {(1, True): (timedelta(days=1), None)}
        assert (await api("POST", "/api/v1/jobs/receipts/pause", {})).status == 200
        assert await kept(connection) == {(1, True): (timedelta(days=1), None)}
        assert (await api("DELETE", "/api/v1/jobs/receipts")).status == 204
        assert await kept(connection) == {(1, True): (timedelta(days=1), None)}, "its history is still there"


async def test_the_platform_sets_the_times_of_a_tenant_and_the_tenant_reads_them(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        admin = await holder(root, "admin", "default")
        path, times = "/api/v1/tenants/default", {"keepHistory": "7d", "keepDeadLetters": "30d"}
        assert (await admin("PATCH", path, times)).status == 403
        before = (await root("GET", path)).json
        assert (before["keepHistory"], before["keepDeadLetters"]) == (None, None)
        changed = await root("PATCH", path, times)
        assert (changed.status, changed.json["keepHistory"], changed.json["version"]) == (
            200,
            "7d",
            before["version"] + 1,
        )
        own = (await admin("GET", "/api/v1/tenant")).json
        assert {field: own[field] for field in times} == times
        assert await kept(connection) == {(1, False): (timedelta(days=7), timedelta(days=30))}
        short = await root("PATCH", path, {"keepDeadLetters": "6d"})
        assert (short.status, short.json["errors"][0]["field"]) == (422, "keepDeadLetters")
        removed = await root("PATCH", path, {"keepDeadLetters": None})
        assert (removed.json["keepHistory"], removed.json["keepDeadLetters"]) == ("7d", None)
        assert await kept(connection) == {(1, False): (timedelta(days=7), None)}
    row = await connection.fetchrow(
        "select before, after from horai.audit where verb = 'tenant.change' order by id limit 1"
    )
    assert row is not None
    assert (json.loads(row["before"]), json.loads(row["after"])) == (
        {"keepHistory": None, "keepDeadLetters": None},
        times,
    )


async def test_code_declares_the_times_of_a_job(url: str, connection: Superuser) -> None:
    for time, days in (("30d", 30), (timedelta(days=2), 2)):
        async with Horai("shop", database_url=url) as app:
            app.job(lambda: None, name="receipts", keep_history=time, keep_dead_letters="100d")
            await app.declare()
        assert await kept(connection) == {(1, True): (timedelta(days=days), timedelta(days=100))}
    async with Horai("shop", database_url=url) as app:
        app.job(lambda: None, name="receipts")
        await app.declare()
    assert await kept(connection) == {(1, True): (None, None)}


def test_code_with_a_wrong_time_is_refused_where_it_is_written() -> None:
    app: Any = Horai("shop")
    with pytest.raises(Invalid, match="keepHistory: is not between 1d and 3650d"):
        app.job(lambda: None, name="receipts", keep_history="1h")
    with pytest.raises(Invalid, match="keep_history: is not for workflows"):
        app.workflow("nightly", [Node("receipts")], keep_history="30d")


async def test_the_tick_of_a_refresh_job_is_kept_as_long_as_its_runs(url: str, connection: Superuser) -> None:
    async with harness.node(url) as api:
        job = {"name": "prices", "every": "1h", "refresh": {"window": "10d"}, "keepHistory": "2d"}
        assert (await api("POST", "/api/v1/jobs", job)).status == 201
    rows = await connection.fetch("select keep_history from horai.retention")
    assert [row["keep_history"] for row in rows] == [timedelta(days=2)] * 2
