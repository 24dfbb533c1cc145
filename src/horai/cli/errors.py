"""The errors of commands, and their lines on stderr."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import typer

from horai.core.errors import HoraiError
from horai.db.database_location import BadLocation, NoDatabase

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SUGGESTION = re.compile(r"(?P<what>.*?) (?:(?P<meant>Did you mean .*\?)|\(Possible options: (?P<options>.*)\))")


class CommandFailed(Exception):
    """The request failed: exit code 1. `also` has further error lines; `problem` is the server's problem, if any."""

    exit_code = 1
    code = "CLI_FAILED"
    title = "Command failed"

    def __init__(
        self,
        detail: str,
        hint: str | None = None,
        also: Sequence[str] = (),
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.also = tuple(also)
        self.problem = problem


class NotThere(CommandFailed):
    """The server answered 404: it has no object of that name."""


class BadUsage(CommandFailed):
    """The command was not understood: exit code 2."""

    exit_code = 2
    code = "CLI_USAGE"
    title = "Bad usage"


def refuse_flag(flag: str, message: str) -> NoReturn:
    """Raise the parser's error for a wrong value of a flag."""
    raise typer.BadParameter(message, param_hint=f"'{flag}'")


def as_failure(error: Exception) -> CommandFailed:
    """Return the `CommandFailed` for any error."""
    match error:
        case CommandFailed():
            return error
        case BadLocation() | NoDatabase():
            return BadUsage(error.detail, error.hint, (), _problem_of(error))
        case HoraiError():
            return CommandFailed(error.detail, error.hint, (), _problem_of(error))
        case typer.TyperException():
            return _misused(error)
        case _:
            words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return CommandFailed(words, "This error is unexpected. Set HORAI_DEBUG=1 to see the traceback.")


def _misused(error: typer.TyperException) -> BadUsage:
    """Return the parser's message, with its suggestion as the hint."""
    message = error.format_message()
    if found := _SUGGESTION.fullmatch(message):
        return BadUsage(found["what"], found["meant"] or f"Did you mean {found['options']}?")
    context = getattr(error, "ctx", None)
    return BadUsage(message, f"{context.command_path} --help shows the usage." if context else None)


def _problem_of(error: HoraiError) -> dict[str, Any]:
    problem = {"title": error.title, "code": error.code, "detail": error.detail}
    return problem | ({"hint": error.hint} if error.hint else {})


def json_of(failure: CommandFailed) -> str:
    """Return the failure as an RFC 9457 problem object on one line, with its `exitCode`."""
    problem = dict(failure.problem or {"title": failure.title, "code": failure.code, "detail": failure.detail})
    if failure.hint:
        problem["hint"] = failure.hint
    if failure.also and "errors" not in problem:
        problem["errors"] = [{"message": line.strip()} for line in failure.also]
    return json.dumps({**problem, "exitCode": failure.exit_code})


def lines_of(failure: CommandFailed) -> list[str]:
    """Return the `error:` and `hint:` lines of a failure."""
    told = [f"error: {detail}" for detail in (failure.detail, *failure.also)]
    return [one_line(line) for line in (*told, *([f"hint: {failure.hint}"] if failure.hint else []))]


def one_line(text: str) -> str:
    """Return text of any origin on one line, with control characters escaped for the terminal."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n").replace("\n", " "))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
