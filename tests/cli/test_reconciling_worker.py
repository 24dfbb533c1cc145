"""`@app.reconcile` in a worker of its own, as users run it: a module, a process, and what REST tells of it."""

from datetime import timedelta
from pathlib import Path

from make import scope as scope_of
from terminal import Terminal
from workers import Shop, elsewhere

from horai.db.pool import Platform
from horai.features.reconcile import service as reconcilers

NEWS = """
from datetime import UTC, datetime, timedelta

from horai import Horai, Wanted

app = Horai("shop")


@app.job
async def announce(article: dict[str, str]) -> None: ...


@app.reconcile(every="5m", job=announce)
async def announcements():
    for title in ("spring", "summer", "autumn"):
        yield Wanted(f"article:{title}", datetime.now(UTC) + timedelta(hours=1), {"title": title})
"""
NOWHERE = {"HORAI_DATA_DIR": "/nonexistent"}


async def test_B16_a_worker_compares_what_its_function_wants_and_creates_what_is_missing(
    url: str, tmp_path: Path, connection: Platform
) -> None:
    shop = Shop(tmp_path / "shop", NEWS)
    async with elsewhere(url) as job, scope_of(url) as scope:
        with shop.worker(url) as worker:
            worker.started()
            before = await reconcilers.read_reconciler(scope, "announcements")
            announcements = job("announcements")
            first = await (await announcements.enqueue()).result(timeout=30)
            await connection.execute("delete from horai.instance_live where key = 'article:summer'")
            second = await (await announcements.enqueue()).result(timeout=30)
        after = await reconcilers.read_reconciler(scope, "announcements")
    keys = await connection.fetch("select key from horai.instance_live where key is not null order by key")
    assert (before.row.target, before.row.declared_by, before.last) == ("announce", "shop", None)
    assert before.next_fire is not None  # it is known from its declaration on, not only from its first run
    assert (first["found"], first["created"], first["surplus"]) == (3, 3, 0)
    assert (second["found"], second["missing"], second["created"]) == (3, 1, 1)
    assert [row["key"] for row in keys] == ["article:autumn", "article:spring", "article:summer"]
    assert after.last is not None
    assert (str(after.last.id), after.last.tally.created) == (second["reportId"], 1)
    assert after.next_fire is not None
    assert after.next_fire - before.next_fire <= timedelta(minutes=5)


def test_B16_a_check_shows_a_reconciler_with_its_schedule(alone: Terminal, tmp_path: Path) -> None:
    Shop(tmp_path / "shop", NEWS)

    checked = alone.at(tmp_path / "shop")("check", "shop:app", **NOWHERE)

    assert checked.code == 0, checked.err
    (row,) = [line.split() for line in checked.out.splitlines() if line.startswith("announcements")]
    assert row[1:3] == ["every", "5m"]
