"""`module:app` on the command line: parse it and check that the module exists, without running it."""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple, NoReturn

from horai.cli.errors import BadUsage

DEFAULT_NAME = "app"
FORM = "Write MODULE:APP, such as shop.jobs:app."


class Reference(NamedTuple):
    """A module, and the name of the application in it."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


def parse_reference(text: str) -> Reference:
    """Parse a reference such as `shop.jobs:app`; the default name is `app`."""
    module, _, name = text.partition(":")
    reference = Reference(module, name or DEFAULT_NAME)
    if module.endswith(".py") or not all(part.isidentifier() for whole in reference for part in whole.split(".")):
        raise BadUsage(f"{text[:200]!r} does not name an application.", _respelled(module) or FORM)
    return reference


def _respelled(module: str) -> str | None:
    """Return a hint for a file name where a module is meant."""
    dotted = module.removesuffix(".py").removeprefix("./").strip("/").replace("/", ".")
    is_file = module != dotted and all(part.isidentifier() for part in dotted.split("."))
    return f"Did you mean {dotted}:{DEFAULT_NAME}?" if is_file else None


def require_module(reference: Reference) -> None:
    """Raise `BadUsage` if the top-level module does not exist, without running it."""
    look_here_first()
    top = reference.module.partition(".")[0]
    with suppress(ValueError):  # a module that is imported already, without a spec
        if find_spec(top) is None:
            refuse_module(top)


def look_here_first() -> None:
    """Put the current directory first on the module search path."""
    here = str(Path.cwd())
    if sys.path[:1] != [here]:
        sys.path.insert(0, here)


def refuse_module(name: str) -> NoReturn:
    """Raise `BadUsage` for an unknown module, and suggest one with a similar name."""
    parent, _, last = name.rpartition(".")
    places: Iterable[str] = getattr(sys.modules[parent], "__path__", []) if parent in sys.modules else [os.curdir]
    near = get_close_matches(last, [module.name for module in iter_modules(places)], 1)
    meant = f"Did you mean {f'{parent}.' if parent else ''}{near[0]}?" if near else None
    raise BadUsage(
        f"There is no module {name!r}.", meant or f"Python searched {Path.cwd()} and the installed packages."
    )
