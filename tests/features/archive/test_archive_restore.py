"""Archived instances are restored into a table beside the history, as often as asked, and removed again."""

from pathlib import Path
from typing import Any

import archive_yard as yard
import harness
import make
import pytest
from databases import Superuser

from api import expect
from horai.features.archive.archiving import archive_partition

DAY = yard.ago(20)
PATH = f"/api/v1/archive/restored/{DAY}"


async def archived(url: str, connection: Superuser, root: Path, count: int) -> None:
    async with make.scope(url) as scope:
        part = await yard.history(connection, await make.job(scope), DAY, count)
        await archive_partition(connection, await yard.place(connection, root), part)


async def both(connection: Superuser) -> tuple[list[Any], list[Any]]:
    """The columns that the history and the restored table have in common, in the same form."""
    columns = "id, job_id, key, reason, fire_time, execute_time, created_at, claimed_at, finished_at, attempt, retry_count, fence, version"
    texts = "error_code, error_msg, payload::text, result::text"
    history = await connection.fetch(
        f"select horai.state_name(state) as ended, {columns.replace('reason, ', '')}, {texts} from horai.instance_history order by id"
    )
    restored = await connection.fetch(
        f"select final_state as ended, {columns.replace('reason, ', '')}, {texts} from horai.restored_instance order by id"
    )
    return [tuple(row) for row in history], [tuple(row) for row in restored]


async def test_a_day_is_restored_once_however_often_it_is_asked_for_and_removed(
    url: str, connection: Superuser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horai.features.archive.service.AT_ONCE", 7)
    await archived(url, connection, tmp_path, 25)
    async with harness.node(url, archive_dir=str(tmp_path)) as api:
        first = await api("POST", PATH)
        history, restored = await both(connection)
        assert (first.status, first.json) == (200, {"day": str(DAY), "rows": 25, "restored": 25, "complete": True})
        assert restored == history
        assert (await api("POST", PATH)).json == first.json
        await connection.execute("delete from horai.restored_instance where key in ('key-3', 'key-20', 'key-25')")
        assert (await api("POST", PATH)).json == first.json, "instances that are missing in between are found"
        removed = await api("DELETE", PATH)
        assert removed.json == {"day": str(DAY), "rows": 25, "restored": 0, "complete": False}
        assert (await api("DELETE", PATH)).json == removed.json
    verbs = await connection.fetch("select verb from horai.audit where verb like 'archive.%' order by id")
    assert [row["verb"] for row in verbs] == ["archive.restore", "archive.restore", "archive.remove_restored"]


async def test_a_restored_instance_changes_no_list_and_no_put(url: str, connection: Superuser, tmp_path: Path) -> None:
    await archived(url, connection, tmp_path, 5)
    await connection.execute(f"drop table horai.instance_history_{DAY:%Y%m%d}")
    async with harness.node(url, archive_dir=str(tmp_path)) as api:
        assert (await api("POST", PATH)).json["restored"] == 5
        assert (await api("GET", "/api/v1/instances")).json["items"] == []


async def test_a_day_without_a_file_or_that_is_no_day_is_refused(url: str, tmp_path: Path) -> None:
    async with harness.node(url, archive_dir=str(tmp_path)) as api:
        for method in ("POST", "DELETE"):
            expect.problem(await api(method, PATH), 404, "SCH_404_NOT_FOUND")
            expect.problem(await api(method, "/api/v1/archive/restored/2026-02-30"), 422, "SCH_422_INVALID")
    async with harness.node(url, name="other") as api:
        expect.problem(await api("POST", PATH), 422, "SCH_422_INVALID")
