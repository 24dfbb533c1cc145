"""Database URLs: the forms that Horai accepts, and the hosts that a URL names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

DEFAULT_PORT = 5432
_SCHEME = re.compile(
    r"^(?:postgres|postgresql)(?:\+(?:asyncpg|psycopg|psycopg2|psycopg_async|pg8000))?://", re.IGNORECASE
)
_OF_SQLALCHEMY = frozenset({"async_fallback", "prepared_statement_cache_size", "prepared_statement_name_func"})
_HOST = re.compile(r"^(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^:]*))(?::(?P<port>[0-9]+))?$")


class BadUrl(ValueError):
    """The URL names its hosts in a form that Horai cannot read."""


@dataclass(frozen=True, slots=True)
class DatabaseHost:
    """One PostgreSQL server of a URL: a name, an IP address, or the directory of a Unix socket."""

    name: str
    port: int

    @property
    def is_socket(self) -> bool:
        """Return whether the server is on this machine, behind a Unix socket."""
        return self.name.startswith("/")

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


def plain_url(url: str) -> str:
    """Return the URL in PostgreSQL's own form: without SQLAlchemy's driver name and its parameters."""
    found = _SCHEME.match(url)
    if found is None:
        return url
    rest = url[found.end() :]
    before, mark, query = rest.partition("?")
    if mark and any(f"{name}=" in query for name in _OF_SQLALCHEMY):
        kept = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name not in _OF_SQLALCHEMY]
        rest = f"{before}?{urlencode(kept)}" if kept else before
    return f"postgresql://{rest}"


def hosts_of(url: str, environ: Mapping[str, str]) -> tuple[DatabaseHost, ...]:
    """Return the hosts in order; none if neither the URL nor PGHOST names one and the driver's defaults apply."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    listed = parts.netloc.rpartition("@")[2]
    named = unquote(listed) or query.get("host") or environ.get("PGHOST") or ""
    ports = ("" if listed else query.get("port")) or environ.get("PGPORT") or str(DEFAULT_PORT)
    names = [name for name in named.split(",") if name]
    return tuple(map(_host, names, _one_each(ports.split(","), len(names))))


def target_of(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the `target_session_attrs` that the URL or the environment asks for."""
    return dict(parse_qsl(urlsplit(url).query)).get("target_session_attrs") or environ.get("PGTARGETSESSIONATTRS")


def database_of(url: str, environ: Mapping[str, str]) -> str:
    """Return the name of the database, as far as the URL or PGDATABASE gives one."""
    parts = urlsplit(url)
    return (
        unquote(parts.path.lstrip("/")) or dict(parse_qsl(parts.query)).get("dbname") or environ.get("PGDATABASE", "")
    )


def _one_each(ports: list[str], count: int) -> list[str]:
    if len(ports) not in (1, count):
        raise BadUrl(f"the URL names {count} hosts and {len(ports)} ports: give one port, or one per host")
    return ports * count if len(ports) == 1 else ports


def _host(text: str, default_port: str) -> DatabaseHost:
    if text.startswith("/"):
        return DatabaseHost(text, int(default_port))
    found = _HOST.match(text)
    if found is None:
        raise BadUrl(f"{text!r} is not a host: write name, name:port or [IPv6 address]:port")
    return DatabaseHost(found["v6"] or found["name"], int(found["port"] or default_port))
