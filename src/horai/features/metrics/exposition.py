"""The metrics as families of Prometheus, made of a snapshot of this process and of the cluster.

Names that begin with `horai_` count this process: add them up over all processes. The four names of the thresholds
(`trigger_delay_p95`, `run_success_rate_10m`, `retry_backlog`, `dlq_growth_rate`), `desired_dispatchers` and the families
of the cluster are the same on every node: take the maximum. No label holds an id or a name that users choose.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from horai.core.controls import Controls, GovernorMode
from horai.core.dispatchers import DispatcherFigures, desired_dispatchers
from horai.core.health import EngineHealth, Reading
from horai.core.job import Priority
from horai.core.run_totals import SECONDS, Histogram
from horai.db.archives import ArchiveFigures
from horai.db.backups import BackupStatus

OUTCOMES = ("SUCCESS", "FAIL", "DEAD", "LOST", "RELEASED")


@dataclass(frozen=True, slots=True)
class Depth:
    """The due instances of one priority that wait, and the time of the oldest in seconds."""

    priority: Priority
    waiting: int
    oldest: float


SINK_STATUSES = ("ACTIVE", "PARKED", "PAUSED")


@dataclass(frozen=True, slots=True)
class SinkFigures:
    """The sinks of one status, and the age in seconds of the oldest event that one of them has not got."""

    status: str
    sinks: int = 0
    lag: float = 0.0


@dataclass(frozen=True, slots=True)
class RecoveryFigures:
    """The last recovery: its incident, and its counts."""

    incident_id: int
    resumed: int
    replayed: int
    dlq_moved: int


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """Figures of the whole cluster, read from the database for one request."""

    reading: Reading
    controls: Controls
    depths: tuple[Depth, ...]
    nodes: int
    dispatchers: DispatcherFigures
    oldest_xmin: int
    round_trip: float
    sinks: tuple[SinkFigures, ...] = ()
    recovery: RecoveryFigures | None = None
    backup: BackupStatus | None = None
    archive: ArchiveFigures = field(default_factory=ArchiveFigures)


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """The reads that a standby could have answered, by the server that did, and the lag of the standby in seconds."""

    answered: Mapping[str, int]
    lag: float | None
    """None while no standby is used."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of one response. `now` is the monotonic time; without a cluster, only this process is shown."""

    health: EngineHealth
    cluster: ClusterFigures | None
    now: float
    version: str
    spans: tuple[int, int] = (0, 0)
    """Spans that were exported and dropped."""
    reads: ReplicaFigures | None = None
    """None if this process has no read replica."""


