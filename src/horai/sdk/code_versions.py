"""Versions of a durable function: an instance goes on in the version of the code that wrote its first record."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, NoReturn, cast

from horai.core.errors import Invalid
from horai.sdk.suspension import under_way

FIRST = 1
"""The version of a function that declares none."""
MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """The version of a function that runs, those that it continues, and those that the process has besides."""

    number: int = FIRST
    continues: frozenset[int] = frozenset()
    others: Collection[int] = ()


ONLY = CodeVersion()
"""A function that declares no version."""


class OtherVersion(BaseException):
    """The instance began in another version, which this process has: run that function instead."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the instance began in version {number}")
        self.number = number


def check_version(option: str, given: object) -> int:
    """Return a version. Raises `Invalid` if it is not one."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST:
        raise Invalid.field(option, f"is not a whole number from 1 to {MOST}", "Write, for example, version=2.")
    return given


def code_version_of(version: object, continues: object, *, is_async: bool) -> CodeVersion:
    """Return the version that the options of a job declare. Raises `Invalid` if they are not accepted."""
    if version is None and continues is None:
        return ONLY
    if not is_async:
        raise Invalid.field("version", "is accepted for async functions only", "Durable steps need an async function.")
    number = FIRST if version is None else check_version("version", version)
    if continues is None:
        return CodeVersion(number)
    if isinstance(continues, str) or not isinstance(continues, Iterable):
        raise Invalid.field("continues", "must be a list of versions", "Write, for example, continues=[1].")
    earlier = frozenset(check_version("continues", one) for one in cast("Iterable[object]", continues))
    if number in earlier:
        raise Invalid.field("continues", f"contains the version {number} itself", "Name other versions.")
    return CodeVersion(number, earlier)


def by_version(current: Callable[..., Any], others: Mapping[int, Callable[..., Any]]) -> Callable[..., Any]:
    """Return the function of a job that also runs its other versions, for instances that began in them."""

    @wraps(current)
    async def run(*arguments: Any, **named: Any) -> Any:
        try:
            return await current(*arguments, **named)
        except OtherVersion as other:
            found = under_way.get()
            if found is not None:
                found.runs[:] = [run.restarted(CodeVersion(other.number)) for run in found.runs]
            return await others[other.number](*arguments, **named)

    return run


def refuse_other(job: str, number: object, taken: Collection[int], function: Callable[..., Any]) -> None:
    """Raise `Invalid` if a function cannot be another version of a job."""
    check_version("version", number)
    if number in taken:
        _refuse(f"The version {number} of {job!r} is declared twice.", "Give each version one function.")
    if not inspect.iscoroutinefunction(function):
        _refuse(f"The version {number} of {job!r} is not an async function.", "Durable steps need an async function.")


def _refuse(message: str, hint: str) -> NoReturn:
    raise Invalid(message, hint)
