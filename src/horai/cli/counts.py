"""Bounded counts of lists: `--count` of the list commands."""

import json
from collections.abc import Mapping

from horai.cli.client import RestClient
from horai.cli.errors import BadUsage
from horai.cli.show import print_json
from horai.cli.views import Document


def print_count(client: RestClient, path: str, only: Mapping[str, str | int | None], as_json: bool) -> None:
    """Print how many rows match. Raises `BadUsage` with a limit: the count has no pages."""
    if only.get("limit") is not None:
        raise BadUsage("--count and --limit exclude each other.", "Give one of them.")
    answer = client.page(path, only, everything=False)
    if as_json:
        print_json(answer)
    else:
        print(count_text(json.loads(answer)))


def count_text(found: Document) -> str:
    """Return a count as people read it: `12,345`, or `at least 100,000`."""
    return f"{'at least ' if found['more'] else ''}{found['count']:,}"
