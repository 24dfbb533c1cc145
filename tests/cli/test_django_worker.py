"""An application with Django: the worker sets it up, and replaces connections that the database has closed."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from terminal import Terminal
from workers import Shop, elsewhere

from horai.db.pool import Platform

SETTINGS = """
SECRET_KEY = "test"
INSTALLED_APPS = ["django.contrib.contenttypes"]
USE_TZ = True
DATABASES = {{"default": {database!r}}}
"""
TASKS = """
from asgiref.sync import sync_to_async
from django.contrib.contenttypes.models import ContentType  # needs django.setup()
from django.db import connection

from horai import Horai, Retry

app = Horai("shop")
SOON = Retry(max=3, base="10ms", jitter="none")


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return cursor.fetchone()[0]


@app.job(retry=SOON)
def threaded() -> int:
    return backend()


@app.job(retry=SOON)
async def in_the_loop() -> int:
    return await sync_to_async(backend)()


@app.job(retry=SOON, isolation="process")
def apart() -> int:
    return backend()


@app.job(retry=SOON)
def several(first: int, *, second: int) -> int:
    return first - second


@app.job(retry=SOON)
async def several_async(first: int, *, second: int) -> int:
    return first - second
"""


@pytest.fixture
def shop(tmp_path: Path, url: str) -> Shop:
    """A Django project whose connections are never closed by age."""
    made, address = Shop(tmp_path / "shop", TASKS), sqlalchemy.make_url(url)
    database: dict[str, Any] = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": address.database,
        "USER": address.username,
        "HOST": address.query["host"],
        "PORT": address.query["port"],
        "CONN_MAX_AGE": None,
    }
    (made.place / "project_settings.py").write_text(SETTINGS.format(database=database))
    return made


@pytest.mark.parametrize("name", ["threaded", "in_the_loop", "apart"])
async def test_a_django_worker_survives_the_end_of_its_connections(
    shop: Shop, url: str, connection: Platform, name: str
) -> None:
    flags = ("--concurrency", "1", "--isolated", "1")
    with shop.worker(url, *flags, DJANGO_SETTINGS_MODULE="project_settings") as worker:
        worker.started()
        async with elsewhere(url) as job:
            backend = job(name)
            first = await (await backend.enqueue()).result(timeout=30)
            again = await (await backend.enqueue()).result(timeout=30)
            assert await connection.fetchval("select pg_terminate_backend($1, 5000)", first)
            after = await (await backend.enqueue()).result(timeout=30)

    assert again == first, "Django's connection is kept between calls"
    assert after != first


@pytest.mark.parametrize("name", ["several", "several_async"])
async def test_a_function_with_several_parameters_runs_beside_django(shop: Shop, url: str, name: str) -> None:
    with shop.worker(url, DJANGO_SETTINGS_MODULE="project_settings") as worker:
        worker.started()
        async with elsewhere(url) as job:
            handle = await job(name).enqueue({"first": 5, "second": 3})
            assert await handle.result(timeout=30) == 2


def test_check_sets_django_up_and_says_what_is_wrong_with_its_settings(alone: Terminal, shop: Shop) -> None:
    nowhere = {"HORAI_DATA_DIR": "/nonexistent"}
    found = alone.at(shop.place)("check", "shop", DJANGO_SETTINGS_MODULE="project_settings", **nowhere)
    missing = alone.at(shop.place)("check", "shop", DJANGO_SETTINGS_MODULE="nowhere.settings", **nowhere)

    assert found.code == 0, found.err
    assert missing.failed_with(
        1,
        "error: django.setup() failed: ModuleNotFoundError: No module named 'nowhere'",
        "hint: Check DJANGO_SETTINGS_MODULE, or remove it from the environment.",
    )
