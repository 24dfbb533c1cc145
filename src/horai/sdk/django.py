"""Support for applications that use Django: its setup before their import, and fresh connections around each call.

At the beginning and the end of each request, Django closes a thread's connections that failed or are too old. A worker
serves no requests, so it does the same around each call of a function.
"""

import os
from collections.abc import Awaitable, Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any, cast

import structlog

log = structlog.get_logger(__name__)

SETTINGS = "DJANGO_SETTINGS_MODULE"


def uses_django() -> bool:
    """Return whether this process runs an application with Django: it is installed, and its settings are named."""
    return bool(os.environ.get(SETTINGS)) and find_spec("django") is not None


def set_up() -> None:
    """Call `django.setup()` in an application with Django. Models can be imported after it."""
    if uses_django():
        import django  # noqa: PLC0415 — only if it is used

        cast("Any", django).setup()


def with_fresh_connections(function: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """Wrap the function so that each call closes Django's unusable connections before and after it.

    A function that is not async uses the connections of its own thread. An async one uses, through `sync_to_async`,
    those of the thread that asgiref shares. Without Django, return the function unchanged.
    """
    if not uses_django():
        return function
    return _async(function) if is_async else _threaded(function)


def _threaded(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        _close_unusable()
        try:
            return function(*arguments, **named)
        finally:
            _close_unusable()

    return call


def _async(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    from asgiref.sync import sync_to_async  # noqa: PLC0415 — Django depends on it

    close_unusable: Callable[[], Awaitable[None]] = sync_to_async(_close_unusable)

    @wraps(function)
    async def call(*arguments: Any, **named: Any) -> Any:
        await close_unusable()
        try:
            return await function(*arguments, **named)
        finally:
            await close_unusable()

    return call


def _close_unusable() -> None:
    """Close the unusable connections. An error is only logged: it must not change the outcome of the call."""
    from django import db  # noqa: PLC0415

    try:
        cast("Any", db).close_old_connections()
    except Exception as error:
        log.warning("Django could not close its old connections.", error=repr(error))
