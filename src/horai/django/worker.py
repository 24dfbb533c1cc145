"""The application of `manage.py horai_worker`: `horai worker horai.django.worker:app`."""

import os
from importlib import import_module
from typing import Any

from horai.django.backend import HoraiBackend
from horai.django.framework import NAME, module_loading
from horai.sdk.app import Horai

ALIAS = "HORAI_TASKS_BACKEND"
"""The variable with the alias of the backend in `TASKS`."""


def discovered(alias: str) -> Horai:
    """Import the modules `tasks` of all installed applications, and return the application of a backend."""
    module_loading.autodiscover_modules("tasks")
    backend: Any = import_module(NAME).task_backends[alias]
    if not isinstance(backend, HoraiBackend):
        raise TypeError(f"TASKS[{alias!r}] is {type(backend).__name__}, not horai.django.backend.HoraiBackend.")
    return backend.tasks.app


def __getattr__(name: str) -> Horai:
    """Return `app` when it is asked for: the project must be set up first."""
    if name == "app":
        return discovered(os.environ.get(ALIAS, "default"))
    raise AttributeError(name)
