"""Bulk changes of runs of workflows on the command line."""

import json
from collections.abc import Mapping
from typing import Any

from horai.cli.bulk_results import COUNTS, print_result
from horai.cli.client import RestClient, path_of
from horai.cli.errors import BadUsage

DONE = {"cancel": "cancelled", "rerun": "rerun"}


def require_one(verb: str, run: str | None, only: Mapping[str, Any]) -> None:
    """Raise `BadUsage` unless there is either a run or a filter."""
    if (run is None) != bool(only):
        raise BadUsage(
            f"horai workflows {verb} takes a run, or --state, --from and --to.",
            f"Try: horai workflows {verb} nightly --state BLOCKED",
        )


def change_runs(client: RestClient, workflow: str, verb: str, only: Mapping[str, Any], as_json: bool) -> None:
    """Change all runs that match, request by request, and print how many were changed, skipped and why."""
    total = dict.fromkeys(COUNTS, 0)
    reasons: list[dict[str, Any]] = []
    following = dict[str, Any]()
    while True:
        wish = {**only, **following}
        answer = json.loads(client.call("POST", path_of("workflows", workflow, "runs", verb), wish))
        total = {name: total[name] + answer[name] for name in COUNTS}
        reasons += answer["reasons"]
        if not (answer["more"] and answer["changed"]):
            break
        if "rate" in only:
            following = {"startAt": answer["nextStart"]}
    print_result(total, reasons, "run", DONE[verb], as_json)
