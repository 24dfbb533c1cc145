"""Results of bulk changes on the command line: the numbers of objects changed, skipped and held, and the reasons."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from horai.cli.show import print_json, say

COUNTS = ("matched", "changed", "skipped", "held")


def print_result(
    total: Mapping[str, int], reasons: Sequence[Mapping[str, Any]], kind: str, done: str, as_json: bool
) -> None:
    """Print the sums over all requests. `kind` is the member of a reason that names its object, such as `job`."""
    if as_json:
        print_json(json.dumps({**total, "reasons": reasons}).encode())
        return
    say(f"{kind.capitalize()}s {done}: {total['changed']}.")
    if total["skipped"]:
        say(f"Skipped: {total['skipped']}.")
    for each in reasons:
        say(f"  {each[kind]}: {each['reason']}")
    if total["held"]:
        say(f"Left alone, as another transaction had locked them: {total['held']}.")
