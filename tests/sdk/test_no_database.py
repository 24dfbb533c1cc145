"""Code that adds instances while no database is named: it is told what to set, at once, and nothing is started."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from terminal import clean_environment

from horai import Horai
from horai.db.database_location import NoDatabase
from horai.db.pool import Platform
from horai.sdk.client import NotMigrated

README = """
import asyncio
from horai import Horai

app = Horai("shop")

@app.job
async def greet(name: str) -> str:
    return f"hello {name}"

print(asyncio.run(greet.enqueue("Ada")))
"""


def test_enqueue_without_a_database_says_what_to_set_within_a_second(tmp_path: Path) -> None:
    app = Horai("shop", data_dir=tmp_path / "none")

    @app.job
    async def greet(name: str) -> str:
        return f"hello {name}"

    for enqueue in (lambda: asyncio.run(greet.enqueue("Ada")), lambda: greet.sync.enqueue("Ada")):
        took: list[float] = []
        for _ in range(3):  # one of them may meet a moment in which the machine stands still
            began = time.monotonic()
            with pytest.raises(NoDatabase, match="set HORAI_DATABASE_URL, or start `horai up`"):
                enqueue()
            took.append(time.monotonic() - began)
        assert min(took) < 1
    assert not (tmp_path / "none").exists()


def test_a_script_without_a_database_ends_and_starts_no_process(tmp_path: Path) -> None:
    environment = clean_environment() | {"HORAI_DATA_DIR": str(tmp_path / "none")}
    told = subprocess.run([sys.executable, "-c", README], env=environment, capture_output=True, text=True, check=False)

    assert (told.returncode, told.stdout) == (1, "")
    assert "set HORAI_DATABASE_URL, or start `horai up`" in told.stderr.splitlines()[-1]
    assert not (tmp_path / "none").exists()
    assert not [process for process in psutil.process_iter() if str(tmp_path) in _command(process)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


async def test_a_database_without_the_tables_names_the_command_that_makes_them(url: str, connection: Platform) -> None:
    await connection.execute("drop schema horai cascade")
    app = Horai("shop", database_url=url)

    @app.job
    async def greet() -> None: ...

    with pytest.raises(NotMigrated, match="run `horai migrate`"):
        await greet.enqueue()


async def test_a_time_out_names_the_job_the_instance_and_its_state(url: str) -> None:
    app = Horai("shop", database_url=url)

    @app.job
    async def greet(name: str) -> str:
        return f"hello {name}"

    handle = await greet.enqueue("Ada")
    with pytest.raises(TimeoutError) as late:
        await handle.result(timeout="50ms")
    await app.close()

    assert str(late.value).startswith(
        f"The instance {handle.id} of 'greet' did not end within 0.05 s: it is INIT, planned"
    )
    assert str(late.value).endswith("and no worker has started it.")


async def test_a_hint_is_part_of_what_python_prints(url: str) -> None:
    code = README.replace('Horai("shop")', f"Horai(database_url={url!r})")
    told = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True, check=False
    )

    assert 'Hint: Name it: app = Horai("shop").' in told.stderr
