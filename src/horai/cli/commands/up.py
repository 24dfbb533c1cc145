"""`horai up`: everything in one process, or with more processes for scheduling, dispatch and an application."""

import os
from dataclasses import replace
from ipaddress import ip_address
from socket import gethostname
from typing import Annotated

from horai.cli import node_flags
from horai.cli.archive_flags import (
    ArchiveAfter,
    ArchiveCache,
    ArchiveCacheSize,
    ArchiveDir,
    ArchiveFlags,
    KeepArchive,
    with_archive,
)
from horai.cli.backup_flags import BackupDir, BackupEvery, BackupKeep, with_backups
from horai.cli.flags import DatabaseUrl, DataDir, setting, words
from horai.cli.lazy import new_app
from horai.cli.named_urls import BROKERS, SOURCES
from horai.cli.oidc_flags import OidcFlags, with_oidc
from horai.cli.references import parse_reference, require_module
from horai.cli.replica_flags import ReadDatabaseUrl, ReadLag, chosen_replica
from horai.cli.trace_flags import OtlpEndpoint, TraceRatio, with_traces
from horai.db.database_location import choose_database

app = new_app()

LOOPBACK = ("127.0.0.0/8", "::1/128")


@app.command()
def up(
    port: node_flags.Port = 8470,
    host: node_flags.Host = "127.0.0.1",
    tls_cert: node_flags.TlsCert = None,
    tls_key: node_flags.TlsKey = None,
    trusted_proxy: node_flags.TrustedProxy = None,
    public_url: node_flags.PublicUrl = None,
    insecure: node_flags.Insecure = False,
    require_key: node_flags.RequireKey = False,
    oidc_issuer: node_flags.OidcIssuer = None,
    oidc_client_id: node_flags.OidcClientId = None,
    oidc_client_secret_file: node_flags.OidcClientSecretFile = None,
    oidc_groups_claim: node_flags.OidcGroupsClaim = "groups",
    oidc_scopes: node_flags.OidcScopes = "openid profile email",
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    read_database_url: ReadDatabaseUrl = None,
    read_lag: ReadLag = "5s",
    callback_allow: node_flags.CallbackAllow = None,
    source: node_flags.Sources = None,
    broker: node_flags.Brokers = None,
    audit_key_file: node_flags.AuditKeyFile = None,
    audit_heads_file: node_flags.AuditHeadsFile = None,
    audit_heads_url: node_flags.AuditHeadsUrl = None,
    encryption_key_file: node_flags.EncryptionKeyFile = None,
    encryption_key_command: node_flags.EncryptionKeyCommand = None,
    archive_dir: ArchiveDir = None,
    archive_after: ArchiveAfter = "14d",
    keep_archive: KeepArchive = None,
    archive_cache: ArchiveCache = None,
    archive_cache_size: ArchiveCacheSize = "1GB",
    backup_dir: BackupDir = None,
    backup_every: BackupEvery = None,
    backup_keep: BackupKeep = None,
    otlp_endpoint: OtlpEndpoint = None,
    trace_ratio: TraceRatio = "1",
    lease_ttl: node_flags.LeaseTtl = "8s",
    grace: node_flags.Grace = "10s",
    keep_history: node_flags.KeepHistory = "14d",
    keep_dead_letters: node_flags.KeepDeadLetters = "90d",
    name: node_flags.Name = None,
    processes: Annotated[
        int,
        setting(
            "--processes", about="Number of processes that share the work: this one and more nodes.", limits=(1, 64)
        ),
    ] = 1,
    application: Annotated[
        str | None,
        setting(
            "--app",
            about="Also run this application's functions, in the same number of processes.",
            metavar="MODULE:APP",
        ),
    ] = None,
    log_level: node_flags.LogLevel = None,
    log_format: node_flags.LogFormat = None,
) -> None:
    """Run everything in one process.

    Runs the embedded database (unless there is a URL), migrations, API, scheduler and HTTP executor; an application's functions run in separate processes. Prints the console's address when it is ready, and stops cleanly on Ctrl-C and SIGTERM.
    """
    node_flags.set_log(log_level, log_format)
    place = choose_database(database_url, data_dir, os.environ)
    engine = node_flags.engine_settings(
        lease_ttl, grace, [*words(callback_allow), *(LOOPBACK if _is_loopback(host) else ())]
    )
    sources = SOURCES.chosen(source, os.environ)
    engine = replace(engine, brokers=BROKERS.chosen(broker, os.environ))
    engine = node_flags.with_retention(engine, keep_history, keep_dead_letters)
    engine = with_traces(engine, otlp_endpoint, trace_ratio)
    archive = ArchiveFlags(archive_dir, archive_after, keep_archive, archive_cache, archive_cache_size)
    engine = with_archive(engine, archive, os.environ)
    access = node_flags.server_access(
        (tls_cert, tls_key), words(trusted_proxy), public_url, insecure=insecure, require_key=require_key
    )
    oidc = OidcFlags(oidc_issuer, oidc_client_id, oidc_client_secret_file, oidc_groups_claim, oidc_scopes)
    access = with_oidc(access, oidc, os.environ)

    from horai.cli.commands.up_processes import further_nodes, serve_node, workers  # noqa: PLC0415
    from horai.embedded import default_data_dir  # noqa: PLC0415
    from horai.engine_node import NodeSettings  # noqa: PLC0415
    from horai.features.audit.signing import key_file_in  # noqa: PLC0415
    from horai.operations.keyring import encryption_key_in  # noqa: PLC0415

    data_dir = place.data_dir or default_data_dir()
    key_file = audit_key_file or (key_file_in(data_dir) if place.url is None else None)
    engine = node_flags.with_audit(engine, key_file, audit_heads_file, audit_heads_url)
    engine = node_flags.with_encryption_keys(engine, encryption_key_file, encryption_key_command, os.environ)
    if place.url is None and not engine.encryption_keys and engine.encryption_key_file is None:
        engine = replace(engine, encryption_key_file=encryption_key_in(data_dir.absolute()))
    engine = with_backups(engine, place, data_dir, (backup_dir, backup_every, backup_keep))
    called = name or gethostname()
    replica = chosen_replica(read_database_url, read_lag, os.environ)
    settings = NodeSettings(
        data_dir.absolute(), host, port, place.url, called, engine, access=access, sources=sources, replica=replica
    )
    children = list(further_nodes(settings, processes - 1))
    if application is not None:
        require_module(reference := parse_reference(application))
        children += workers(str(reference), settings, processes)
    serve_node(settings, children)


def _is_loopback(host: str) -> bool:
    """Return whether the host is loopback: then no other machine reaches the API, and callbacks may reach loopback."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
