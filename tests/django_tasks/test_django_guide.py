"""docs/guides/django.md, typed from its beginning to its end in a new project."""

import shlex
import subprocess
import sys
from pathlib import Path

from pages import blocks
from terminal import clean_environment

from horai.django.framework import NAME

PAGE = "docs/guides/django.md"
MANAGE = (
    "import sys\nfrom django.core.management import execute_from_command_line\n\nexecute_from_command_line(sys.argv)\n"
)


def test_the_guide_of_django_does_what_it_says(tmp_path: Path, url: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "manage.py").write_text(MANAGE)
    environment = clean_environment() | {"DJANGO_SETTINGS_MODULE": "shop.settings", "HORAI_DATABASE_URL": url}
    workers: list[subprocess.Popen[str]] = []
    typed = 0
    try:
        for block in blocks(PAGE):
            if block.language == "console":
                (command,) = block.commands
                words = [sys.executable, *shlex.split(command.text)[1:]]
                worker = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
                workers.append(worker)
                assert worker.stdout is not None
                assert worker.stdout.readline().rstrip() == command.shown[0]
            elif block.file is not None:
                (tmp_path / block.file).write_text(block.text.replace("django.tasks", NAME))
            else:
                code = f"import django; django.setup()\n{block.text}"
                done = subprocess.run(
                    [sys.executable, "-c", code],
                    cwd=tmp_path,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )
                assert done.returncode == 0, done.stderr
                said = [line.split("  # ")[1] for line in block.text.splitlines() if "  # " in line]
                assert done.stdout.splitlines() == said
            typed += 1
    finally:
        for worker in workers:
            worker.terminate()
            assert worker.wait(30) == 0
            assert worker.stdout is not None
            worker.stdout.close()
    assert typed == 4