class _Families(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield from _of_process(self._snapshot)
        if self._snapshot.cluster is not None:
            yield from _of_cluster(self._snapshot.cluster)


def text_of(snapshot: Snapshot) -> bytes:
    """Return the metrics in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Families(snapshot))
    return generate_latest(registry)


def _of_replicas(reads: ReplicaFigures) -> Iterator[Metric]:
    answered = CounterMetricFamily(
        "horai_replica_reads", "Reads that a standby may answer, by the server that answered.", labels=["server"]
    )
    for server, count in reads.answered.items():
        answered.add_metric([server], count)
    yield answered
    if reads.lag is not None:
        yield GaugeMetricFamily(
            "horai_read_replica_lag_seconds", "Lag of the standby that answered the last read.", reads.lag
        )


def _of_process(snapshot: Snapshot) -> Iterator[Metric]:
    health, totals = snapshot.health, snapshot.health.totals
    yield _histogram(
        "horai_trigger_delay_seconds", "Time from the execute time of an attempt to its start.", totals.delays
    )
    yield _histogram(
        "horai_limit_wait_seconds",
        "Time for which a limit, a pause or a mode kept an instance waiting.",
        totals.limit_waits,
    )
    yield _histogram(
        "horai_run_duration_seconds", "Time from the claim of an attempt to its outcome.", totals.durations
    )
    attempts = CounterMetricFamily("horai_attempts", "Attempts that have ended, by outcome.", labels=["outcome"])
    for outcome in OUTCOMES:
        attempts.add_metric([outcome], totals.outcomes[outcome])
    yield attempts
    gauges = {
        "horai_in_flight": ("Instances that this process has claimed and not settled.", health.in_flight),
        "horai_slots": ("Instances that this process may run at once.", health.slots),
        "horai_unsettled": ("Outcomes that wait to be written.", health.unsettled),
        "horai_lease_age_seconds": ("Time since the lease of this node was renewed.", health.lease_age(snapshot.now)),
        "horai_lease_held": ("1 if this node may claim.", int(health.holds_lease(snapshot.now))),
        "horai_held_hosts": ("Hosts whose calls wait in this process.", len(health.held_hosts())),
    }
    yield from _gauges(gauges)
    yield CounterMetricFamily(
        "horai_late_results", "Outcomes that came after their claim had ended.", health.late_results
    )
    yield CounterMetricFamily("horai_released_claims", "Claims that were released unused.", health.released_claims)
    exported, dropped = snapshot.spans
    yield CounterMetricFamily("horai_trace_spans_exported", "Spans that the collector has taken.", exported)
    yield CounterMetricFamily(
        "horai_trace_spans_dropped", "Spans that were lost: the queue was full, or the collector was away.", dropped
    )
    if snapshot.reads is not None:
        yield from _of_replicas(snapshot.reads)
    loops = GaugeMetricFamily(
        "horai_loop_age_seconds", "Time since the last success of a loop of this process.", labels=["loop"]
    )
    overdue = GaugeMetricFamily(
        "horai_loop_overdue",
        "1 if a loop of this process has not succeeded for longer than it promised.",
        labels=["loop"],
    )
    late = health.overdue(snapshot.now)
    for loop, at in tuple(health.beats.items()):
        loops.add_metric([loop], max(snapshot.now - at, 0.0))
        overdue.add_metric([loop], int(loop in late))
    yield from (loops, overdue)
    build = GaugeMetricFamily("horai_build_info", "The version of this process.", labels=["version"])
    build.add_metric([snapshot.version], 1)
    yield build


def _of_cluster(cluster: ClusterFigures) -> Iterator[Metric]:
    reading, controls = cluster.reading, cluster.controls
    gauges = {
        "trigger_delay_p95": ("Delay of starts in ms, p95 of the last 5 minutes.", reading.delay_quantile(0.95) * 1000),
        "run_success_rate_10m": (
            "Share of successful attempts of the last 10 minutes, 0 to 1.",
            reading.success_rate(),
        ),
        "retry_backlog": ("Instances that wait for a retry.", reading.retry_backlog),
        "dlq_growth_rate": ("Dead letters that were added in the last minute.", reading.dead_last_minute),
        "horai_nodes": ("Live processes of the cluster.", cluster.nodes),
        "desired_dispatchers": (
            "Nodes with the role executor that the cluster needs, for autoscalers.",
            desired_dispatchers(cluster.dispatchers, needs_scale=controls.needs_scale),
        ),
        "horai_scale_requested": ("1 if the governor requests more dispatchers.", int(controls.needs_scale)),
        "horai_dispatch_paused": ("1 if an operator has paused all dispatch.", int(controls.is_paused)),
        "horai_oldest_xmin_transactions": ("Transactions since the oldest open one began.", cluster.oldest_xmin),
        "horai_database_round_trip_seconds": ("Time of one short statement.", cluster.round_trip),
    }
    if (last := cluster.recovery) is not None:
        gauges |= {
            "horai_recovery_incident": ("Id of the incident of the last recovery.", last.incident_id),
            "horai_recovery_resumed_shards": ("Shards without a live owner that it freed.", last.resumed),
            "horai_recovery_replayed_events": ("Events that sinks got again.", last.replayed),
            "horai_recovery_requeued_dead_letters": ("Dead letters that it ran again.", last.dlq_moved),
        }
    backup = cluster.backup
    has_failed = backup is not None and backup.failed_at is not None
    gauges["horai_backup_failed"] = ("1 if the last backup failed.", int(has_failed))
    if backup is not None and backup.age is not None:
        gauges["horai_backup_age_seconds"] = ("Time since the last complete backup began.", backup.age)
    gauges |= {
        "horai_archive_dates": ("Days of history in the archive.", cluster.archive.days),
        "horai_archive_bytes": ("Bytes of their files when they were written.", cluster.archive.bytes),
        "horai_archive_failed_dates": (
            "Days of tables whose last try to archive them failed.",
            cluster.archive.failing,
        ),
    }
    yield from _gauges(gauges)
    modes = GaugeMetricFamily("horai_mode", "1 if the governor is in the mode.", labels=["mode"])
    for mode in GovernorMode:
        modes.add_metric([mode.value], int(mode in (controls.modes or (GovernorMode.NORMAL,))))
    yield modes
    waiting = GaugeMetricFamily("horai_queue_depth", "Due instances that wait, at most 100,000.", labels=["priority"])
    oldest = GaugeMetricFamily(
        "horai_queue_oldest_wait_seconds", "Time for which the oldest of them has been due.", labels=["priority"]
    )
    known = {depth.priority: depth for depth in cluster.depths}
    for priority in Priority:
        depth = known.get(priority, Depth(priority, 0, 0.0))
        waiting.add_metric([priority.name], depth.waiting)
        oldest.add_metric([priority.name], depth.oldest)
    yield from (waiting, oldest, *_of_sinks(cluster.sinks))


def _of_sinks(figures: Sequence[SinkFigures]) -> Iterator[Metric]:
    sinks = GaugeMetricFamily("horai_sinks", "Sinks of all tenants.", labels=["status"])
    lag = GaugeMetricFamily(
        "horai_outbox_lag_seconds", "Age of the oldest event that a sink has not got.", labels=["status"]
    )
    known = {each.status: each for each in figures}
    for status in SINK_STATUSES:
        each = known.get(status, SinkFigures(status))
        sinks.add_metric([status], each.sinks)
        lag.add_metric([status], each.lag)
    yield from (sinks, lag)


def _gauges(gauges: Mapping[str, tuple[str, float]]) -> Iterator[Metric]:
    for name, (about, value) in gauges.items():
        yield GaugeMetricFamily(name, about, value)


def _histogram(name: str, about: str, histogram: Histogram) -> Metric:
    bounds = [*map(str, SECONDS), "+Inf"]
    buckets = list(zip(bounds, accumulate(histogram.counts), strict=True))
    return HistogramMetricFamily(name, about, buckets=buckets, sum_value=histogram.total)
