"""docs/concepts/peer-faults.md names the tests that there are."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "concepts" / "peer-faults.md"


def named_in(*files: Path) -> set[str]:
    found = (re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE) for file in files)
    return {name for names in found for name in names}


def test_the_catalogue_of_peer_faults_names_no_test_that_is_missing():
    assert set(re.findall(r"`(test_\w+)`", PAGE.read_text())) <= named_in(*TESTS.rglob("test_*.py"))


def test_the_catalogue_of_peer_faults_leaves_no_test_out():
    files = [file for file in TESTS.rglob("test_peer_faults_*.py") if file != Path(__file__)]

    assert named_in(*files) <= set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
