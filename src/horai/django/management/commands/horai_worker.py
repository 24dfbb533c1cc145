"""`manage.py horai_worker`: run the tasks of the project in a worker."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand  # pyright: ignore[reportMissingTypeStubs]

from horai.cli.main import run
from horai.django.worker import ALIAS

REFERENCE = "horai.django.worker:app"


class Command(BaseCommand):
    """Takes the options of `horai worker`, and `--backend ALIAS` for a backend other than `default`."""

    help = "Run the tasks of this project. Takes the options of `horai worker`, and --backend ALIAS of TASKS."

    def run_from_argv(self, argv: list[str]) -> None:
        """Give the options to `horai worker` as they are."""
        self.handle(*argv[2:])

    def handle(self, *given: str, **_: Any) -> None:
        """Run `horai worker` in this process until it is stopped."""
        parser = ArgumentParser(prog="manage.py horai_worker", add_help=False, allow_abbrev=False)
        parser.add_argument("--backend", default=os.environ.get(ALIAS, "default"))
        known, others = parser.parse_known_args(given)
        os.environ[ALIAS] = known.backend
        sys.argv = ["horai", "worker", REFERENCE, *others]
        run()
