"""Where the process's own words go: stderr, one line each, for structlog and for the libraries' logging alike."""

import logging
import os
import sys

import structlog


def talk_on_stderr(level: int = logging.INFO) -> None:
    """Everything from `level` up; of the libraries, warnings."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s [%(levelname)s] %(name)s: %(message)s"
    )
    colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
