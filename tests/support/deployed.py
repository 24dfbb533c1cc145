"""The processes that the files of deploy/ start: their commands and variables."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import charts
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
CONTAINERFILE = DEPLOY / "container" / "Containerfile"
SPECIFIERS = {"%i": "1", "%H": "host", "%d": "/run/credentials/horai", "%S": "/var/lib"}


@dataclass(frozen=True)
class Started:
    """A process: where it is written, the words after `horai`, and its variables."""

    where: str
    words: tuple[str, ...]
    variables: dict[str, str]


def compose() -> Any:
    """Return the compose file; merge keys and anchors are resolved."""
    return yaml.safe_load(COMPOSE.read_text())


def services() -> dict[str, Any]:
    """Return the services of the compose file that run Horai."""
    return {name: each for name, each in compose()["services"].items() if name != "database"}


def unit(path: Path) -> dict[str, list[str]]:
    """Return the settings of a unit, each with its values in their order; specifiers are filled in."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            for specifier, filled in SPECIFIERS.items():
                value = value.replace(specifier, filled)
            found.setdefault(name, []).append(value)
    return found


def _of_compose() -> Iterator[Started]:
    for name, each in services().items():
        variables = {key: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for key, value in each["environment"].items()}
        yield Started(f"compose {name}", tuple(each["command"]), variables)


def _of_units() -> Iterator[Started]:
    for path in UNITS:
        settings = unit(path)
        program, *words = shlex.split(settings["ExecStart"][0])
        assert program == "/opt/horai/bin/horai"
        variables = dict(each.split("=", 1) for each in settings["Environment"])
        yield Started(f"systemd {path.name}", tuple(words), variables)


def _of_chart() -> Iterator[Started]:
    for kind, values in charts.VALUES.items():
        for name, pod in charts.pods(charts.manifests(values)):
            (container,) = pod["containers"]
            variables = {each["name"]: each.get("value", "horai-0") for each in container["env"]}
            yield Started(f"chart {kind} {name}", tuple(container["args"]), variables)


def _of_image() -> Iterator[Started]:
    text = CONTAINERFILE.read_text().replace("\\\n", " ")
    (entry,), (command,) = (re.findall(rf"^{word} \[(.+)\]$", text, re.MULTILINE) for word in ("ENTRYPOINT", "CMD"))
    assert yaml.safe_load(entry) == "horai"
    (variables,) = re.findall(r"^ENV (.+)$", text, re.MULTILINE)
    found = dict(each.split("=", 1) for each in shlex.split(variables))
    yield Started("the image", tuple(yaml.safe_load(f"[{command}]")), found)


@cache
def started() -> list[Started]:
    """Return every process of every file."""
    return [*_of_image(), *_of_compose(), *_of_units(), *_of_chart()]
