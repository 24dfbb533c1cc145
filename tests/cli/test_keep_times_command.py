"""`--keep-history` and `--keep-dead-letters` of jobs."""

import json
from pathlib import Path

from terminal import Terminal


def test_a_job_gets_its_times_by_flags_or_a_file(horai: Terminal, tmp_path: Path) -> None:
    made = horai("jobs", "create", "kept-a", "--keep-history", "30d", "--keep-dead-letters", "90d", "--json")
    assert (made.code, made.json["keepHistory"], made.json["keepDeadLetters"]) == (0, "30d", "90d")
    shown = " ".join(horai("jobs", "show", "kept-a").out.split())
    assert "history kept for 30d dead letters kept for 90d" in shown
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"name": "kept-b", "keepHistory": "2d", "keepDeadLetters": "3d"}))
    made = horai("jobs", "create", "-f", str(file), "--keep-history", "1d", "--json")
    assert (made.json["keepHistory"], made.json["keepDeadLetters"]) == ("1d", "3d")
    wrong = horai("jobs", "create", "kept-c", "--keep-history", "1h")
    assert (wrong.code, "keepHistory: is not between 1d and 3650d" in wrong.err) == (1, True)
