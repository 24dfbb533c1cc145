"""Settings and their defaults. The command line decides where a value comes from (flag, environment, file)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from horai.core.bucket import BucketSettings
from horai.core.encryption import KeyEncryptionKey


@dataclass(frozen=True, slots=True)
class BackupSchedule:
    """Backups that Horai makes of its embedded database by itself."""

    data_dir: Path
    directory: Path
    every: timedelta = timedelta(hours=24)
    keep: int = 7


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The pace and the limits of the engine. The defaults suit a laptop and a small server alike."""

    lease: timedelta = timedelta(milliseconds=8000)
    """Time for which a node owns its shards after a renewal. Shorten it for a faster takeover after a crash; lengthen it if
    nodes lose their lease under load.
    """
    claim_batch: int = 1000
    """Most instances per claim. Lower it only to bound the time of one statement."""
    poll_batch: int = 200
    """Most instances that a claim takes from one scan."""
    shared_batch: int = 64
    """Most instances per claim while queues or tenants compete, so that none of them waits behind a long batch."""
    in_flight: int = 4000
    """Most instances that one process has claimed and not settled. Lower it to bound its memory."""
    concurrency: int | None = None
    """Calls that one process runs at once; None for `in_flight`. `horai worker --concurrency` sets it."""
    per_host: int = 64
    """HTTP calls in flight to one host; as many more wait. Raise it for a target that scales."""
    retry_share: float = 0.2
    """Most retries of a host in a minute, as a share of its first tries, per tenant and node. Raise it for a target that
    fails often and by design; retries beyond the share wait.
    """
    retry_free: int = 100
    """Tries of a host in a minute up to which retries are not limited, per tenant and node. It is also how many retries a
    minute has when there are no first tries: raise it if large batches are retried after an outage.
    """
    breaker_share: float = 0.5
    """Share of failed calls (no connection, timeout, 5xx) at which the circuit breaker of a host opens, of at least 20 calls
    in 10 s. A value above 1 turns breakers off.
    """
    settle_batch: int = 1000
    """Most outcomes per settling transaction."""
    settle_wait: timedelta = timedelta(milliseconds=5)
    """Time that the settler waits for more outcomes while it has less than a batch. Zero settles each at once."""
    sweep: timedelta = timedelta(seconds=30)
    """Interval of the sweeps, which find rows that no wake announced. It bounds the delay after a lost wake."""
    straggler: timedelta = timedelta(seconds=1)
    """Interval at which a busy process checks the last `straggler_reach` again, and at which it sweeps while it
    cannot listen.
    """
    straggler_reach: timedelta = timedelta(seconds=10)
    """Time that this check goes back. A transaction that commits later is found by the sweep."""
    rescue: timedelta = timedelta(seconds=2)
    """Interval of the rescuer while rows of a dead node are left."""
    horizon: timedelta = timedelta(seconds=60)
    """Time ahead for which the trigger loads schedules into memory; it loads again after half of it."""
    slot_chunk: int = 10_000
    """Most slots of one schedule per transaction: a schedule with more jobs takes several."""
    grace: timedelta = timedelta(seconds=10)
    """Time that a stop waits for running calls. `--grace` sets it; calls that run longer are retried elsewhere."""
    governor_every: timedelta = timedelta(seconds=10)
    """Interval at which the governor compares the figures of a busy system with its thresholds."""
    figure_window: timedelta = timedelta(minutes=1)
    """Time over which the governor takes the delay and the dead letters; ten times as long for outcomes and rates. Tests
    shorten it.
    """
    alerts_every: timedelta = timedelta(minutes=1)
    """Interval at which alert rules about time (late, waiting, missing) are evaluated. Tests shorten it."""
    alerts_retry: timedelta = timedelta(seconds=10)
    """Time until an alert whose delivery failed is sent again; it doubles up to an hour. Tests shorten it."""
    background_after: timedelta = timedelta(seconds=3)
    """Time after the start of a process at which its background stages (governor, alerts, seals, statistics) begin, so that
    dispatch opens its connections first. Tests shorten it.
    """
    public_url: str | None = None
    """Address of the console, for links in alerts. `--public-url` sets it."""
    partitions_ahead: int = 8
    """Days for which history partitions exist in advance."""
    idempotency_keep: timedelta = timedelta(days=7)
    """Time for which idempotency keys and their responses are kept."""
    history_keep: timedelta = timedelta(days=14)
    """Time for which finished instances, their attempts, events and notes are kept. `--keep-history` sets it."""
    dead_letter_keep: timedelta = timedelta(days=90)
    """Time for which dead letters are kept, with their instances while they are open. `--keep-dead-letters` sets it."""
    audit_keep: timedelta = timedelta(days=180)
    """Time for which the audit log is kept. A month is dropped when all of it is older and sealed."""
    archive_dir: str | None = None
    """Directory or bucket (`s3://bucket/prefix`) to which closed days of history are written as Parquet files; None archives
    nothing. `--archive-dir` sets it; all nodes must see the same files.
    """
    archive_bucket: BucketSettings | None = field(default=None, repr=False)
    """The bucket of `archive_dir`, with the credentials of the environment; None for a directory."""
    archive_after: timedelta = timedelta(days=14)
    """Age of a day of history at which it is archived. `--archive-after` sets it."""
    archive_keep: timedelta | None = None
    """Age of a day at which its files are deleted; None keeps them for ever. `--keep-archive` sets it, to 90d or more."""
    archive_cache: str | None = None
    """Local directory for files that are uploaded to a bucket and read from it; None for `~/.cache/horai/archive`.
    `--archive-cache` sets it.
    """
    archive_cache_bytes: int = 1024**3
    """Bytes of files that one process keeps of a bucket. `--archive-cache-size` sets it; the files of one read must fit."""
    audit_key_file: str | None = None
    """File with the Ed25519 key, in PEM form, that signs the audit log; None seals without a signature. A public key is
    enough for a node that only checks. `--audit-key-file` sets it; `horai up` makes one beside its embedded database.
    """
    audit_heads_file: str | None = None
    """File to which the node that seals the audit log adds a line for each seal. `--audit-heads-file` sets it."""
    audit_heads_url: str | None = field(default=None, repr=False)
    """URL to which the node that seals the audit log posts each new head. `--audit-heads-url` sets it."""
    encryption_keys: tuple[KeyEncryptionKey, ...] = field(default=())
    """Key-encryption keys, from `HORAI_ENCRYPTION_KEY`: the first one wraps new data keys, all of them open. While a key is
    being replaced, there are two.
    """
    encryption_key_command: str | None = field(default=None, repr=False)
    """Command that wrote these keys to its standard output; further processes run it again. `--encryption-key-command` sets it."""
    encryption_key_file: str | None = None
    """File with these keys in base64, one per line. `--encryption-key-file` sets it; `horai up` makes one beside its embedded
    database. Without a key, secrets are stored as they are and named secrets are refused.
    """
    backups: BackupSchedule | None = None
    """Schedule of backups of the embedded database. `--backup-dir`, `--backup-every` and `--backup-keep` set it; None makes none."""
    otlp_endpoint: str | None = None
    """URL of the collector that gets the traces, with the path `/v1/traces`; None turns traces off. `--otlp-endpoint` sets it."""
    trace_ratio: float = 1.0
    """Share of the traces that are recorded, 0 to 1. Lower it for a busy system; `--trace-ratio` sets it."""
    callback_allow: tuple[IPv4Network | IPv6Network, ...] = field(default=())
    """Private networks that callbacks may reach; public addresses are always allowed."""
    brokers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """URLs of the message brokers that sinks and jobs may send to, by the names that the operator gave them. `--broker` sets it."""

    @property
    def idle_in_transaction(self) -> timedelta:
        """Return how long a silent node may keep rows locked: at most as long as its lease lasts from its last beat."""
        return self.lease * 2 / 3


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """Standbys that answer lists and reads of the console. Everything else uses the primary."""

    url: str = field(repr=False)
    """Database URL of the standbys; several hosts are used in the order of the URL. `--read-database-url` sets it."""
    lag: timedelta = timedelta(seconds=5)
    """Longest lag with which a standby is used. `--read-lag` sets it."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of the HTTP server that apply before a route is reached. Sizes are in bytes.

    A body may take `body_time` and one second more for every `body_rate` bytes received. `connections` is also limited
    to half of the file descriptors of the process, `connections_per_address` to three quarters of the connections. The
    first `body_free` bytes of each body do not count towards `bodies_in_memory`: small requests are served while large
    bodies wait.
    `workers` limits the sessions of remote workers, which are also limited to a quarter of the file descriptors;
    `worker_credits` is per session, and `worker_message` is the size of one message.
    """

    header_bytes: int = 64 * 1024
    header_fields: int = 100
    header_time: timedelta = timedelta(seconds=10)
    body_time: timedelta = timedelta(seconds=30)
    body_rate: int = 128 * 1024
    body_free: int = 64 * 1024
    bodies_in_memory: int = 64 * 1024 * 1024
    connections: int = 1000
    connections_per_address: int = 750
    readers: int = 400
    readers_per_tenant: int = 100
    readers_per_address: int = 50
    workers: int = 4000
    workers_per_key: int = 4000
    worker_credits: int = 1000
    worker_message: int = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The OpenID Connect provider that signs users in to the console. The secret is not in its repr."""

    issuer: str
    """Address of the provider, exactly as its discovery document and its tokens name it."""
    client_id: str
    """Id of this server at the provider."""
    client_secret: str = field(repr=False)
    """Secret of this server at the provider, from a file or the environment."""
    groups_claim: str = "groups"
    """Claim of the ID token that lists the groups of the user."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    """Scopes to ask for. Some providers name the groups only if a scope of theirs is among them."""
    timeout: timedelta = timedelta(seconds=10)
    """Time that each answer of the provider may take."""


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """The way of clients to the HTTP server.

    A server that listens beyond loopback asks for keys, and speaks TLS or is behind a proxy that does; `is_insecure`
    gives up the second condition. Clients name the server by an address or by the host of `public_url`.
    `X-Forwarded-For` and `X-Forwarded-Proto` count only if a proxy of `trusted_proxies` sends them.
    """

    tls_cert: Path | None = None
    tls_key: Path | None = None
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    public_url: str | None = None
    is_insecure: bool = False
    requires_key: bool = False
    oidc: OidcSettings | None = None

    @property
    def has_tls(self) -> bool:
        """Return whether the server itself speaks TLS."""
        return self.tls_cert is not None
