"""Docs that cannot lie: the README's commands are typed against a fresh Horai, generated pages equal what makes them."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import HoraiProcess

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
HORAI = str(Path(sys.executable).parent / "horai")
DEFAULT = "http://127.0.0.1:8470"


@pytest.fixture(scope="module")
def horai(short_place: Path) -> Iterator[HoraiProcess]:
    process = HoraiProcess(short_place / "docs").start()
    yield process
    assert process.stop() == 0


def commands(page: str) -> list[str]:
    return [
        line[2:]
        for block in BLOCK.findall((ROOT / page).read_text())
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def run(command: str, base: str) -> None:
    words = [word.replace(DEFAULT, base) for word in shlex.split(command)]
    if words[0] == "curl":
        curl(words[1:])
        return
    assert words[0] == "horai"
    environment = {**os.environ, "HORAI_SERVER": base, "NO_COLOR": "1"}
    done = subprocess.run([HORAI, *words[1:]], check=False, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def curl(words: list[str]) -> None:
    """The little of curl that the README uses, so that the test needs none."""
    method, headers, data, url = "GET", dict[str, str](), None, ""
    rest = iter(words)
    for word in rest:
        match word:
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(": ")
                headers[name] = value
            case "-d":
                data = next(rest).encode()
            case _:
                url = word
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as response:
        assert response.status in {200, 201}
        json.load(response)


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_commands_of_the_readme_work_as_they_stand(page: str, short_place: Path) -> None:
    process = HoraiProcess(short_place / page).start()
    try:
        found = commands(page)
        assert len(found) > 5
        for command in found:
            run(command, process.base)
    finally:
        assert process.stop() == 0


def test_B20_one_postgresql_that_it_brings_itself_is_all_a_full_install_needs(horai: HoraiProcess) -> None:
    run("horai jobs create alone --delay 0s --url http://127.0.0.1:8470/healthz --method GET", horai.base)
    run("horai jobs trigger alone --wait", horai.base)


@pytest.mark.parametrize("tool", ["reference_doc.py", "states_doc.py"])
def test_generated_pages_equal_what_makes_them(tool: str) -> None:
    pages = [*(ROOT / "docs" / "reference").glob("*.md"), ROOT / "docs" / "concepts" / "states.md"]
    before = {page: page.read_text() for page in pages}
    subprocess.run([sys.executable, ROOT / "tools" / tool], check=True, timeout=60)
    assert {page: page.read_text() for page in pages} == before, "run `make docs`"


def test_every_link_between_the_documents_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
