"""The application that `module:app` names, imported as Python imports it in this directory."""

import importlib
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import horai
from horai.cli.errors import BadUsage, CommandFailed
from horai.cli.references import Reference, look_here_first, refuse_module
from horai.core.errors import HoraiError
from horai.sdk import django
from horai.sdk.app import Horai

PLACES_SHOWN = 3
NOT_THEIRS = (str(Path(horai.__file__).parent), "<frozen importlib", importlib.__file__)


def load_app(reference: Reference) -> Horai:
    """Import the module and return its application. Raises `CommandFailed` with a hint if either is wrong."""
    look_here_first()
    _set_up_django()
    module = _import(reference.module)
    found: object = module
    for part in reference.name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Horai):
        return found
    there = "has no " + repr(reference.name) if found is None else f"has a {type(found).__name__} there, not a Horai"
    raise BadUsage(f"{reference}: the module {there}.", _applications_in(module, reference))


def _set_up_django() -> None:
    try:
        django.set_up()
    except (Exception, SystemExit) as error:
        reason = traceback.format_exception_only(error)[-1].strip()
        raise CommandFailed(
            f"django.setup() failed: {reason}", f"Check {django.SETTINGS}, or remove it from the environment."
        ) from error


def _applications_in(module: ModuleType, reference: Reference) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Horai)]
    if not names:
        return 'It has no application: app = Horai("shop") creates one.'
    meant = get_close_matches(reference.name, names, 1) or (names if len(names) == 1 else [])
    if meant:
        return f"Did you mean {reference.module}:{meant[0]}?"
    return f"It has {', '.join(f'{reference.module}:{name}' for name in names)}."


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            refuse_module(error.name)
        _refuse_import(name, error)
    except (Exception, SystemExit) as error:
        _refuse_import(name, error)


def _refuse_import(name: str, error: BaseException) -> NoReturn:
    """Raise `CommandFailed` with the error and the lines of the user's code; a `HoraiError` keeps its text and hint."""
    where = _places(error)[-PLACES_SHOWN:]
    if isinstance(error, HoraiError):
        raise CommandFailed(error.detail, error.hint, where) from error
    reason = traceback.format_exception_only(error)[-1].strip()
    raise CommandFailed(f"The module {name!r} cannot be imported: {reason}", also=where) from error


def _places(error: BaseException) -> list[str]:
    """Return the lines of code that led to the error, innermost last, without those of importlib and Horai."""
    frames = [
        (frame.filename, frame.lineno, frame.line)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(NOT_THEIRS)
    ]
    if isinstance(error, SyntaxError) and error.filename is not None:
        frames.append((error.filename, error.lineno, error.text))
    return [f"  {file}:{line}: {(code or '').strip()}" for file, line, code in frames]
