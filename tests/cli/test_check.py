"""`horai check`: what it shows, what it finds, and that it leaves everything as it was."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
from terminal import Terminal

from horai import Horai, Node
from horai.db.pool import Platform

NOWHERE = {"HORAI_DATA_DIR": "/nonexistent"}
SHOP = """
    from dataclasses import dataclass
    from horai import Horai, Instance

    app = Horai("shop")

    @dataclass
    class Order:
        number: int

    @app.job(cron="0 9 * * *", timezone="Asia/Shanghai", queue="mail")
    async def remind(): ...

    @app.job(every="90s")
    def sweep(instance): ...

    @app.job(isolation="process")
    def ship(order: Order): ...

    @app.job
    async def bill(instance: "Instance[Order]"): ...
"""
TABLE = [
    ["JOB", "SCHEDULE", "QUEUE", "FUNCTION", "PAYLOAD"],
    ["remind", "0 9 * * * (Asia/Shanghai)", "mail", "async ()", "any"],
    ["sweep", "every 1m30s", "default", "(instance)", "any"],
    ["ship", "on demand", "default", "(payload) in a process", "Order"],
    ["bill", "on demand", "default", "async (instance)", "Order"],
]


@pytest.fixture
def shop(alone: Terminal, tmp_path: Path) -> Terminal:
    """A terminal in a directory of its own."""
    write(tmp_path, SHOP)
    return alone.at(tmp_path)


def write(place: Path, source: str, module: str = "shop") -> None:
    (place / f"{module}.py").write_text(textwrap.dedent(source))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


async def declared(app: Horai) -> None:
    try:
        await app.declare()
    finally:
        await app.close()


def test_every_job_is_shown_in_its_own_words(shop: Terminal) -> None:
    checked = shop("check", "shop:app", **NOWHERE)

    assert (checked.code, [cells(line) for line in checked.out.splitlines()]) == (0, TABLE), checked.err
    assert checked.err == "Not compared with a database: none is named, and no `horai up` is running here.\n"


def test_scripts_get_json(shop: Terminal) -> None:
    checked = shop("check", "shop", "--json", **NOWHERE)

    found = checked.json
    assert (checked.code, found["application"], found["problems"], found["deploy"]) == (0, "shop", [], None)
    assert found["jobs"][0] == {
        "name": "remind",
        "schedule": "0 9 * * * (Asia/Shanghai)",
        "queue": "mail",
        "function": "async ()",
        "payload": "any",
    }


async def test_beside_a_database_it_says_what_a_deploy_would_do_and_does_nothing(
    shop: Terminal, url: str, connection: Platform
) -> None:
    before = Horai("shop", database_url=url)

    @before.job(every="90s")
    def sweep(instance: Any) -> None: ...

    @before.job(every="1h", name="remind")
    async def remind() -> None: ...

    @before.job
    def retired() -> None: ...

    await declared(before)
    known = await connection.fetch("select * from horai.job order by id")

    checked = shop("check", "shop", "--database-url", url)
    as_json = shop("check", "shop", "--json", HORAI_DATABASE_URL=url)

    fates = {line.split()[0]: cells(line)[-1] for line in checked.out.splitlines()[1:]}
    assert checked.code == 0, checked.err
    assert fates == {
        "remind": "change",
        "sweep": "leave",
        "ship": "create",
        "bill": "create",
        "retired": "not in the code",
    }
    assert checked.err == "Jobs that are not in the code stay as they are: horai jobs delete removes them.\n"
    assert as_json.json["deploy"] == {
        "create": ["bill", "ship"],
        "change": ["remind"],
        "leave": ["sweep"],
        "notInCode": ["retired"],
    }
    assert await connection.fetch("select * from horai.job order by id") == known


async def test_a_name_that_is_another_applications_is_a_problem(shop: Terminal, url: str) -> None:
    other = Horai("billing", database_url=url)

    @other.job
    def bill() -> None: ...

    await declared(other)

    checked = shop("check", "shop", "--database-url", url)
    as_json = shop("check", "shop", "--json", "--database-url", url)

    assert (checked.code, as_json.code, as_json.err) == (1, 1, "")
    assert checked.err.startswith("error: bill: is declared by the application 'billing'")
    assert checked.out.startswith("JOB")
    assert as_json.json["problems"] == [checked.err.splitlines()[0].removeprefix("error: ")]


async def test_an_empty_database_would_get_everything_and_gets_nothing(
    shop: Terminal, url: str, connection: Platform
) -> None:
    await connection.execute("drop schema horai cascade")

    checked = shop("check", "shop", "--database-url", url)

    assert [cells(line)[-1] for line in checked.out.splitlines()[1:]] == ["create"] * 4
    assert "migrations: the deploy applies them." in checked.err
    assert await connection.fetchval("select count(*) from pg_namespace where nspname = 'horai'") == 0


async def test_a_database_of_an_older_version_is_told(shop: Terminal, url: str, connection: Platform) -> None:
    await connection.execute("delete from horai.migration where number = (select max(number) from horai.migration)")

    checked = shop("check", "shop", "--json", "--database-url", url)

    assert (checked.code, checked.json["deploy"], len(checked.json["migrations"])) == (0, None, 1)


def test_a_database_out_of_reach_is_told(shop: Terminal) -> None:
    refused = shop("check", "shop", "--database-url", "postgresql://127.0.0.1:1/none")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: The database cannot be reached: ")


def test_an_application_without_jobs_is_a_problem(shop: Terminal, tmp_path: Path) -> None:
    write(tmp_path, "from horai import Horai\napp = Horai()\n", "empty")

    assert shop("check", "empty").failed_with(
        1, "error: No job is declared in the application without a name.", "hint: Declare one: @app.job."
    )


def test_a_fault_in_a_job_is_told_with_its_place(shop: Terminal, tmp_path: Path) -> None:
    write(
        tmp_path,
        """\
        from horai import Horai, Node
        app = Horai("shop")

        @app.job(cron="61 * * * *")
        def wrong(): ...
        """,
        "wrong",
    )

    refused = shop("check", "wrong")

    first, second, *_ = refused.err.splitlines()
    assert (refused.code, refused.out) == (1, "")
    assert first.startswith("error: The job 'wrong': cron: ")
    assert second.startswith(f"error:   {tmp_path}/wrong.py:")


def test_an_import_that_fails_inside_the_module_is_told_apart_from_one_that_is_missing(
    shop: Terminal, tmp_path: Path
) -> None:
    write(tmp_path, "def load():\n    import absent\n\nload()\n", "inner")
    write(tmp_path, "value = (\n", "broken")
    write(tmp_path, "import sys\nsys.exit(3)\n", "leaves")

    assert shop("check", "inner").failed_with(
        1,
        "error: The module 'inner' cannot be imported: ModuleNotFoundError: No module named 'absent'",
        f"error:   {tmp_path}/inner.py:4: load()",
        f"error:   {tmp_path}/inner.py:2: import absent",
    )
    assert shop("check", "broken").failed_with(
        1,
        "error: The module 'broken' cannot be imported: SyntaxError: '(' was never closed",
        f"error:   {tmp_path}/broken.py:1: value = (",
    )
    assert shop("check", "leaves").failed_with(
        1,
        "error: The module 'leaves' cannot be imported: SystemExit: 3",
        f"error:   {tmp_path}/leaves.py:2: sys.exit(3)",
    )


@pytest.mark.parametrize(
    ("reference", "lines"),
    [
        ("shopp:app", ["error: There is no module 'shopp'.", "hint: Did you mean shop?"]),
        ("store.jbos", ["error: There is no module 'store.jbos'.", "hint: Did you mean store.jobs?"]),
        ("shop:ap", ["error: shop:ap: the module has no 'ap'.", "hint: Did you mean shop:app?"]),
        (
            "shop:Order",
            ["error: shop:Order: the module has a type there, not a Horai.", "hint: Did you mean shop:app?"],
        ),
        (
            "store:x",
            ["error: store:x: the module has no 'x'.", "hint: It has store:orders, store:bills."],
        ),
        (
            "store.jobs",
            [
                "error: store.jobs:app: the module has no 'app'.",
                'hint: It has no application: app = Horai("shop") creates one.',
            ],
        ),
        ("shop.py", ["error: 'shop.py' does not name an application.", "hint: Did you mean shop:app?"]),
        ("./a/shop.py:x", ["error: './a/shop.py:x' does not name an application.", "hint: Did you mean a.shop:app?"]),
        (
            "a shop",
            ["error: 'a shop' does not name an application.", "hint: Write MODULE:APP, such as shop.jobs:app."],
        ),
    ],
)
def test_a_slip_in_the_name_is_bad_usage_with_a_way_out(
    shop: Terminal, tmp_path: Path, reference: str, lines: list[str]
) -> None:
    (tmp_path / "store").mkdir()
    write(tmp_path / "store", "from horai import Horai\norders, bills = Horai('a'), Horai('b')\n", "__init__")
    write(tmp_path / "store", "", "jobs")

    assert shop("check", reference).failed_with(2, *lines)


NIGHTLY = """
    from horai import Horai, Node

    app = Horai("nightly")

    @app.job
    async def load(): ...

    @app.job
    async def report(): ...

    app.workflow("books", [Node(load), Node(report, after=[load])], cron="0 2 * * *")
    app.workflow("papers", [Node(load)], queue="slow")
