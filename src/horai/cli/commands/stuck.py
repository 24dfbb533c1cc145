"""`horai stuck`: runs, queues, workflows."""

from datetime import timedelta

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server
from horai.cli.lazy import new_app
from horai.cli.show import show_list
from horai.cli.views import Document, cause_text, holders_text, instant
from horai.time.durations import format_duration

app = new_app("Stuck work: list stuck runs, clogged queues and blocked workflow runs.")

RUN_COLUMNS = ("INSTANCE", "JOB", "QUEUE", "KEY", "NODE", "STARTED", "USUALLY", "STUCK SINCE")
QUEUE_COLUMNS = ("QUEUE", "SLOTS", "WAITING", "CLOGGED SINCE", "HELD BY INSTANCES")
BLOCKED_COLUMNS = ("RUN", "WORKFLOW", "FIRE TIME", "WAITING", "ROOT CAUSES")


@app.command()
def runs(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List runs that take much longer than their job usually does, longest first.

    A run is stuck after three times the p95 of its job, and a minute; with fewer than 20 successes after three times the longest of
    them, and ten minutes; without a success after 30 minutes.
    """
    answer = client_of(server, api_key).page(path_of("scheduler", "stuck"), {"limit": limit}, everything)
    show_list(answer, as_json, RUN_COLUMNS, _run_row)


@app.command()
def queues(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List clogged queues: stuck runs hold all of their slots."""
    answer = client_of(server, api_key).page(path_of("scheduler", "clogged"), {"limit": limit}, everything)
    show_list(answer, as_json, QUEUE_COLUMNS, _queue_row)


@app.command()
def workflows(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List blocked workflow runs with the dead nodes that block them, newest fire time first."""
    answer = client_of(server, api_key).page(path_of("scheduler", "blocked"), {"limit": limit}, everything)
    show_list(answer, as_json, BLOCKED_COLUMNS, _blocked_row)


def _run_row(run: Document) -> tuple[str, ...]:
    return (
        run["id"],
        run["job"],
        run["queue"],
        run["key"] or "",
        run["node"] or "",
        instant(run["startedAt"]),
        _usually(run),
        instant(run["stuckSince"]),
    )


def _usually(run: Document) -> str:
    """Return how long runs of the job take: their p95, the longest of few successes, or that nothing is known."""
    if run["p95Ms"] is not None:
        return f"p95 {format_duration(timedelta(milliseconds=run['p95Ms']))}"
    if run["longestMs"] is not None:
        return f"longest {format_duration(timedelta(milliseconds=run['longestMs']))}"
    return "unknown"


def _queue_row(queue: Document) -> tuple[str, ...]:
    return (queue["name"], str(queue["slots"]), str(queue["waiting"]), instant(queue["since"]), holders_text(queue))


def _blocked_row(run: Document) -> tuple[str, ...]:
    causes = "; ".join(cause_text(cause) for cause in run["rootCauses"])
    return (run["id"], run["workflow"], instant(run["fireTime"]), str(run["waiting"]), causes)
