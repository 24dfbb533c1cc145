"""Modules that are imported when one of their names is used for the first time.

`runtime` is sdk/runtime.py: the database, the engine and what runs functions. The modules that declare jobs import it from here:
an application that is imported, to declare jobs or to add an instance later, loads neither the database driver nor the engine.
`composition` and `workflow` are for applications that have some. For type checkers, deferred.pyi says that they are the modules.
"""

import gc
from importlib import import_module
from types import ModuleType
from typing import Any


class _Deferred:
    """A module that is imported on first use. A name that was used once is an attribute of this object from then on."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # inspect and copy ask every object for some of these
            raise AttributeError(name)
        value = getattr(_imported(self._module), name)
        setattr(self, name, value)
        return value


def _imported(module: str) -> ModuleType:
    """Import a module with the garbage collector off: an import makes many objects that stay, and little garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if was_on:
            gc.enable()


composition = _Deferred("horai.sdk.composition")
runtime = _Deferred("horai.sdk.runtime")
workflow = _Deferred("horai.sdk.workflow")