"""


def test_C6_workflows_are_shown_beside_the_jobs(alone: Terminal, tmp_path: Path) -> None:
    write(tmp_path, NIGHTLY, "nightly")
    shop = alone.at(tmp_path)

    checked = shop("check", "nightly", **NOWHERE)
    found = shop("check", "nightly", "--json", **NOWHERE).json

    assert checked.code == 0, checked.err
    assert [cells(line) for line in checked.out.splitlines()[3:]] == [
        ["books", "0 2 * * * (UTC)", "default", "workflow of 2 nodes", "any"],
        ["papers", "on demand", "slow", "workflow of 1 node", "any"],
    ]
    assert found["workflows"][0] == {
        "name": "books",
        "schedule": "0 2 * * * (UTC)",
        "queue": "default",
        "nodes": ["load", "report"],
    }


async def test_C6_workflows_are_compared_with_those_stored_and_nothing_is_written(
    alone: Terminal, tmp_path: Path, url: str, connection: Platform
) -> None:
    write(tmp_path, NIGHTLY, "nightly")
    shop = alone.at(tmp_path)
    before = Horai("nightly", database_url=url)

    @before.job
    async def load() -> None: ...

    before.workflow("books", [Node(load)], cron="0 2 * * *")
    before.workflow("papers", [Node(load)], queue="slow")
    before.workflow("retired", [Node(load)])
    await declared(before)
    known = await connection.fetch("select * from horai.workflow order by id")

    found = shop("check", "nightly", "--json", "--database-url", url)

    assert found.json["deploy"] == {
        "create": ["report"],
        "change": ["books"],
        "leave": ["load", "papers"],
        "notInCode": ["retired"],
    }
    assert await connection.fetch("select * from horai.workflow order by id") == known


MAIL = """
    from horai import Horai

    app = Horai("mail")
    mail = app.queue("mail", max_concurrency=5, rate=100, priority="high")
    app.queue("bulk")

    @app.job(queue=mail)
    async def send(): ...
