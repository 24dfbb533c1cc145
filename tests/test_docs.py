"""Docs that cannot lie: every snippet is run against a fresh Horai, generated pages equal what makes them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, Block, Command, blocks, pages
from typist import typing

NOT_RUN = {
    "make test": "runs the tests",
    "make up": "runs `horai up`, which is typed elsewhere, for ever",
}
"""Commands that no test types here, and why."""

RUN_ELSEWHERE = {
    ("docs/guides/events.md", "console"): "tests/features/events/test_events_guide.py",
    ("docs/guides/events.md", "python"): "tests/features/events/test_events_guide.py",
    ("docs/runbook.md", "console"): "tests/scenarios/test_runbook.py",
    ("docs/guides/securing.md", "console"): "tests/cli/test_keys_command.py",
    ("docs/guides/sign-in.md", "console"): "tests/cli/test_groups_command.py",
    ("docs/guides/encryption.md", "console"): "tests/cli/test_keyring_command.py",
    ("docs/guides/tenants.md", "console"): "tests/cli/test_tenants_command.py",
    ("docs/guides/definitions.md", "console"): "tests/cli/test_apply_command.py",
    ("docs/guides/high-availability.md", "console"): "tests/cli/test_monthly_drill.py",
    ("docs/guides/high-availability.md", "python"): "tests/cli/test_monthly_drill.py",
    ("docs/guides/calls.md", "json"): "tests/api/test_compositions.py",
    ("docs/guides/sql.md", "sql"): "tests/db/test_sql_guide.py",
    ("README.md", "sql"): "tests/db/test_sql_guide.py",
    ("README.zh-CN.md", "sql"): "tests/db/test_sql_guide.py",
    ("docs/guides/refresh.md", "sql"): "tests/db/test_follow_table.py",
    ("docs/guides/django.md", "console"): "tests/django_tasks/test_django_guide.py",
    ("docs/guides/django.md", "python"): "tests/django_tasks/test_django_guide.py",
    ("docs/guides/testing.md", "python"): "tests/testing/test_plugin.py",
}
NO_CODE = {"mermaid"}
TYPED = {"console", "python"}


def typed_blocks(page: str) -> list[Block]:
    return [b for b in blocks(page) if b.language in TYPED and (page, b.language) not in RUN_ELSEWHERE]


def commands(page: str) -> list[str]:
    return [each.text for block in typed_blocks(page) if block.language == "console" for each in block.commands]


def needs_horai(page: str) -> bool:
    """Return true if Horai must run before the page begins: the page uses it, and does not start it."""
    typed = commands(page)
    return any(each.startswith("horai") for each in typed) and not any(each.startswith("horai up") for each in typed)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", [page for page in pages() if typed_blocks(page)])
def test_every_snippet_does_what_its_page_says(page: str, short_place: Path) -> None:
    """In their order, in one directory; on a page that does not say how to start Horai, it runs already."""
    with typing(short_place / re.sub(r"\W", "-", page)) as typist:
        if needs_horai(page):
            typist.command(Command("horai up", ()))
        for block in typed_blocks(page):
            if block.language == "python":
                typist.python(block)
                continue
            for command in block.commands:
                if command.text not in NOT_RUN:
                    typist.command(command)


@pytest.mark.parametrize("page", [page for page in pages() if blocks(page)])
def test_every_snippet_of_the_docs_has_a_runner(page: str) -> None:
    found = blocks(page)
    for number, block in enumerate(found):
        if (page, block.language) in RUN_ELSEWHERE:
            assert Path(page).name in (ROOT / RUN_ELSEWHERE[page, block.language]).read_text()
            continue
        assert block.language in TYPED | NO_CODE, f"{block}: the tests cannot run {block.language!r}"
        if block.file is not None:
            module = block.file.removesuffix(".py").replace("/", ".")
            assert any(module in later.text for later in found[number + 1 :]), f"{block}: no later block uses {module}"


def test_every_command_that_the_docs_test_skips_is_still_on_a_page() -> None:
    assert set(NOT_RUN) <= {command for page in pages() for command in commands(page)}


def test_B20_one_postgresql_that_it_brings_itself_is_all_a_full_install_needs(short_place: Path) -> None:
    with typing(short_place / "full-install", is_plain=True) as typist:
        typist.command(Command("horai up", ()))
        target = "--url http://127.0.0.1:8470/healthz --method GET"
        typist.command(Command(f"horai jobs create alone --delay 0s {target}", ()))
        typist.command(Command("horai jobs trigger alone --wait", ()))


@pytest.mark.parametrize("tool", ["reference_doc.py", "states_doc.py"])
def test_generated_pages_equal_what_makes_them(tool: str) -> None:
    generated = [*(ROOT / "docs" / "reference").glob("*.md"), ROOT / "docs" / "concepts" / "states.md"]
    before = {page: page.read_text() for page in generated}
    subprocess.run([sys.executable, ROOT / "tools" / tool], check=True, timeout=60)
    assert {page: page.read_text() for page in generated} == before, "run `make docs`"


def anchors(text: str) -> set[str]:
    """Return the names of a page's headings in links to them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_every_link_between_the_documents_leads_somewhere() -> None:
    for page in pages():
        for target in re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text()):
            path, _, anchor = target.partition("#")
            linked = (ROOT / page).parent / path if path else ROOT / page
            if "://" not in target:
                assert linked.exists(), f"{page} links to {target}"
                assert not anchor or anchor in anchors(linked.read_text()), f"{page} links to {target}"
