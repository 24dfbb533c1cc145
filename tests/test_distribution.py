"""The wheel that people install: the console, the migrations and the SQL are in it, and nothing that is only for us."""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src"
TEXTS = sorted((ROOT / "console" / "src" / "i18n").glob("*/*.json"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Built from this checkout as `pip wheel .` does it."""
    assert (PACKAGE / "horai" / "console" / "index.html").exists(), "`make install` builds the console"
    (path,) = WheelBuilder(str(ROOT)).build(
        directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"], clean=False
    )
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.fixture(scope="module")
def scripts(wheel: zipfile.ZipFile) -> str:
    """Every script of the console."""
    return "\n".join(wheel.read(name).decode() for name in wheel.namelist() if name.endswith(".js"))


def _below(folder: str, pattern: str) -> set[str]:
    return {
        path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "horai" / folder).rglob(pattern) if path.is_file()
    }


def _sentences(texts: Mapping[str, Any]) -> Iterator[str]:
    for text in texts.values():
        yield from _sentences(text) if isinstance(text, dict) else [str(text)]


def test_the_wheel_carries_the_console_with_every_file_its_page_names(wheel: zipfile.ZipFile) -> None:
    page = wheel.read("horai/console/index.html").decode()
    named = re.findall(r'(?:src|href)="/([^"]+)"', page)

    assert {name.rpartition(".")[2] for name in named} >= {"js", "css", "svg"}
    assert {f"horai/console/{name}" for name in named} <= set(wheel.namelist())
    assert _below("console", "*") <= set(wheel.namelist())


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_wheel_carries_the_texts_of_both_languages(path: Path, scripts: str) -> None:
    plain = [text for text in _sentences(json.loads(path.read_text())) if not re.search(r"[\"'`\\\n]", text)]

    assert plain
    assert all(text in scripts for text in plain)


def test_the_wheel_carries_the_sql_the_migrations_and_the_types(wheel: zipfile.ZipFile) -> None:
    sql = _below("db", "*.sql")

    assert {Path(name).parent.name for name in sql} == {"sql", "migrations"}
    assert sql | {"horai/py.typed"} <= set(wheel.namelist())


def test_the_wheel_carries_nothing_that_is_only_for_us(wheel: zipfile.ZipFile) -> None:
    strangers = [name for name in wheel.namelist() if not re.match(r"horai(-[\d.]+\.dist-info)?/", name)]
    leftovers = [name for name in wheel.namelist() if re.search(r"node_modules|tests?/|\.pyc$|\.map$|\.tsx?$", name)]

    assert (strangers, leftovers) == ([], [])
