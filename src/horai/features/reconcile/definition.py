"""The definition of a reconciler: its source of desired instances, its schedule, and the job it watches.

A source is an SQL query over any PostgreSQL database, an HTTP address that returns pages, or a function of an
application.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from horai.core.job import JobStatus
from horai.core.job_patch import amended
from horai.core.masking import shown_target
from horai.core.target_checks import check_headers, check_url
from horai.core.validation import Validation
from horai.text import Hint, Wrong

RECONCILE_HANDLER = "horai:reconcile"
SCHEDULE = ("cron", "every", "timezone")
QUERY_LIMIT = 20_000
_FILES = frozenset({"passfile", "servicefile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "gsslib"})


@dataclass(frozen=True, slots=True)
class SqlSource:
    """Rows `key, execute_time[, payload[, version]]` of a query with `$1` (the last key) and `$2` (the limit).

    The database is at `url`, or `name` is the name of one of the operator's sources.
    """

    query: str
    url: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class HttpSource:
    """Pages `{items: [{key, executeTime, payload?, version?}], nextCursor}` of `GET url?cursor=…&limit=…`."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PythonSource:
    """A function of an application: a worker runs it, and the server stores nothing about it."""


Source = SqlSource | HttpSource | PythonSource


def job_document(name: str, schedule: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of the job of a reconciler: one run at a time, and one catch-up run for all missed ones."""
    given = {field: schedule[field] for field in SCHEDULE if schedule.get(field) is not None}
    policies = {"overlap": "skip", "misfire": "once"} if given.get("cron") or given.get("every") else {}
    return {"name": name, **given, **policies, "target": {"type": "worker", "handler": RECONCILE_HANDLER}}


def changed_document(document: Mapping[str, Any], status: JobStatus, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of the job of a reconciler with a changed schedule; None removes a field."""
    merged = amended(document, status, fields)
    return {**merged, **job_document(merged["name"], merged)}


def checked_source(document: Mapping[str, Any], allowed: Container[str]) -> Source:
    """Read the source that a document describes; `allowed` are the names of the operator's sources.

    `Invalid` names every wrong field. Every name that is not allowed gets the same text, so that a
    request cannot find out which names or variables exist.
    """
    faults = Validation()
    source = _sql(document, allowed, faults) if document.get("type") == "sql" else _http(document, faults)
    faults.raise_if_any()
    return source


def stored_source(document: Mapping[str, Any]) -> Source:
    """Return a stored source. Raises `Invalid` if it is no longer valid. The node resolves its name when it runs."""
    return (
        PythonSource() if document.get("type") == "python" else checked_source(document, {document.get("source", "")})
    )


def _sql(document: Mapping[str, Any], allowed: Container[str], faults: Validation) -> SqlSource:
    _refuse_others(document, ("url", "headers"), "http", faults)
    query, url, name = document.get("query"), document.get("databaseUrl"), document.get("source")
    if not query:
        faults.add(
            "source.query",
            Wrong.MISSING(),
            Hint.WRITE_QUERY(),
        )
    elif len(query) > QUERY_LIMIT:
        faults.add("source.query", Wrong.TOO_LONG(most=QUERY_LIMIT))
    elif "$1" not in query or "$2" not in query:
        faults.add(
            "source.query",
            Wrong.QUERY_NEEDS(),
        )
    if (url is None) == (name is None):
        faults.add("source.source", Wrong.ONE_OF_DATABASES())
    if url is not None:
        faults.reading("source.databaseUrl", lambda: check_database_url(url), None)
    if name is not None and name not in allowed:
        faults.add("source.source", Wrong.NO_SOURCE(), Hint.ALLOW_SOURCE())
    return SqlSource(query or "", url, name)


def _http(document: Mapping[str, Any], faults: Validation) -> HttpSource:
    _refuse_others(document, ("query", "databaseUrl", "source"), "sql", faults)
    url = document.get("url")
    headers: Mapping[str, str] = document.get("headers") or {}
    if not url:
        faults.add("source.url", Wrong.MISSING())
    else:
        faults.reading("source.url", lambda: check_url(url), None)
    faults.reading("source.headers", lambda: check_headers(headers), None)
    return HttpSource(url or "", headers)


def _refuse_others(document: Mapping[str, Any], fields: tuple[str, ...], kind: str, faults: Validation) -> None:
    for name in fields:
        if document.get(name) is not None:
            faults.add(f"source.{name}", Wrong.OF_SOURCE(kind=kind))


def check_database_url(url: str) -> None:
    """Raise `ValueError` if `url` is not a network address of a PostgreSQL database.

    The message repeats no part of the URL, because it contains a password.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        is_named = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError(Wrong.DATABASE_HOST()) from None
    if parts.scheme not in {"postgresql", "postgres"} or not is_named:
        raise ValueError(Wrong.DATABASE_SCHEME())
    named = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if (
        not host
        or host.startswith("/")
        or "%2f" in parts.netloc.lower()
        or "," in parts.netloc
        or parts.netloc.count("@") > 1
        or named & {"host", "hostaddr", "port", "service"}
    ):
        # A socket or an unchecked host could lead to a database that trusts every local connection: Horai's own.
        raise ValueError(Wrong.DATABASE_ONE_HOST())
    if named & _FILES:
        raise ValueError(Wrong.DATABASE_FILES())


def shown_source(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a source as responses show it: without database password, header values and URL query values."""
    return shown_target(document)
