"""An application that declares jobs is imported without the database, the engine and what they need."""

import json
import subprocess
import sys

import pytest

HEAVY = {"aiohttp", "asyncpg", "cryptography", "fastapi", "pydantic", "rich", "structlog", "uvloop", "yarl"}
"""Packages that only a process that reaches the database, serves requests or runs functions needs."""
HEAVY_OF_OURS = {
    "horai.db",
    "horai.embedded",
    "horai.engine",
    "horai.operations",
    "horai.sdk.client",
    "horai.sdk.runtime",
}
MOST = 290
"""Modules of a process that declares jobs, those of Python included. Before they were split, there were 812."""

JOBS = """
from dataclasses import dataclass
from horai import Horai, Refresh, Retry

@dataclass
class Order:
    id: int

app = Horai("shop", database_url="postgresql://horai@127.0.0.1:1/none")

@app.job(cron="0 9 * * 1-5", timezone="Europe/Berlin", retry=Retry(max=3))
async def report() -> None: ...

@app.job
def pack(order: Order, count: int = 1) -> str: ...

@app.job(every="5m", refresh=Refresh(window="10d"))
def renew() -> None: ...

@app.on_startup
def prepare() -> None: ...

@app.reconcile(every="10m", job=pack)
def wanted(): ...

orders = app.asset("orders")
"""
FLOWS = """
from horai import Node, chain, group, step
flow = app.workflow("nightly", [Node(report), Node(pack, after=[report])], cron="0 2 * * *")
both = chain(report.si(), group([pack.s(Order(1)), pack.s(Order(2))]))
"""


def modules_after(code: str) -> set[str]:
    shown = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("code", ["from horai import Horai", JOBS, JOBS + FLOWS], ids=["import", "jobs", "flows"])
def test_an_application_that_declares_jobs_loads_neither_the_database_nor_the_engine(code: str):
    loaded = modules_after(code)

    assert {name for name in loaded if name.split(".")[0] in HEAVY or name in HEAVY_OF_OURS} == set()


def test_an_application_that_declares_jobs_loads_few_modules():
    assert len(modules_after(JOBS)) <= MOST


def test_the_first_call_that_needs_the_database_loads_the_rest_and_finds_that_there_is_none():
    call = """
import asyncio
try:
    asyncio.run(pack.enqueue(Order(1)))
except Exception as error:
    print(type(error).__name__, file=sys.stderr)
else:
    raise AssertionError("there is no database at this address")
assert "horai.sdk.runtime" in sys.modules
"""
    assert {"asyncpg", "horai.sdk.client"} <= modules_after(f"import sys\n{JOBS}{call}")


def test_every_name_of_the_deferred_half_exists_and_another_one_is_an_attribute_error():
    """Type checkers see deferred.pyi; the object behind it answers for the same names."""
    code = """
from horai.sdk.deferred import runtime
from horai.sdk import runtime as module
assert all(getattr(runtime, name) is getattr(module, name) for name in module.__all__)
try:
    runtime.nothing
except AttributeError:
    pass
else:
    raise AssertionError("a name that is not there")
"""
    assert "horai.sdk.runtime" in modules_after(code)


def test_an_inspection_of_the_deferred_half_does_not_load_it():
    code = """
import inspect
from horai.sdk.deferred import runtime
inspect.unwrap(runtime)
"""
    assert "horai.sdk.runtime" not in modules_after(code)


@pytest.mark.parametrize("state", ["enable", "disable"])
def test_the_garbage_collector_is_as_before_once_the_deferred_half_is_loaded(state: str):
    code = f"""
import gc
gc.{state}()
before = gc.isenabled()
from horai.sdk.deferred import runtime
runtime.Scope
assert gc.isenabled() is before
"""
    assert "horai.sdk.runtime" in modules_after(code)
