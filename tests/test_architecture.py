"""The rules for the shape of the code, checked here so that no developer has to remember them."""

import ast
import re
from pathlib import Path

from syntax import nodes_of
from tools import mutants

from horai.db.catalog import CATALOG

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "horai"
PYTHON = sorted(PACKAGE.rglob("*.py"))
SOURCES = sorted([*PYTHON, *PACKAGE.rglob("*.sql")])

LINES = 400
SQL = re.compile(r"\b(select|insert\s+into|update|delete\s+from)\b[^\"']*\bhorai\.", re.IGNORECASE)
SQL_ALLOWED = {"db/migrate.py"}
"""Its ledger is there before any statement could be."""

WALL_CLOCK = re.compile(r"\bdatetime\.now\(|\btime\.time\(|\butcnow\(|\bdate\.today\(")
WALL_CLOCK_ALLOWED = {"engine/executors/http.py", "operations/wall_clock.py"}
"""The timestamp of a signed call is the sender's own; the archive compares the clocks of node and database."""

TIMELESS = ("text", "time", "core", "operations", "db", "engine", "features")


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_no_file_is_too_long_to_read():
    assert [name_of(path) for path in SOURCES if len(path.read_text().splitlines()) > LINES] == []


def strings(path: Path) -> list[str]:
    """Every string of a module but its docstrings and comments."""
    docs = {
        id(node.value) for node in nodes_of(path) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def test_sql_lives_in_sql_files():
    elsewhere = [path for path in PYTHON if any(SQL.search(text) for text in strings(path))]

    assert {name_of(path) for path in elsewhere} <= SQL_ALLOWED


def test_the_wall_clock_is_read_in_named_places_only():
    timeless = [path for path in PYTHON if name_of(path).split("/")[0] in TIMELESS]

    assert {name_of(path) for path in timeless if WALL_CLOCK.search(path.read_text())} == WALL_CLOCK_ALLOWED


def test_no_import_is_hidden_from_the_running_program():
    assert not [name_of(path) for path in PYTHON if "TYPE_CHECKING" in path.read_text()]


def test_no_import_is_hidden_in_a_function():
    """But for the command line, which loads what a command needs: `horai --help` must not wait for a web server."""
    hidden = [
        f"{name_of(path)}:{node.lineno}"
        for path in PYTHON
        if name_of(path).split("/")[0] != "cli"
        for function in nodes_of(path)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("horai")
    ]

    assert not hidden


def test_every_statement_is_used_and_every_used_one_exists():
    modules = [path for path in PYTHON if asks_for_statements(path)]
    named = {text for path in modules for text in strings(path)}
    asked = {
        call.args[0].value
        for path in PYTHON
        for call in nodes_of(path)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "sql"
        and isinstance(call.args[0], ast.Constant)
    }

    assert set(CATALOG) - named == set()
    assert asked - set(CATALOG) == set()


def asks_for_statements(path: Path) -> bool:
    return name_of(path).startswith("db/") or (
        name_of(path).startswith("features/") and path.with_suffix(".sql").exists()
    )


def test_statements_are_asked_for_in_the_db_package_and_in_the_stores_of_features():
    strangers = [path for path in PYTHON if "catalog import sql" in path.read_text() and not asks_for_statements(path)]

    assert not strangers


def test_a_new_column_of_an_instance_is_added_to_one_list_and_touches_few_files():
    """CONTRIBUTING.md names the files. A list of columns that a new one would have to join is nowhere else."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    recipe = page[page.index("**Add a column to an instance.**") : page.index("**Add a route.**")]
    files = re.findall(r"`([\w/]+\.(?:py|sql))`", recipe)
    repeated = re.compile(r"\b(?:supersedes, (?:\w+\.)?replay_of|born_for, (?:\w+\.)?slot, (?:\w+\.)?attempt)\b")
    lists = [
        path for path in PACKAGE.rglob("*.sql") if "migrations" not in path.parts and repeated.search(path.read_text())
    ]

    assert len(files) + 1 <= 6, "and the migration"
    assert [name for name in files if not (PACKAGE / name).exists()] == []
    assert {path.name for path in lists} <= {"archives.sql", "instance_columns.sql", "key_history.sql", "verify.sql"}


def test_no_registry_is_written_into_what_is_installed():
    """A developer who installs from a mirror must not leave its address behind."""
    files = [ROOT / name for name in ("requirements.lock", "requirements-dev.lock", "pyproject.toml", "Makefile")]
    files += [*ROOT.glob("*.cfg"), *ROOT.glob("*/package-lock.json"), *ROOT.glob("*/.npmrc")]
    address = re.compile(
        r"index-url|find-links|extra-index|trusted-host|https?://(?:[^/\s\"']*(?:pypi|npm|registry)|[^\s\"']*/simple\b)"
    )

    assert not [path.name for path in files if address.search(_without_flags(path.read_text()))]


def _without_flags(text: str) -> str:
    return text.replace("--no-emit-index-url", "")


def test_tests_are_sentences():
    """A name says what holds: at least three words after the ids."""
    short: list[str] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        body = ast.parse(path.read_text()).body
        names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        tests = [name for name in names if name.startswith("test_")]
        short += [name for name in tests if len(re.sub(r"^test_(?:[A-Z]\d+_)*", "", name).split("_")) < 3]

    assert short == []


def test_every_mutant_still_finds_the_guard_that_it_removes() -> None:
    listed = mutants.mutants()  # refuses an entry that is not complete

    assert not [each.id for each in listed if (PACKAGE / each.file).read_text().count(each.text) != 1]


FUNCTION = re.compile(
    r"^create (?:or replace )?function (horai\.\w+\([^$]*?\))\s*returns.*?(?:^end )?\$\$;$", re.MULTILINE | re.DOTALL
)


def _signature(written: str) -> str:
    """The name and the types of a function, as PostgreSQL tells functions apart."""
    name, _, arguments = written.rstrip(")").partition("(")
    types = [
        argument.split(" default ")[0].split(maxsplit=1)[1] for argument in arguments.split(",") if argument.strip()
    ]
    return f"{name}({', '.join(types)})"


def test_every_mutant_of_a_migration_changes_a_function_that_no_later_migration_replaces() -> None:
    latest: dict[str, str] = {}
    migrations = sorted((PACKAGE / "db" / "migrations").glob("*.sql"))
    for path in migrations:
        latest |= {_signature(found[1]): path.name for found in FUNCTION.finditer(path.read_text())}

    stale: list[str] = []
    for each in mutants.mutants():
        path = PACKAGE / each.file
        around = (
            [found for found in FUNCTION.finditer(path.read_text()) if each.text in found[0]]
            if path in migrations
            else []
        )
        stale += [each.id for found in around if latest[_signature(found[1])] != path.name]

    assert len(latest) > 100
    assert stale == []
