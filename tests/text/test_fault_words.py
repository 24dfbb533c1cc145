"""Every code that Horai gives to a failed attempt is explained on the pages, in both languages."""

import ast
import json
import re
from pathlib import Path

import pytest

from horai.core import http_batches, jetstream, outcome
from horai.engine import settler
from horai.features.workflow import starters, trigger_rules
from horai.ray_tasks import fates
from horai.sdk import parameters

ROOT = Path(__file__).resolve().parents[2]
FAILURES = {"FailedRetryable", "FailedUnrecoverable"}
NAMED = {
    "TIMEOUT": outcome.TIMEOUT,
    "PROCESS_DIED": outcome.PROCESS_DIED,
    "COMPENSATION_FAILED": outcome.COMPENSATION_FAILED,
    "TASK_FAILED": fates.TASK_FAILED,
    "ITEM_MISSING": http_batches.ITEM_MISSING,
    **{name: code for name, code in vars(jetstream).items() if str(code).startswith("NATS_")},
}


def code_of(given: ast.expr) -> str | None:
    """The code of a failure; None for what a function's own error gives."""
    match given:
        case ast.Constant(str(code)):
            return code
        case ast.Name(name):
            return NAMED.get(name)
        case ast.JoinedStr():
            return re.sub(r"_\{.*", "", ast.unparse(given)[2:-1])
        case _:
            return None


def codes() -> set[str]:
    """Those that stand in the sources, and those that no executor gives: a refused outcome, a lost node, a blocked run."""
    calls = (
        node
        for path in (ROOT / "src" / "horai").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in FAILURES and node.args
    )
    found = {code_of(call.args[0]) for call in calls}
    return {code for code in found if code is not None} | {
        settler.UNSTORABLE,
        outcome.NODE_LOST,
        starters.RUN_BLOCKED,
        *(fault.code for fault in trigger_rules.NODE_FAULTS.values()),
        parameters.FIELD_MISSING,
        parameters.FIELD_UNKNOWN,
    }


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_the_pages_explain_every_code_of_a_failure(language: str) -> None:
    texts = json.loads((ROOT / "console" / "src" / "i18n" / language / "common.json").read_text())

    assert sorted(texts["fault"]) == sorted(codes())
