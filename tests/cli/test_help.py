"""The surface: every command explains itself, settings have variables, every slip is answered."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from forked import HORAI
from terminal import Terminal

import horai
from horai import __version__
from horai.cli import hints
from horai.cli.lazy import load
from horai.cli.main import COMMANDS
from horai.text import Hint

VERBS = {
    "up": set[str](),
    "node": set[str](),
    "worker": set[str](),
    "check": set[str](),
    "migrate": set[str](),
    "capacity": set[str](),
    "health": set[str](),
    "db": {"url", "verify"},
    "backup": set[str](),
    "restore": set[str](),
    "export": set[str](),
    "import": set[str](),
    "keys": {"create", "list", "revoke"},
    "governor": {"show", "history", "thresholds", "mode", "sli"},
    "dispatch": {"pause", "resume"},
    "stuck": {"runs", "queues", "workflows"},
    "incidents": {"list", "show", "open", "note", "close"},
    "recover": set(),
    "drill": {"node", "primary", "standby", "zone", "file", "list", "show"},
    "sinks": {"list", "show", "set", "pause", "resume", "replay", "delete"},
    "alerts": {
        "firing",
        "acknowledge",
        "channels",
        "set-channel",
        "delete-channel",
        "test",
        "redeliver",
        "rules",
        "set-rule",
        "delete-rule",
        "deliveries",
        "silences",
        "silence",
        "unsilence",
    },
    "heartbeats": {"list", "set", "beat", "delete"},
    "freeze": set(),
    "unfreeze": set(),
    "tenants": {"create", "list", "show", "set", "pause", "resume", "export", "delete"},
    "groups": {"create", "list", "delete"},
    "login": set[str](),
    "jobs": {
        "list",
        "show",
        "create",
        "pause",
        "resume",
        "trigger",
        "delete",
        "next",
        "explain",
        "backfill",
        "history",
        "restore",
    },
    "forecast": set[str](),
    "instances": {"list", "show", "why", "put", "signal", "cancel", "history", "steps"},
    "assets": {"list", "show", "update"},
    "apply": set[str](),
    "definitions": set[str](),
    "schema": set[str](),
    "source": {"nats", "jsonl", "parked", "retry", "discard"},
    "schedules": {"preview"},
    "backfills": {"list", "show", "pause", "resume", "cancel"},
    "entities": {"import", "list", "add", "remove", "status"},
    "reconcilers": {
        "list",
        "show",
        "create",
        "change",
        "pause",
        "resume",
        "run",
        "reports",
        "delete",
        "history",
        "restore",
    },
    "calendars": {"list", "show", "put", "import", "preview", "delete"},
    "queues": {"list", "show", "set", "pause", "resume", "history", "restore"},
    "secrets": {"list", "rotate", "names", "set", "delete"},
    "keyring": {"status", "rotate", "erase"},
    "audit": {"list", "verify", "export"},
    "archive": {"list", "query", "restore"},
    "dlq": {"list", "show", "faults", "replay", "discard"},
    "workflows": {
        *("list", "show", "create", "trigger", "runs", "run", "items", "wait", "rerun", "backfill", "cancel", "delete"),
        *("history", "restore", "rerun-blocked", "compose", "pause", "resume"),
    },
}
SERVERS = {"up", "node", "worker", "source nats"}
"""Commands that run until they are stopped: each of their flags has an environment variable."""
CONNECTIONS = {
    "--server",
    "--api-key",
    "--database-url",
    "--admin-url",
    "--data-dir",
    "--encryption-key-file",
    "--encryption-key-command",
    "--json",
}
"""Flags with an environment variable in every command."""
OTHERWISE_NAMED = {
    "source nats --url": "HORAI_NATS_URL",
    "worker --server": "HORAI_WORKER_SERVER",
    "worker --ray-address": "RAY_ADDRESS",
}


def every_command() -> Iterator[tuple[str, Any]]:
    for name in COMMANDS:
        command = load(name)
        yield name, command
        for verb, below in getattr(command, "commands", {}).items():
            yield f"{name} {verb}", below


def test_the_commands_are_those_of_this_version() -> None:
    assert {name: set(getattr(load(name), "commands", {})) for name in COMMANDS} == VERBS


def test_every_command_and_every_flag_has_help() -> None:
    for path, command in every_command():
        assert command.help, path
        for parameter in command.params:
            assert parameter.help, f"{path} {parameter.name}"


def test_the_overview_says_of_each_command_what_the_command_says_itself() -> None:
    for name, about in COMMANDS.items():
        assert load(name).help.splitlines()[0] == about


def every_flag() -> Iterator[tuple[str, str, Any]]:
    for path, command in every_command():
        for option in (p for p in command.params if p.param_type_name == "option" and not p.hidden):
            yield path, next(name for name in option.opts if name.startswith("--")), option


def test_every_flag_of_a_server_or_a_connection_has_an_environment_variable_of_its_name() -> None:
    for path, flag, option in every_flag():
        if path in SERVERS or flag in CONNECTIONS:
            variable = "HORAI_" + flag[2:].replace("-", "_").upper()
            expected = OTHERWISE_NAMED.get(f"{path} {flag}", variable)
            assert option.envvar == expected or expected in option.help, f"{path} {flag}"


def test_no_flag_of_a_single_call_has_an_environment_variable() -> None:
    shared = {"source jsonl --job", "source jsonl --batch", "source retry --job"}  # as `source nats` has them
    read = {f"{path} {flag}" for path, flag, option in every_flag() if option.envvar and path not in SERVERS}
    assert {name for name in read if name.rpartition(" ")[2] not in CONNECTIONS} == shared


def test_every_hint_that_names_a_path_has_a_sentence_for_the_command_line() -> None:
    rest = re.compile(r"/api/v1|/openapi|/readyz|\b(GET|POST|PATCH|DELETE)\b|\bPUT\b")
    named = {hint.name for hint in Hint if rest.search(str(hint.value))} - {"LISTED_AT"}
    assert named <= set(hints.COMMANDS)
    assert all(Hint[code].places >= _places(text) for code, text in hints.COMMANDS.items())
    assert not [text for text in (*hints.COMMANDS.values(), *hints.LISTS.values()) if rest.search(text)]


def test_every_list_that_a_hint_names_has_its_command() -> None:
    package = Path(horai.__file__).parent
    sources = [*(package / "operations").glob("*.py"), *(package / "features").rglob("*.py")]
    paths = {found for file in sources for found in re.findall(r'LISTED_AT\(path="(.*?)"', file.read_text())}
    assert paths == set(hints.LISTS)


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_help_and_version_go_to_stdout(alone: Terminal) -> None:
    overview, version = alone("--help"), alone("--version")

    assert (overview.code, overview.err) == (0, "")
    assert all(name in overview.out for name in COMMANDS)
    assert (version.code, version.out) == (0, f"horai {__version__}\n")


def test_the_overview_and_the_help_of_up_and_worker_import_neither_node_nor_driver(alone: Terminal) -> None:
    for arguments in (["--help"], ["up", "--help"], ["worker", "--help"], ["check", "--help"]):
        script = [sys.executable, "-X", "importtime", HORAI, *arguments]
        done = subprocess.run(script, env=alone.environment, capture_output=True, text=True, check=True)

        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "horai.cli.main" in imported
        assert imported.isdisjoint({"horai.engine_node", "horai.node", "asyncpg", "fastapi", "structlog"})


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("worker_service", {"horai.engine_node", "horai.node", "fastapi", "uvicorn", "aiohttp"}),
        ("up_processes", {"horai.node", "horai.app", "fastapi", "uvicorn", "pydantic"}),
    ],
)
def test_a_worker_and_a_node_without_the_api_import_no_web_server(module: str, absent: set[str]) -> None:
    script = f"import sys, horai.cli.commands.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()).isdisjoint(absent)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["jbos"], ["error: No such command 'jbos'.", "hint: Did you mean 'jobs'?"]),
        (["jobs", "lst"], ["error: No such command 'lst'.", "hint: Did you mean 'list'?"]),
        (["jobs"], ["error: Missing command.", "hint: horai jobs --help shows the usage."]),
        (["health", "--wach"], ["error: No such option: --wach", "hint: Did you mean --watch?"]),
    ],
)
def test_a_slip_of_the_pen_is_bad_usage_with_a_hint(alone: Terminal, arguments: list[str], lines: list[str]) -> None:
    assert alone(*arguments).failed_with(2, *lines)


def test_without_a_command_the_overview_is_bad_usage(alone: Terminal) -> None:
    ended = alone()

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("Usage: horai")
