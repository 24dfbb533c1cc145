"""`horai migrate --plan`, its refusal and `--offline`, with files in a temporary directory and real processes."""

import json
import subprocess
import sys
from pathlib import Path

import made_migrations
from databases import Superuser, analyze
from terminal import Ended, Terminal, clean_environment

from horai.db.migration_plan import LARGE_ROWS

SCRIPT = """
import pathlib, sys
from horai.db import migration_file
migration_file.FOLDER = pathlib.Path(sys.argv.pop(1))
from horai.cli.main import run
run()
"""
BIG = f"""
create table horai.big (id integer primary key, amount integer);
insert into horai.big select n, n from generate_series(1, {LARGE_ROWS}) n;
"""


def typed(folder: Path, *arguments: str) -> Ended:
    """Run `horai` of a version that has the migrations of the folder."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), *arguments],
        env=clean_environment() | {"COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


async def fill(connection: Superuser) -> None:
    await connection.execute(BIG)
    await analyze(connection, "horai.big")


async def test_a_migration_that_is_not_online_is_planned_refused_and_applied_offline(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    await fill(connection)
    text = "alter table horai.big alter column amount type bigint"
    first, second = made_migrations.made_after(tmp_path, "create table horai.fresh ()", text)
    place = ("--database-url", url)

    plan, kept = typed(tmp_path, "migrate", "--plan", *place), typed(tmp_path, "migrate", "--plan", "--json", *place)

    assert (plan.code, kept.code) == (0, 0), plan.err
    assert plan.out.splitlines()[0].split() == [
        "MIGRATION",
        "ONLINE",
        "LOCK",
        "TABLE",
        "ROWS",
        "SIZE",
        "WORK",
        "STATEMENT",
    ]
    line = plan.out.splitlines()[2]
    for shown in (second, "no", "ACCESS EXCLUSIVE", "horai.big", f"{LARGE_ROWS:,}", "rewrites the table", text):
        assert shown in line
    assert f"{second}: not online, rule same-type:" in plan.err
    steps = {step["migration"]: step for step in kept.json["steps"]}
    assert (steps[first]["isOnline"], steps[first]["isRefused"]) == (True, False)
    assert steps[second]["rows"] == LARGE_ROWS
    assert steps[second]["bytes"] == await connection.fetchval("select pg_total_relation_size('horai.big')")
    assert [step["migration"] for step in kept.json["refused"]] == [second]

    refused = typed(tmp_path, "migrate", *place)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"error: Migration {second} is not online: `{text}` takes the lock ACCESS EXCLUSIVE")
    assert "hint: Stop every node and worker, then run `horai migrate --offline`." in refused.err

    applied = typed(tmp_path, "migrate", "--offline", *place)
    assert (applied.code, applied.out.splitlines()) == (0, [f"applied {first}", f"applied {second}"]), applied.err
    again = typed(tmp_path, "migrate", "--json", *place)
    assert json.loads(again.out) == {"migrations": [], "isDryRun": False}


async def test_a_command_that_waits_for_another_process_says_so(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    made_migrations.made_after(tmp_path)
    await connection.execute("select pg_advisory_lock($1)", 0x486F726169)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), "migrate", "--database-url", url]
    with subprocess.Popen(command, env=clean_environment(), stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "another process migrates this database: waiting until it has finished\n"
        await connection.execute("select pg_advisory_unlock($1)", 0x486F726169)
        assert waiting.wait(timeout=60) == 0


def test_a_plan_of_a_migrated_database_has_nothing_to_do(alone: Terminal, url: str) -> None:
    done = alone("migrate", "--plan", "--database-url", url)

    assert (done.code, done.out, done.err) == (0, "", "Nothing to do: the database is at this version.\n")


def test_a_plan_applies_nothing_so_it_takes_no_flag_of_applying(alone: Terminal, url: str) -> None:
    refused = alone("migrate", "--plan", "--offline", "--database-url", url)

    assert refused.failed_with(2, "error: --plan applies no migration.", "hint: Leave out --offline and --single-role.")
