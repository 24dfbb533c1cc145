"""The files of deploy/ say nothing that Horai does not understand: commands, variables, probes and metrics."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import charts
import harness
import pytest
import yaml
from certificates import certificate as make_certificate
from deployed import COMPOSE, CONTAINERFILE, DEPLOY, services, started
from prometheus_client.parser import text_string_to_metric_families

from horai.cli.lazy import load
from horai.cli.main import COMMANDS
from horai.core.settings import ServerAccess

SOURCES = ("the image", "compose", "systemd", *(f"chart {kind}" for kind in charts.VALUES))
"""The beginnings of the names of processes. The tests read the processes: to collect them would render the chart."""
EVERYWHERE = {"HORAI_STATE_DIR", "HORAI_DATABASE_URL_FILE", "HORAI_LOG_LEVEL", "HORAI_LOG_FORMAT"}
"""Variables that Horai reads without a flag, in every command that works on a database or writes a log."""
WITHOUT_FLAG = {
    "migrate": EVERYWHERE | {"HORAI_ADMIN_URL_FILE"},
    "node": EVERYWHERE,
    "worker": EVERYWHERE | {"HORAI_ENCRYPTION_KEY_FILE"},
}
"""tests/deployment/test_logins.py starts processes that need them."""
READY = DEPLOY / "container" / "ready.py"


def variables_of(command: Any) -> set[str]:
    """Return the variables of the flags of a command."""
    return {parameter.envvar for parameter in command.params if isinstance(parameter.envvar, str)}


@pytest.mark.parametrize("source", SOURCES)
def test_every_command_and_variable_is_one_of_horai(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = [process for process in started() if process.where.startswith(source)]
    assert processes
    for process in processes:
        name, *words = process.words
        command = load(name)
        named = {each for each in process.variables if each.startswith("HORAI_")}
        with monkeypatch.context() as own:
            for variable, value in process.variables.items():
                own.setenv(variable, value)
            context = command.make_context(name, [*words], resilient_parsing=False)

        assert name in COMMANDS, process.where
        assert named - variables_of(command) - WITHOUT_FLAG[name] == set(), process.where
        assert context.params, process.where


def test_every_process_of_the_files_has_a_source() -> None:
    assert [process.where for process in started() if not process.where.startswith(SOURCES)] == []


def test_a_flag_that_horai_does_not_have_is_noticed() -> None:
    with pytest.raises(Exception, match="No such option: --rolls"):
        load("node").make_context("node", ["--rolls", "api"])


def test_the_files_start_servers_nodes_workers_and_migrations() -> None:
    processes = started()
    assert {process.words[0] for process in processes} == {"node", "worker", "migrate"}
    assert len(processes) > 15
    roles = {process.words[process.words.index("--roles") + 1] for process in processes if "--roles" in process.words}
    assert roles == {"api", "api,scheduler,executor"}


def test_every_value_of_the_settings_reaches_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    (api,) = [each for each in started() if each.where == "chart most timer-api"]
    for variable, value in api.variables.items():
        monkeypatch.setenv(variable, value)

    given = load("node").make_context("node", [*api.words[1:]]).params

    assert (given["host"], given["port"], given["require_key"]) == ("0.0.0.0", 8470, True)
    assert (str(given["tls_cert"]), given["public_url"]) == ("/etc/horai/tls/tls.crt", "https://horai.example.com")
    assert given["callback_allow"] == ["10.0.0.0/8,192.168.0.0/16"]
    assert (given["grace"], given["lease_ttl"], given["roles"]) == ("30s", "8s", "api")


def paths_of_probes() -> set[str]:
    found = {
        probe["httpGet"]["path"]
        for _, pod in charts.pods(charts.manifests(charts.MOST))
        for name, probe in pod["containers"][0].items()
        if name.endswith("Probe")
    }
    return found | set(re.findall(r"/\w+z\b", READY.read_text()))


async def test_every_probe_and_metric_of_the_files_is_one_that_a_node_answers(url: str) -> None:
    async with harness.node(url) as api:
        answers = {path: (await api("GET", path)).status for path in paths_of_probes()}
        async with api.session.get(f"{api.base}/metrics") as response:
            families = text_string_to_metric_families(await response.text())
            known = {sample.name for family in families for sample in family.samples}
    scaled = [
        metric["external"]["metric"]["name"]
        for each in charts.manifests(charts.MOST)
        if each["kind"] == "HorizontalPodAutoscaler"
        for metric in each["spec"]["metrics"]
        if metric["type"] == "External"
    ]
    (rule,) = yaml.safe_load((DEPLOY / "prometheus" / "adapter.yml").read_text())["rules"]["external"]

    assert answers == {"/healthz": 200, "/readyz": 200}
    assert scaled == [rule["name"]["as"]] == [rule["seriesQuery"]]
    assert set(scaled) <= known


def ready(**variables: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("HORAI_")}
    return subprocess.run(
        [sys.executable, READY], env=known | variables, capture_output=True, text=True, timeout=30, check=False
    )


async def test_the_health_check_of_the_image_asks_the_node_with_tls_and_without(url: str, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "127.0.0.1")
    async with harness.node(url) as plain:
        done = await _asked(HORAI_PORT=plain.base.rpartition(":")[2])
        assert (done.returncode, done.stderr) == (0, "")
    async with harness.node(url, access=ServerAccess(certificate, key)) as secured:
        done = await _asked(HORAI_PORT=secured.base.rpartition(":")[2], HORAI_TLS_CERT=str(certificate))
        assert (done.returncode, done.stderr) == (0, "")
    done = await _asked(HORAI_PORT=secured.base.rpartition(":")[2])
    assert done.returncode == 1
    assert "does not answer" in done.stderr


async def _asked(**variables: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(lambda: ready(**variables))


def test_the_image_contains_only_files_that_its_context_lets_through() -> None:
    ignored = (DEPLOY.parent / ".containerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(\S+) ", CONTAINERFILE.read_text(), re.MULTILINE)

    assert ignored[1] == "*"
    assert set(copied) - {"."} <= kept
    assert all((DEPLOY.parent / name).exists() for name in kept)


def test_the_services_of_the_compose_file_are_confined() -> None:
    for name, service in services().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
    text = COMPOSE.read_text()
    assert "privileged" not in text
    document = yaml.safe_load(text)
    for name, service in document["services"].items():
        assert set(service["secrets"]) <= set(document["secrets"]), name
        files = {value for value in service["environment"].values() if value.startswith("/run/secrets/")}
        assert {Path(file).name for file in files} <= set(service["secrets"]), name
