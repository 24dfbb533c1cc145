"""Calls of a durable function that belong into a step: clocks, random numbers, network calls and plain sleeps.

The code between the steps runs again after each suspension. A call that answers differently the second time, or has an
effect, makes that run differ from the first. Only obvious calls are found, by the names in the source.
"""

import ast
import datetime
import inspect
import os
import random
import secrets
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from horai.sdk import steps
from horai.sdk.job_api import Verbs

DURABLE = (steps.step, steps.sleep, steps.wait_for, steps.gather)
DURABLE_OF_JOBS = frozenset({"call", "continue_as_new"})
"""Methods of jobs that record, as steps do."""
CLOCKS = (time.time, time.time_ns, time.monotonic, time.perf_counter)
CLOCK_METHODS = frozenset({"now", "utcnow", "today"})
RANDOM = (uuid.uuid1, uuid.uuid4, os.urandom)
RANDOM_MODULES = frozenset({random.__name__, secrets.__name__})
NETWORK_MODULES = frozenset({"aiohttp", "http.client", "httpx", "requests", "socket", "urllib.request", "urllib3"})
SLEEPS = frozenset({("asyncio.tasks", "sleep"), ("time", "sleep")})


@dataclass(frozen=True, slots=True)
class UnsafeCall:
    """A call outside a step. `line` counts from 1 in `file`; `advice` says what to write instead."""

    file: str
    line: int
    call: str
    advice: str


def unsafe_calls(function: Callable[..., Any]) -> list[UnsafeCall]:
    """Return the calls of a function with durable steps that belong into a step, in order; none without a source."""
    function = inspect.unwrap(function)
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return []
    names: Mapping[str, Any] = getattr(function, "__globals__", {})
    calls = [(call, _resolved(call.func, names)) for call in _calls_of(tree.body[0])]
    if not any(_is_one_of(target, DURABLE) or _is_of_a_job(call.func, names) for call, target in calls):
        return []
    file = inspect.getsourcefile(function) or "?"
    found = [
        UnsafeCall(file, first + call.lineno - 1, ast.unparse(call.func), advice)
        for call, target in calls
        if (advice := _advice(target, call.func)) is not None
    ]
    return sorted(found, key=lambda each: each.line)


def _calls_of(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that the body of the function makes itself, without those of functions defined in it."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _calls_of(child)


def _resolved(expression: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the object that a dotted name stands for in the module; None if it is no such name."""
    if isinstance(expression, ast.Name):
        return names.get(expression.id)
    if not isinstance(expression, ast.Attribute):
        return None
    owner = _resolved(expression.value, names)
    return getattr(owner, expression.attr, None) if isinstance(owner, ModuleType | type) else None


def _advice(target: Any, expression: ast.expr) -> str | None:
    if target is None:
        return None
    name = getattr(target, "__name__", "")
    owner = getattr(target, "__self__", None)
    module = (
        getattr(owner, "__module__", None) if isinstance(owner, random.Random) else getattr(target, "__module__", "")
    )
    if _is_one_of(target, CLOCKS) or _is_clock_method(expression, owner):
        return "Read the clock in a step."
    if _is_one_of(target, RANDOM) or module in RANDOM_MODULES:
        return "Draw it in a step."
    if (module, name) in SLEEPS:
        return "Write `await sleep(…)` of horai, which frees the worker."
    if module and any(module == known or module.startswith(f"{known}.") for known in NETWORK_MODULES):
        return "Make the call in a step."
    return None


def _is_of_a_job(expression: ast.expr, names: Mapping[str, Any]) -> bool:
    """Return whether an expression is a method of a job that only durable functions call, such as `invoice.call`."""
    if not isinstance(expression, ast.Attribute) or expression.attr not in DURABLE_OF_JOBS:
        return False
    return isinstance(_resolved(expression.value, names), Verbs)


def _is_one_of(target: Any, known: tuple[Any, ...]) -> bool:
    return any(target is each for each in known)


def _is_clock_method(expression: ast.expr, owner: Any) -> bool:
    """Return whether a class method of datetime or date reads the clock, such as `datetime.now`."""
    is_class = isinstance(owner, type) and issubclass(owner, datetime.date)
    return is_class and isinstance(expression, ast.Attribute) and expression.attr in CLOCK_METHODS
