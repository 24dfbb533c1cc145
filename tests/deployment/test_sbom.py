"""The software bill of materials: complete, valid, and the same for the same locks."""

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tools import sbom

from horai import __version__

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bill() -> Any:
    return sbom.bill()


def test_the_bill_is_valid_cyclonedx(bill: Any) -> None:
    schemas = files("cyclonedx.schema._res")
    schema = json.loads(schemas.joinpath("bom-1.6.SNAPSHOT.schema.json").read_text())
    others = {name: json.loads(schemas.joinpath(name).read_text()) for name in _referenced(schema)}
    registry = jsonschema_rs.Registry([(f"http://cyclonedx.org/schema/{name}", each) for name, each in others.items()])
    validator = jsonschema_rs.Draft7Validator(schema, registry=registry)

    assert [error.message for error in validator.iter_errors(bill)] == []
    assert list(validator.iter_errors(bill | {"components": [{"type": "libary", "name": "x"}]}))


def _referenced(schema: Any) -> set[str]:
    return set(re.findall(r'"\$ref": "([^"#]+\.schema\.json)', json.dumps(schema)))


def test_the_bill_has_every_package_of_the_run_time_lock_with_its_hashes(bill: Any) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    listed = {each["purl"]: each for each in bill["components"]}

    for name, version in re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", lock, re.MULTILINE):
        assert listed[f"pkg:pypi/{name}@{version}"]["externalReferences"]
    digests = {
        file["hashes"][0]["content"] for each in bill["components"] for file in each.get("externalReferences", ())
    }
    assert digests == set(re.findall(r"--hash=sha256:([0-9a-f]{64})", lock))


def test_the_bill_has_what_the_console_is_built_of_and_nothing_for_development(bill: Any) -> None:
    package = json.loads((ROOT / "console" / "package.json").read_text())
    listed = {
        f"{each.get('group', '')}/{each['name']}".lstrip("/")
        for each in bill["components"]
        if each["purl"].startswith("pkg:npm/")
    }

    assert set(package["dependencies"]) <= listed
    assert set(package["devDependencies"]).isdisjoint(listed)
    assert "scheduler" in listed, "a package that React needs"


def test_the_bill_describes_this_version_and_is_the_same_each_time(bill: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    for file in (first, second):
        subprocess.run([sys.executable, ROOT / "tools" / "sbom.py", file], check=True)

    assert first.read_bytes() == second.read_bytes()
    assert json.loads(first.read_text()) == bill
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/horai@{__version__}"