"""


async def test_queues_of_the_code_are_shown_and_compared_and_nothing_is_written(
    alone: Terminal, tmp_path: Path, url: str, connection: Platform
) -> None:
    write(tmp_path, MAIL, "mail")
    terminal = alone.at(tmp_path)
    before = Horai("mail", database_url=url)
    before.queue("mail", max_concurrency=4)
    before.queue("old", rate="1/s")
    await declared(before)
    known = await connection.fetch("select * from horai.queue order by id")

    checked = terminal("check", "mail", "--database-url", url)
    found = terminal("check", "mail", "--json", "--database-url", url)

    assert [cells(line) for line in checked.out.splitlines()[1:]] == [
        ["send", "on demand", "mail", "async ()", "any", "create"],
        ["queue mail", "mail", "5 at once, 100/s, priority high", "change"],
        ["queue bulk", "bulk", "no limits", "create"],
        ["queue old", "not in the code"],
    ]
    assert checked.err == "Queues that are not in the code keep their limits: horai queues set removes them.\n"
    assert found.json["queues"] == [
        {"name": "mail", "limits": "5 at once, 100/s, priority high"},
        {"name": "bulk", "limits": "no limits"},
    ]
    assert found.json["deploy"] == {
        "create": ["queue bulk", "send"],
        "change": ["queue mail"],
        "leave": [],
        "notInCode": ["queue old"],
    }
    assert await connection.fetch("select * from horai.queue order by id") == known


async def test_C6_check_reports_problems_that_prevent_the_deployment_of_a_workflow(
    alone: Terminal, tmp_path: Path, url: str
) -> None:
    write(tmp_path, NIGHTLY + "    app.workflow('lost', [Node('nobody')])\n", "nightly")
    shop = alone.at(tmp_path)
    other = Horai("elsewhere", database_url=url)

    @other.job(name="papers")
    async def job() -> None: ...

    other.workflow("books", [Node(job)])
    await declared(other)

    found = shop("check", "nightly", "--json", "--database-url", url)

    assert found.code == 1
    assert [problem.split(":")[0] for problem in found.json["problems"]] == ["books", "papers", "lost.nodes.0.job"]


UNSAFE = """
    import asyncio, random, time, uuid
    import urllib.request
    from datetime import datetime, UTC
    from uuid import uuid4
    from horai import Horai, sleep, step

    app = Horai("shop")

    def draw() -> float:
        return random.random()  # in a step, and fine

    @app.job
    async def durable(order: int) -> None:
        begun = datetime.now(UTC)
        await step("draw", draw)
        await step("name", lambda: uuid4().hex)
        number = uuid.uuid4()
        random.shuffle([1, 2])
        urllib.request.urlopen("http://127.0.0.1:9")
        await asyncio.sleep(5)
        await sleep("10m")
        if time.time() > 0:
            return

    @app.job
    async def calling(order: int) -> None:
        await plain.call(order)
        random.random()

    @app.job
    async def plain(order: int) -> None:
        random.random()
        await asyncio.sleep(1)
"""


def test_calls_that_belong_into_a_step_are_warned_of_with_file_and_line(alone: Terminal, tmp_path: Path) -> None:
    write(tmp_path, UNSAFE)
    checked = alone.at(tmp_path)("check", "shop", **NOWHERE)

    assert checked.code == 0
    warned = [line.removeprefix("warning: ") for line in checked.err.splitlines() if line.startswith("warning: ")]
    assert [line.split(", and")[0] for line in warned] == [
        "shop.py:15: durable calls datetime.now outside a step",
        "shop.py:18: durable calls uuid.uuid4 outside a step",
        "shop.py:19: durable calls random.shuffle outside a step",
        "shop.py:20: durable calls urllib.request.urlopen outside a step",
        "shop.py:21: durable calls asyncio.sleep outside a step",
        "shop.py:23: durable calls time.time outside a step",
        "shop.py:29: calling calls random.random outside a step",
    ]
    assert "frees the worker" in warned[4]
    assert alone.at(tmp_path)("check", "shop", "--json", **NOWHERE).json["warnings"] == warned
