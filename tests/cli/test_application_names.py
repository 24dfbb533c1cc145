"""Two services on one database: each application has a name, and a job belongs to the first one that declares it."""

from pathlib import Path

import pytest
from harness import HoraiProcess
from terminal import Terminal
from workers import Shop, elsewhere, until

from horai.db.pool import Platform

TASKS = """
from horai import Horai

app = Horai({name})


@app.job(every="{every}")
def send_mail() -> str:
    return "{said}"
"""
UNNAMED = (
    "error: The application has no name, and declaring its jobs requires one.",
    'hint: Name it: app = Horai("shop"). Without a name, it runs only under `horai up --app` on the embedded database.',
)


def service(place: Path, name: str, every: str = "1h", said: str = "") -> Shop:
    """A directory whose module is called `shop`, as in every other service."""
    return Shop(place, TASKS.format(name=name, every=every, said=said))


async def test_the_second_application_with_the_same_job_is_refused_and_told_who_has_it(
    alone: Terminal, tmp_path: Path, url: str, connection: Platform
) -> None:
    first = service(tmp_path / "first", '"shop"', said="shop")
    second = service(tmp_path / "second", '"billing"', every="5m", said="billing")

    with first.worker(url) as worker:
        worker.started()
        refused = alone.at(second.place)("worker", "shop", "--database-url", url)

        assert refused.failed_with(
            1,
            "error: send_mail: is declared by the application 'shop', and a job belongs to the first application that "
            "declares it",
            "hint: If this is the same application, write Horai('billing', formerly='shop'). Otherwise give one of the "
            "two jobs another name.",
        )
        async with elsewhere(url) as job:
            answers = [await (await job("send_mail").enqueue()).result(timeout=30)]
    assert answers == ["shop"]
    document = await connection.fetchval("select definition->>'every' from horai.job where name = 'send_mail'")
    assert document == "1h"


async def test_a_redeploy_keeps_its_jobs_and_a_renamed_application_takes_them_over(
    tmp_path: Path, url: str, connection: Platform
) -> None:
    before = service(tmp_path / "before", '"shop"')
    again = service(tmp_path / "again", '"shop"', every="30m")
    renamed = service(tmp_path / "renamed", '"store", formerly="shop"', every="10m")

    for release in (before, again, renamed):
        with release.worker(url) as worker:
            worker.started()

    owned = await connection.fetch(
        "select definition->>'declaredBy' as owner, definition->>'every' as pace from horai.job"
    )
    assert [tuple(row) for row in owned] == [("store", "10m")]


def test_a_worker_refuses_an_application_without_a_name(alone: Terminal, tmp_path: Path, url: str) -> None:
    shop = service(tmp_path / "unnamed", "")

    assert alone.at(shop.place)("worker", "shop", "--database-url", url).failed_with(1, *UNNAMED)


def test_check_says_that_an_application_without_a_name_cannot_be_deployed(alone: Terminal, tmp_path: Path) -> None:
    shop = service(tmp_path / "unnamed", "")

    checked = alone.at(shop.place)("check", "shop", HORAI_DATA_DIR=str(tmp_path))

    assert (checked.code, tuple(checked.err.splitlines())) == (1, UNNAMED)


@pytest.mark.parametrize("is_embedded", [True, False])
async def test_up_runs_an_application_without_a_name_on_its_embedded_database_only(
    tmp_path: Path, short_place: Path, url: str, is_embedded: bool
) -> None:
    shop = service(tmp_path / "unnamed", "", every="1s", said="ran")
    database = () if is_embedded else ("--database-url", url)
    place = short_place / ("unnamed" if is_embedded else "elsewhere")
    up = HoraiProcess(place, "--app", "shop", *database, PYTHONPATH=str(shop.place)).start()
    try:
        if is_embedded:
            horai = Terminal(HORAI_SERVER=up.base)
            await until(lambda: _succeeded(horai), within=30)
            shown = horai("jobs", "show", "send_mail", "--json").json
            assert (shown["name"], shown.get("declaredBy")) == ("send_mail", None)
        else:
            await until(lambda: UNNAMED[0] in up.log.read_text(), within=30)
    finally:
        assert up.stop() == 0


def _succeeded(horai: Terminal) -> bool:
    listed = horai("instances", "list", "--job", "send_mail", "--state", "SUCCESS", "--json")
    return listed.code == 0 and bool(listed.json["items"])
