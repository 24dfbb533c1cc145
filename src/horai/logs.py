"""The log of a process: one line per event on stderr, as text or as JSON.

Horai's own lines (structlog) and those of functions and libraries (`logging`) have the same form. A line that a
function writes names the job, instance, attempt and trace it belongs to, also from a thread and from a process of its
own. The level and the format come from the environment, so that child processes write as their parent does.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from horai.core.calls import Call

LEVEL, FORMAT = "HORAI_LOG_LEVEL", "HORAI_LOG_FORMAT"
LIBRARIES = ("aiohttp", "asyncio", "asyncpg", "httpcore", "httpx", "nats", "urllib3", "uvicorn")
"""Loggers whose lines below warning are not written: some write a line per request, with the query of its URL."""

Stamp = Callable[[EventDict], None]
_stamp: list[Stamp] = []

running: ContextVar[Call | None] = ContextVar("running", default=None)
"""The attempt whose function runs in this context."""


def set_stamp(stamp: Stamp | None) -> None:
    """Let `stamp` add the trace id to Horai's own lines from now on; None ends it."""
    _stamp[:] = [] if stamp is None else [stamp]


def is_json() -> bool:
    """Return whether lines are JSON."""
    return os.environ.get(FORMAT) == "json"


def write_to_stderr(level: int | None = None) -> None:
    """Write lines of `level` and above, or of the level that the environment names (info).

    If the application has set up `logging` itself, with handlers of the root logger, its own lines stay as they are.
    """
    lowest = _level() if level is None else level
    stamps = _stamps()
    structlog.configure(
        processors=[*stamps, _name_trace, _renderer()],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer()],
            foreign_pre_chain=[*stamps, structlog.stdlib.add_logger_name, _name_attempt],
        )
    )
    root.addHandler(handler)
    root.setLevel(lowest)
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(max(lowest, logging.WARNING))


def _level() -> int:
    named = os.environ.get(LEVEL, "info").upper()
    return logging.getLevelNamesMapping().get(named, logging.INFO)


def _stamps() -> Iterable[Processor]:
    return (structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True))


def _renderer() -> Processor:
    if is_json():
        return _as_json
    colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)


def _as_json(logger: WrappedLogger, method: str, event: EventDict) -> str | bytes:
    """Render a line. A value that is not JSON is written as its `repr`, half of a surrogate pair as an escape."""
    whole = structlog.processors.format_exc_info(logger, method, event)
    return _json(logger, method, whole)


_json = structlog.processors.JSONRenderer(default=repr)


def _name_attempt(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if (call := running.get()) is not None:
        event["job"], event["instance"], event["attempt"] = call.job, str(call.instance_id), call.attempt
        event["trace"] = call.idempotency_key
        if call.traceparent is not None:
            event["trace_id"], event["span_id"] = call.traceparent.split("-")[1:3]
    return event


def _name_trace(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for stamp in _stamp:
        stamp(event)
    return event
