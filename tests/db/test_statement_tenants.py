"""Statements and tenants: the line `-- tenant:` of a statement agrees with its text and with the functions that use it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from horai.db import catalog
from horai.db.catalog import CATALOG, CHECKED_IDS, Statement
from horai.db.pool import Platform

PACKAGE = Path(catalog.__file__).parents[1]
KINDS = re.compile(rf"\$\d+|by ({'|'.join(CHECKED_IDS)}|session)|none|platform")
OF_A_TENANT = r"horai\.(?:charge|check_payload_quota|note_asset_update|take_composition_key|bind_composition_key)\("
"""Functions whose first argument is the tenant."""
TABLES = """select table_name::text from information_schema.columns
    where table_schema = 'horai' and column_name = 'tenant_id'"""


def code_of(statement: Statement) -> str:
    return re.sub(r"--.*|/\*.*?\*/", "", statement.text)


def of_kind(pattern: str) -> list[Statement]:
    return [each for each in CATALOG.values() if each.tenant is not None and re.fullmatch(pattern, each.tenant)]


def test_C2a_every_statement_says_how_it_keeps_to_one_tenant() -> None:
    assert [name for name, each in CATALOG.items() if not each.tenant or not KINDS.fullmatch(each.tenant)] == []


@pytest.mark.parametrize("statement", of_kind(r"\$\d+"), ids=lambda each: each.name)
def test_C2a_a_statement_that_names_its_tenant_compares_or_inserts_it(statement: Statement) -> None:
    assert statement.tenant in {f"${number}" for number in tenants_in(code_of(statement))}


def tenants_in(code: str) -> Iterator[int]:
    """Yield the number of each parameter that is compared with, or inserted as, a tenant_id."""
    for match in re.finditer(r"\btenant_id = \$(\d+)\b(?! or )", code):
        yield int(match[1])
    for match in re.finditer(OF_A_TENANT + r"\$(\d+)\b", code):
        yield int(match[1])
    for match in re.finditer(r"\b(?:insert into horai\.\w+(?: as \w+)?\s*)\(([^)]*)\)\s*(?:values \(|select )", code):
        columns = [column.strip() for column in match[1].split(",")]
        if "tenant_id" in columns:
            yield from numbers_of(items_of(code[match.end() :])[columns.index("tenant_id")])
    for match in re.finditer(r"\bunnest\(([^)]*)\) as \w+\s?\(([^)]*)\)", code):
        columns = [column.strip() for column in match[2].split(",")]
        if "tenant_id" in columns:
            yield from numbers_of(match[1].split(",")[columns.index("tenant_id")])


def numbers_of(value: str) -> list[int]:
    found = re.match(r"\s*\$(\d+)\b", value)
    return [int(found[1])] if found else []


def items_of(text: str) -> list[str]:
    """Split a list of expressions at its commas, up to the end of the list."""
    items, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if depth < 0:
            break
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return items


async def test_C2a_a_statement_of_no_tenant_touches_no_table_with_tenants(connection: Platform) -> None:
    tables = {row["table_name"] for row in await connection.fetch(TABLES)}
    assert {"job", "instance_live", "audit"} <= tables

    touched = {
        each.name: set(re.findall(r"\bhorai\.(\w+)\b(?!\(|')", code_of(each))) & tables for each in of_kind("none")
    }

    assert {name: found for name, found in touched.items() if found} == {}


Use = tuple[Statement, str, ast.FunctionDef | ast.AsyncFunctionDef | None, ast.Module]


@cache
def uses() -> list[Use]:
    """Return each place that names a statement, with the innermost function that has a connection.

    A statement that no call of `sql` names is named by a constant, such as a table of statements.
    """
    found: list[Use] = []
    modules = {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py") if "import sql" in path.read_text()}
    called = {name for tree in modules.values() for call in calls_of_sql(tree) for name in names_in(call)}
    for path, tree in modules.items():
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        owners = {id(inner): each for each in functions if connections_of(each) for inner in ast.walk(each)}
        places = [*calls_of_sql(tree), *(node for node in ast.walk(tree) if isinstance(node, ast.Constant))]
        for place in places:
            for name in names_in(place) if isinstance(place, ast.Call) else {*names_in(place)} - called:
                found.append((CATALOG[name], path.relative_to(PACKAGE).as_posix(), owners.get(id(place)), tree))
    return found


def calls_of_sql(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "sql"]


def names_in(node: ast.AST) -> list[str]:
    strings = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return [each for each in strings if isinstance(each, str) and each in CATALOG]


def connections_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the types of the parameters that are a connection."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    annotations = [ast.unparse(each.annotation) for each in given if each.annotation is not None]
    return [each for each in annotations if re.search(r"\b(?:Tenant(?:Read|Write)|Any(?:Read|Write)|Platform)\b", each)]


def test_C2a_only_functions_with_a_connection_of_the_platform_use_statements_of_several_tenants() -> None:
    """A constant outside a function is used by all functions of its module."""
    strangers: list[str] = []
    for statement, module, function, tree in uses():
        if statement.tenant != "platform":
            continue
        given = connections_of(function) if function is not None else connections_in(tree)
        if not given or any(each != "Platform" for each in given):
            strangers.append(f"{module}: {statement.name}")

    assert strangers == []


def connections_in(tree: ast.Module) -> list[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [each for function in functions for each in connections_of(function)]


def test_every_use_of_a_statement_of_the_platform_is_found() -> None:
    """If `uses` overlooked one, the test above would hold for nothing."""
    found = {statement.name for statement, *_ in uses()}

    assert {each.name for each in of_kind("platform")} - found == set()


def test_both_directions_of_a_list_keep_to_the_same_tenant() -> None:
    found = catalog._parse("f.sql", "-- name: one\n-- tenant: $1\n-- reversed: two\nselect 1 order by 1 desc;\n")

    assert (found["one"].tenant, found["two"].tenant) == ("$1", "$1")
    assert found["one"].text.startswith("/* one */ ")


def test_every_order_of_a_list_keeps_to_the_same_tenant() -> None:
    text = (
        "-- name: one\n-- tenant: $1\n-- ordered: two by name desc\nselect 1 where (id) > ($2) order by id limit 3;\n"
    )

    found = catalog._parse("f.sql", text)

    assert found["two"].tenant == "$1"
    assert found["two"].text.endswith("where (name) < ($2) order by name desc limit 3")
