"""Connections to the right server of a database URL.

A URL may name several hosts. `dial` connects to all of them at once, with `HOST_LIMIT` seconds for each, and takes the
writable host with the highest timeline. While a connection to a host is open, later calls try that host first. `dial`
tries a standby again until its timeout, because it may be promoted meanwhile.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import asyncpg

from horai.db.catalog import sql
from horai.db.known_types import InformedConnection
from horai.db.route import DatabaseServer, Dedicated, Route, ServerAnswer, ServerRules, ServerUnfit, route_of
from horai.db.sessions import MIXED_UP, address_of, require_own_session, shared
from horai.db.urls import DatabaseHost

HOST_LIMIT = 2.0
"""Seconds that each of several hosts has to answer."""
ASK_AGAIN = 0.2
"""Seconds before the next try of a host that was not fit."""
USER_TIMEOUT_MS, KEEPALIVE_IDLE, KEEPALIVE_EVERY, KEEPALIVE_PROBES = 5_000, 2, 1, 3
"""TCP drops a peer that has acknowledged nothing for `USER_TIMEOUT_MS`; it probes idle connections after 2 seconds."""
MARK = "horai.dialled"
"""A startup parameter that only a real session has: poolers refuse or drop it."""
PASSED_BY_POOLERS = ("application_name", "timezone")

FAILURES = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InternalClientError, asyncpg.InterfaceError)
"""The errors of a call to a host that cannot be used."""
_RETICENT = (asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedFunctionError, asyncpg.FeatureNotSupportedError)


async def dial(url: str, *, timeout: float, server_settings: dict[str, str], **options: Any) -> Dedicated:
    """Open a connection with these settings to the server that Horai may work on.

    Raises `ServerUnfit` when a server answers and may not be used, `TimeoutError` or an error of the driver otherwise.
    """
    route = route_of(url)
    options |= {"server_settings": server_settings}
    end = asyncio.get_running_loop().time() + timeout
    async with asyncio.timeout_at(end):
        if not route.is_plural:
            return await settled(route, await call(route, route.hosts[0], timeout, options), server_settings)
        if (connection := await _from_trusted(route, options)) is not None:
            return connection
        async with route.turn():
            # The call before this one may have found the host.
            if (connection := await _from_trusted(route, options)) is not None:
                return connection
            return await settled(route, await _best(route, end, options), server_settings)


async def _from_trusted(route: Route, options: dict[str, Any]) -> "Dedicated | None":
    """Return a connection to the host in use; None when there is no such host or it does not answer."""
    if (trusted := route.trusted) is None:
        return None
    try:
        return await settled(route, await call(route, trusted, HOST_LIMIT, options), options["server_settings"])
    except FAILURES:
        route.doubt()
        return None


async def settled(route: ServerRules, answer: ServerAnswer, wanted: dict[str, str]) -> Dedicated:
    """Apply the settings to the connection of an answer, register it with the route, and return it."""
    try:
        await require_own_session(route, answer)
        if not answer.server.has_settings:
            names, values = [*wanted, MARK], [*wanted.values(), "on"]
            await answer.connection.execute(sql("apply_settings"), names, values)
        route.take(answer)
    except BaseException:
        answer.connection.terminate()
        raise
    return answer.connection


async def _best(route: Route, end: float, options: dict[str, Any]) -> ServerAnswer:
    """Call all hosts at once. A timeline above all earlier ones wins at once: only a promotion creates one."""
    told: asyncio.Queue[tuple[DatabaseHost | None, ServerAnswer | Exception]] = asyncio.Queue()
    asking = [asyncio.create_task(_ask(route, host, end, options, told)) for host in route.hosts]
    answers: list[ServerAnswer] = []
    reasons: dict[DatabaseHost | None, Exception] = {}
    chosen: ServerAnswer | None = None
    try:
        with suppress(TimeoutError):  # the answers so far decide
            while not _is_decided(route, answers, reasons):
                async with asyncio.timeout_at(end - ASK_AGAIN):
                    host, outcome = await told.get()
                if isinstance(outcome, ServerAnswer):
                    answers.append(outcome)
                    reasons.pop(host, None)
                else:
                    reasons[host] = outcome
        chosen = _highest(route, answers, reasons)
        return chosen
    finally:
        await _ended(asking)
        answers += [outcome for _, outcome in _drained(told) if isinstance(outcome, ServerAnswer)]
        for answer in answers:
            if answer is not chosen:
                answer.connection.terminate()


def _highest(route: Route, answers: list[ServerAnswer], reasons: dict[DatabaseHost | None, Exception]) -> ServerAnswer:
    if not answers:
        raise _none_fit(route, reasons)
    systems = sorted({answer.server.system for answer in answers if answer.server.system is not None})
    if len(systems) > 1:
        raise ServerUnfit(
            f"the hosts belong to different clusters, with the system identifiers {' and '.join(systems)}",
            "Name only the hosts of one cluster in the database URL.",
        )
    return max(answers, key=lambda answer: answer.server.timeline or 0)


def _is_decided(route: Route, answers: list[ServerAnswer], reasons: dict[DatabaseHost | None, Exception]) -> bool:
    if 0 < route.timeline < max((answer.server.timeline or 0 for answer in answers), default=0):
        return True
    if len(answers) + len(reasons) < len(route.hosts):
        return False
    return bool(answers) or not any(map(_may_pass, reasons.values()))


def _may_pass(reason: Exception) -> bool:
    if isinstance(reason, ServerUnfit):
        return reason.may_pass
    return isinstance(reason, TimeoutError | asyncpg.CannotConnectNowError | asyncpg.TargetServerAttributeNotMatched)


async def _ask(
    route: Route,
    host: DatabaseHost | None,
    end: float,
    options: dict[str, Any],
    told: "asyncio.Queue[tuple[DatabaseHost | None, ServerAnswer | Exception]]",
) -> None:
    """Call a host until it is fit or until `end`, and put the outcome of each call into the queue."""
    loop = asyncio.get_running_loop()
    while (left := end - loop.time()) > 0:
        try:
            outcome = await call(route, host, min(HOST_LIMIT, left), options)
        except Exception as error:
            told.put_nowait((host, error))
        else:
            told.put_nowait((host, outcome))
            return
        await asyncio.sleep(ASK_AGAIN)


async def _ended(tasks: list["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _drained(told: "asyncio.Queue[Any]") -> list[Any]:
    return [told.get_nowait() for _ in range(told.qsize())]


def _none_fit(route: Route, reasons: dict[DatabaseHost | None, Exception]) -> ServerUnfit:
    """Return one error with the reason of each host, and the first hint."""
    said = [f"{host}: {_in_words(reasons[host]) if host in reasons else 'no answer'}" for host in route.hosts]
    hints = [reason.hint for reason in reasons.values() if isinstance(reason, ServerUnfit) and reason.hint]
    unfit = "no host of the database URL can be written to: " + "; ".join(said)
    return ServerUnfit(unfit, hints[0] if hints else "", may_pass=any(map(_may_pass, reasons.values())))


def _in_words(reason: Exception) -> str:
    return f"no answer within {HOST_LIMIT:g} s" if isinstance(reason, TimeoutError) else str(reason)


async def call(route: ServerRules, host: DatabaseHost | None, limit: float, options: dict[str, Any]) -> ServerAnswer:
    """Connect to one host and raise `ServerUnfit` if Horai may not work on it."""
    async with asyncio.timeout(limit):
        connection = await _connect(route, host, options)
        try:
            server = await _describe(connection)
            route.judge(host, server)
            _survive_silence(connection)
        except BaseException:
            connection.terminate()
            raise
    return ServerAnswer(connection, host, server)


async def _connect(route: ServerRules, host: DatabaseHost | None, options: dict[str, Any]) -> Dedicated:
    """Connect with startup parameters. If a pooler refuses them, send only those that poolers pass on."""
    wanted: dict[str, str] = options["server_settings"]
    passed: dict[str, Any] = {"connection_class": InformedConnection, **options, **address_of(host)}
    passed["server_settings"] = {**wanted, MARK: "on"}
    if route.passes_settings:
        try:
            return await asyncpg.connect(route.url, **passed)
        except asyncpg.ProtocolViolationError as error:
            if "startup parameter" not in str(error):
                raise
            route.passes_settings = False
    passed["server_settings"] = {name: value for name, value in wanted.items() if name in PASSED_BY_POOLERS}
    return await asyncpg.connect(route.url, **passed)


async def _describe(connection: Dedicated) -> DatabaseServer:
    try:
        row = await connection.fetchrow(sql("describe_server"))
    except MIXED_UP as error:
        raise shared() from error
    except _RETICENT:
        row = await connection.fetchrow(sql("describe_reticent_server"))
    assert row is not None  # noqa: S101 - a select without FROM has one row
    timeline = int(row["timeline"], 16) if row["timeline"] else None
    return DatabaseServer(row["is_standby"], row["is_read_only"], row["system"], timeline, row["has_settings"])


def _survive_silence(connection: Dedicated) -> None:
    """Make the kernel drop a silent peer within seconds instead of after the default of many minutes."""
    transport = connection._transport  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - asyncpg has no option for it
    opened = transport.get_extra_info("socket")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if opened is None or opened.family == socket.AF_UNIX:
        return
    with socket.socket(fileno=socket.dup(opened.fileno())) as shared:  # pyright: ignore[reportUnknownArgumentType] - uvloop's own object sets no options
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_USER_TIMEOUT", USER_TIMEOUT_MS),
            ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
            ("TCP_KEEPALIVE", KEEPALIVE_IDLE),  # the macOS name
            ("TCP_KEEPINTVL", KEEPALIVE_EVERY),
            ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ):
            if (number := getattr(socket, option, None)) is not None:
                shared.setsockopt(socket.IPPROTO_TCP, number, value)
