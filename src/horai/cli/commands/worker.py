"""`horai worker`: one or several processes that run an application's functions, or one that reloads the code."""

import os
from pathlib import Path
from socket import gethostname
from typing import Annotated

from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import DatabaseUrl, DataDir, setting, words
from horai.cli.lazy import new_app
from horai.cli.node_flags import (
    Application,
    Grace,
    LeaseTtl,
    LogFormat,
    LogLevel,
    MayBeUnnamed,
    Name,
    UntilStdinEnds,
    engine_settings,
    set_log,
)
from horai.cli.references import parse_reference, require_module
from horai.cli.trace_flags import OtlpEndpoint, TraceRatio, with_traces
from horai.core.job import QUEUE
from horai.db.database_location import choose_database

app = new_app()


@app.command()
def worker(
    application: Application,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    concurrency: Annotated[
        int, setting("--concurrency", about="Functions that run at once, per process.", limits=(1, 4000))
    ] = 100,
    queues: Annotated[
        list[str] | None, setting("--queues", about="Run only instances of these queues; repeatable.", metavar="QUEUES")
    ] = None,
    isolated: Annotated[
        int | None,
        setting("--isolated", about='Processes for functions of isolation="process" (one per core).', limits=(1, 256)),
    ] = None,
    processes: Annotated[
        int, setting("--processes", about="Number of processes that share the work.", limits=(1, 64))
    ] = 1,
    ray_address: Annotated[
        str,
        setting(
            "--ray-address",
            about='Ray cluster of functions with executor="ray"; auto: the one that runs on this machine.',
            metavar="ADDRESS",
            env="RAY_ADDRESS",
        ),
    ] = "auto",
    reload: Annotated[bool, setting("--reload", about="Restart when code in this directory changes.")] = False,
    server: Annotated[
        list[str] | None,
        setting(
            "--server",
            about="Work for this server, without the database; repeatable.",
            metavar="URL",
            env="HORAI_WORKER_SERVER",
        ),
    ] = None,
    api_key: Annotated[
        str | None,
        setting(
            "--api-key", about="Key of the role worker; HORAI_API_KEY_FILE may name a file with it.", metavar="KEY"
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None, setting("--api-key-file", about="File that holds the key of --server.", metavar="FILE")
    ] = None,
    name: Name = None,
    lease_ttl: LeaseTtl = "8s",
    grace: Grace = "10s",
    otlp_endpoint: OtlpEndpoint = None,
    trace_ratio: TraceRatio = "1",
    until_stdin_ends: UntilStdinEnds = False,
    may_be_unnamed: MayBeUnnamed = False,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    """Run the functions of an application.

    Declares the jobs of the code and claims their instances, in the database of the URL or that of a running `horai up`. Prints a line when it is ready. On Ctrl-C and SIGTERM it claims nothing new and lets running functions finish.

    With --server it needs no database: the server claims for it, and declares the jobs if the key has the role admin. A key of the role worker runs jobs that exist.
    """
    set_log(log_level, log_format)
    engine, chosen, called = engine_settings(lease_ttl, grace, []), _queues(queues), name or gethostname()
    engine = with_traces(engine, otlp_endpoint, trace_ratio)
    require_module(reference := parse_reference(application))
    if reload and processes > 1:
        raise BadUsage("--reload runs one process, not several.", "Leave out --processes while the code changes.")

    from horai.cli.serve import SLACK, serve  # noqa: PLC0415

    patience = engine.grace + SLACK if until_stdin_ends else None
    if server:
        from horai.cli.remote import remote_service, require_alone  # noqa: PLC0415

        require_alone(database_url, data_dir, is_reloading=reload, processes=processes)
        slots = (concurrency, isolated)
        key = (api_key, api_key_file)
        service = remote_service(reference, words(server), key, slots, chosen, called, engine.grace)
        return serve(service, until_stdin_ends=patience)
    if reload:
        from horai.cli.reload import following  # noqa: PLC0415

        return serve(following(called, engine.grace, Path.cwd()), until_stdin_ends=patience)

    from horai.cli.commands.worker_service import application_on, sharing, working  # noqa: PLC0415
    from horai.sdk.worker import WorkerSettings  # noqa: PLC0415

    is_told = database_url is not None or data_dir is not None
    place = choose_database(database_url, data_dir, os.environ) if is_told else None
    found, url = application_on(place, reference)
    if processes > 1:
        return serve(sharing(called, engine.grace, processes, url), until_stdin_ends=patience)
    own = isolated or os.cpu_count() or 1
    settings = WorkerSettings(concurrency, chosen, own, str(reference), called, engine, may_be_unnamed, ray_address)
    return serve(working(found, settings), until_stdin_ends=patience)


def _queues(given: list[str] | None) -> frozenset[str] | None:
    """Return the names of the queues, or None for all queues."""
    chosen = words(given)
    if wrong := next((name for name in chosen if not QUEUE.fullmatch(name)), None):
        refuse_flag("--queues", f"{wrong[:80]!r} is not the name of a queue")
    return frozenset(chosen) or None
