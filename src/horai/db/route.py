"""The knowledge of a process about the servers of one database URL, and the choice of the one it may work on.

The lease connects from its own thread, so every attribute here is replaced or changed by one atomic operation.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeAlias
from weakref import WeakKeyDictionary

import asyncpg
import structlog

from horai.db.sightings import Sighting, Sightings, state_dir
from horai.db.urls import DatabaseHost, database_of, hosts_of, target_of

log = structlog.get_logger(__name__)

Dedicated: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class ServerUnfit(ConnectionError):
    """A server answers, but Horai may not work on it. The hint tells the operator how to fix it."""

    def __init__(self, reason: str, hint: str = "", *, may_pass: bool = False) -> None:
        super().__init__(reason)
        self.hint = hint
        self.may_pass = may_pass
        """True if the same server may become fit within seconds, e.g. a standby by its promotion."""


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    """The properties of a server. A managed service may hide `system` and `timeline` from its users (None)."""

    is_standby: bool
    is_read_only: bool
    system: str | None
    timeline: int | None
    has_settings: bool


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A connection that a host has accepted. `host` is None if the driver chose it by its defaults."""

    connection: Dedicated
    host: DatabaseHost | None
    server: DatabaseServer


class ServerRules(Protocol):
    """The rules by which `dial` accepts the servers of one URL."""

    url: str
    passes_settings: bool
    """False once a pooler has refused startup parameters."""
    is_proven: bool
    """True once a test has shown that each connection has its own server session."""

    def judge(self, host: DatabaseHost | None, server: DatabaseServer) -> None:
        """Raise `ServerUnfit` if Horai may not work on this server."""
        ...

    def take(self, answer: ServerAnswer) -> None:
        """Use this connection. Raises `ServerUnfit` if the server is no longer fit."""
        ...


class Route:
    """The hosts of a URL: the one in use, the timeline reached, and the connections that are open."""

    def __init__(self, url: str, environ: Mapping[str, str]) -> None:
        self.url = url
        self.hosts: tuple[DatabaseHost | None, ...] = hosts_of(url, environ) or (None,)
        self.passes_settings = True
        """False once a pooler has refused startup parameters."""
        self.is_proven = False
        """True once a test has shown that each connection has its own server session."""
        self.wants_writable = target_of(url, environ) in ((None, "read-write") if self.is_plural else ("read-write",))
        self._place = f"{','.join(map(str, self.hosts))}/{database_of(url, environ)}"
        is_local = self.hosts == (None,) or all(host is not None and host.is_socket for host in self.hosts)
        self._sightings = None if is_local and not self.is_plural else Sightings(state_dir(environ))
        self._known = self._sightings.claim_revoker(self._place) if self._sightings else None
        self._good: DatabaseHost | None = None
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._open: dict[int, tuple[Dedicated, DatabaseHost | None, asyncio.AbstractEventLoop]] = {}

    @property
    def is_plural(self) -> bool:
        """Return whether the URL has more than one host."""
        return len(self.hosts) > 1

    @property
    def timeline(self) -> int:
        """Return the highest timeline seen so far; 0 before the first."""
        return self._known.timeline if self._known is not None else 0

    @property
    def trusted(self) -> DatabaseHost | None:
        """Return the host in use while a connection to it is open, otherwise None.

        Without an open connection, another host may have been promoted.
        """
        good = self._good
        return good if any(host == good for _, host, _ in list(self._open.values())) else None

    def turn(self) -> asyncio.Lock:
        """Return the lock for calling all hosts: one call per event loop does it for all callers that wait."""
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def doubt(self) -> None:
        """Make the next call try all hosts."""
        self._good = None

    def judge(self, host: DatabaseHost | None, server: DatabaseServer) -> None:
        """Raise `ServerUnfit` if Horai may not work on this server."""
        if self.wants_writable and (server.is_standby or server.is_read_only):
            raise ServerUnfit("is a standby" if server.is_standby else "is read-only", may_pass=True)
        if server.system is None or server.timeline is None:
            return
        known = self._known
        if known is not None and known.system != server.system and self.is_plural:
            raise ServerUnfit(
                f"{host} belongs to the cluster with the system identifier {server.system}; "
                f"this URL led to the cluster {known.system} before",
                self._how_to_accept(),
            )
        if server.timeline < (highest := self._highest_of(server.system)):
            raise ServerUnfit(
                f"{host or 'the server'} is on timeline {server.timeline} of the cluster {server.system}; another server of "
                f"that cluster was promoted to timeline {highest}, and work written here would be lost",
                f"Rebuild the old primary as a standby of the new one. {self._how_to_accept()}",
            )

    def _highest_of(self, system: str) -> int:
        seen = self._known.timeline if self._known is not None and self._known.system == system else 0
        return max(seen, self._sightings.timeline_of(system) if self._sightings else 0)

    def _how_to_accept(self) -> str:
        """Return the hint for an operator who restored or replaced the cluster on purpose."""
        where = self._sightings.file if self._sightings else "the state file"
        return f"If this server is the right one after a restore, delete {where} on this machine and start again."

    def take(self, answer: ServerAnswer) -> None:
        """Use this host from now on: store its timeline, and terminate the connections to all other hosts.

        Raises `ServerUnfit` if another call has found a later timeline meanwhile.
        """
        self.judge(answer.host, answer.server)
        connection, server = answer.connection, answer.server
        if server.system is not None and server.timeline is not None:
            self._note(Sighting(server.system, server.timeline))
        self._open[id(connection)] = (connection, answer.host, asyncio.get_running_loop())
        connection.add_termination_listener(self._ended)
        if self.is_plural and self._good != answer.host:
            self._good = answer.host
            self._cut_all_but(answer.host)

    def _note(self, seen: Sighting) -> None:
        known = self._known
        if known is not None and known.system != seen.system:
            log.warning("the database cluster was replaced", before=known.system, now=seen.system)
        if known is None or known.system != seen.system or known.timeline < seen.timeline:
            self._known = seen
            if self._sightings is not None:
                self._sightings.note(self._place, seen)

    def _ended(self, connection: object) -> None:
        self._open.pop(id(connection), None)

    def _cut_all_but(self, good: DatabaseHost | None) -> None:
        """Terminate the connections to other hosts: one to a silent host would hang until its command times out."""
        others = [(connection, loop) for connection, host, loop in list(self._open.values()) if host != good]
        if others:
            log.warning("the database has moved to another host", host=str(good), cut=len(others))
        for connection, loop in others:
            with suppress(RuntimeError):  # that loop and its connections have ended
                loop.call_soon_threadsafe(connection.terminate)


@cache
def route_of(url: str) -> Route:
    """Return the route of a URL, one per process."""
    return Route(url, os.environ)


os.register_at_fork(after_in_child=route_of.cache_clear)
