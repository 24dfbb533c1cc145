"""The files of deploy/ and of .github/ are what their tools accept: schemas, linters and parsers from PyPI."""

import json
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import charts
import hcl2
import jsonschema_rs
import pytest
import yaml
from deployed import COMPOSE, CONTAINERFILE, DEPLOY, UNITS, unit

ROOT = DEPLOY.parent
BINARIES = Path(sys.executable).parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TERRAFORM = sorted((DEPLOY / "terraform").rglob("*.tf"))
SYSTEMD = shutil.which("systemd-analyze")
HARDENED = {
    "CapabilityBoundingSet": "",
    "LockPersonality": "true",
    "NoNewPrivileges": "true",
    "PrivateDevices": "true",
    "PrivateTmp": "true",
    "ProtectHome": "true",
    "ProtectKernelModules": "true",
    "ProtectKernelTunables": "true",
    "ProtectProc": "invisible",
    "ProtectSystem": "strict",
    "RestrictSUIDSGID": "true",
    "RestrictNamespaces": "true",
    "SystemCallArchitectures": "native",
    "User": "horai",
}
MOST_EXPOSED = 2.0
"""The most exposure that `systemd-analyze security` may find, of 10."""


def run(*words: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def refusals(schema: str, file: Path, text: str | None = None) -> list[str]:
    """Return why a schema that check-jsonschema brings along refuses a file, or a changed text of it."""
    known = json.loads(files("check_jsonschema.builtin_schemas.vendor").joinpath(f"{schema}.json").read_text())
    document = yaml.safe_load(file.read_text() if text is None else text)
    if True in document:
        document["on"] = document.pop(True)  # YAML 1.1 reads `on` as a boolean
    return [f"{file.name}: {error.message}" for error in jsonschema_rs.validator_for(known).iter_errors(document)]


def test_the_workflows_and_the_updates_of_dependencies_match_the_schemas_of_github() -> None:
    assert len(WORKFLOWS) >= 2
    assert [fault for path in WORKFLOWS for fault in refusals("github-workflows", path)] == []
    assert refusals("dependabot", ROOT / ".github" / "dependabot.yml") == []
    text = WORKFLOWS[0].read_text()
    assert refusals("github-workflows", WORKFLOWS[0], text.replace("runs-on:", "run-on:"))


def test_every_job_of_a_workflow_has_a_time_limit_and_calls_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            assert job["timeout-minutes"] <= 60, name
            called = re.findall(r"\bmake ([a-z-]+)", " ".join(step.get("run", "") for step in job["steps"]))
            assert set(called) <= targets, name


def test_the_tests_run_on_every_supported_python_and_on_both_architectures() -> None:
    matrix = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["test"]["strategy"]["matrix"]

    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert matrix["runner"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]


def test_the_compose_file_matches_the_schema_of_compose() -> None:
    assert refusals("compose-spec", COMPOSE) == []
    assert refusals("compose-spec", COMPOSE, COMPOSE.read_text().replace("read_only: true", "readonly: true", 1))


def test_hadolint_has_no_remark_on_the_containerfile(tmp_path: Path) -> None:
    done = run(BINARIES / "hadolint", "--no-color", CONTAINERFILE)
    assert (done.returncode, done.stdout) == (0, "")
    wrong = tmp_path / "Containerfile"
    wrong.write_text(CONTAINERFILE.read_text().replace("USER 10001:10001", "USER root"))
    assert "DL3002" in run(BINARIES / "hadolint", "--no-color", wrong).stdout


def test_the_containerfile_names_no_source_but_its_base_image_and_checks_hashes() -> None:
    text = CONTAINERFILE.read_text()
    stages = re.findall(r"^FROM (\S+)", text, re.MULTILINE)

    assert stages == ["${PYTHON_IMAGE}"] * 3
    assert "://" not in text
    assert "--require-hashes --requirement /build/requirements.lock" in text
    assert re.findall(r"^USER (.+)$", text, re.MULTILINE) == ["10001:10001"]
    assert "HEALTHCHECK" in text


def test_terraform_files_parse() -> None:
    assert len(TERRAFORM) >= 4
    for path in TERRAFORM:
        with path.open() as text:
            assert hcl2.load(text), path


def _plain(value: Any) -> Any:
    """Return a value of hcl2 without the quotes and braces of its expressions."""
    if isinstance(value, dict):
        return {key.strip('"'): _plain(each) for key, each in value.items() if not key.startswith("__")}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.strip('"') if isinstance(value, str) else value


def test_terraform_gives_the_chart_values_that_it_accepts() -> None:
    with (DEPLOY / "terraform" / "main.tf").open() as text:
        document = _plain(hcl2.load(text))
    (values,) = [each["values"] for each in document["locals"]]
    values["access"] |= {"publicUrl": "https://horai.example.com", "trustedProxies": ["10.0.0.0/8"]}
    values["node"]["autoscaling"] |= {"minReplicas": 2, "maxReplicas": 8}

    assert charts.refusals(values) == []
    (secret,) = [each["kubernetes_secret"]["horai"] for each in document["resource"] if "kubernetes_secret" in each]
    whole = charts.values_of(values)
    used = {
        whole["database"]["urlKey"],
        whole["migration"]["urlKey"],
        whole["encryption"]["key"],
        whole["audit"]["key"],
    }
    assert set(secret["data"]) == used
    assert charts.manifests(values)


def test_the_cluster_of_cloudnativepg_is_synchronous_and_its_pooler_keeps_sessions() -> None:
    cluster, pooler = yaml.safe_load_all((DEPLOY / "cloudnativepg" / "cluster.yaml").read_text())
    postgresql, roles = cluster["spec"]["postgresql"], cluster["spec"]["managed"]["roles"]

    assert postgresql["synchronous"] == {"method": "any", "number": 1, "dataDurability": "required"}
    assert pooler["spec"]["pgbouncer"]["poolMode"] == "session"
    assert pooler["spec"]["cluster"]["name"] == cluster["metadata"]["name"]
    pool = int(pooler["spec"]["pgbouncer"]["parameters"]["default_pool_size"])
    assert pooler["spec"]["instances"] * pool < int(postgresql["parameters"]["max_connections"])
    assert roles[0]["inRoles"] == ["horai_api", "horai_auth", "horai_engine"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_confined_and_get_their_secrets_as_credentials(path: Path) -> None:
    settings = unit(path)

    assert {name: settings[name][-1] for name in HARDENED} == HARDENED
    loaded = {each.partition(":")[0] for each in settings["LoadCredential"]}
    used = set(re.findall(r"%d/([\w-]+)", path.read_text()))
    assert used == loaded
    assert ("WantedBy" in settings) == (settings["Type"] != ["oneshot"])


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units with a program that exists here: systemd looks for it."""
    for path in UNITS:
        text = path.read_text().replace("/opt/horai/bin/horai", sys.executable)
        text = re.sub(r"^WorkingDirectory=.*$", "WorkingDirectory=/", text, flags=re.MULTILINE)
        (tmp_path / path.name.replace("@", "@1")).write_text(text)
    return tmp_path


@pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units_and_finds_little_exposure(installed: Path) -> None:
    assert SYSTEMD is not None
    for path in sorted(installed.iterdir()):
        done = run(SYSTEMD, "verify", "--man=no", path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), path.name
        told = run(SYSTEMD, "security", "--offline=true", "--no-pager", path).stdout
        (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", told)
        assert float(exposure) <= MOST_EXPOSED, told
