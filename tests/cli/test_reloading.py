"""The files that `--reload` watches, and the changes that count."""

from pathlib import Path

from horai.cli.reload import differing, sources_under


def test_only_code_of_ones_own_is_looked_at(tmp_path: Path) -> None:
    for file in ("a.py", "b.txt", "p/c.py", ".git/d.py", "env/pyvenv.cfg", "env/lib/e.py", "p/__pycache__/f.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()

    assert set(sources_under(tmp_path)) == {str(tmp_path / "a.py"), str(tmp_path / "p" / "c.py")}


def test_files_that_are_made_changed_or_removed_are_changes() -> None:
    assert differing({"same": 1, "changed": 1, "removed": 1}, {"same": 1, "changed": 2, "made": 1}) == [
        "changed",
        "made",
        "removed",
    ]
