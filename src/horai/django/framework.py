"""Django and its task framework: `django.tasks` of Django 6, or the package django-tasks with the same names.

Django has no types of its own.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

NAME = "django.tasks" if find_spec("django.tasks") is not None else "django_tasks"

database: Any = import_module("django.db")
module_loading: Any = import_module("django.utils.module_loading")
base: Any = import_module(f"{NAME}.base")
backends: Any = import_module(f"{NAME}.backends.base")
exceptions: Any = import_module(f"{NAME}.exceptions")
signals: Any = import_module(f"{NAME}.signals")

InvalidTask: type[Exception] = getattr(exceptions, "InvalidTask", None) or exceptions.InvalidTaskError
