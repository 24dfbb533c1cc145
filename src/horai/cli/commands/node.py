"""`horai node`: one more node on a database that other nodes may share."""

import os
from dataclasses import replace
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
from horai.cli.errors import BadUsage
from horai.cli.flags import DatabaseUrl, setting, words
from horai.cli.lazy import new_app
from horai.cli.named_urls import BROKERS, SOURCES
from horai.cli.oidc_flags import OidcFlags, with_oidc
from horai.cli.replica_flags import ReadDatabaseUrl, ReadLag, chosen_replica
from horai.cli.trace_flags import OtlpEndpoint, TraceRatio, with_traces
from horai.core.shards import Role
from horai.db.database_location import choose_database

app = new_app()


@app.command()
def node(
    database_url: DatabaseUrl = None,
    read_database_url: ReadDatabaseUrl = None,
    read_lag: ReadLag = "5s",
    name: node_flags.Name = None,
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
    roles: Annotated[
        str, setting("--roles", about="Roles of the node; without `api` it does not listen.", metavar="ROLES")
    ] = "api,scheduler,executor",
    lease_ttl: node_flags.LeaseTtl = "8s",
    grace: node_flags.Grace = "10s",
    keep_history: node_flags.KeepHistory = "14d",
    keep_dead_letters: node_flags.KeepDeadLetters = "90d",
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
    otlp_endpoint: OtlpEndpoint = None,
    trace_ratio: TraceRatio = "1",
    until_stdin_ends: node_flags.UntilStdinEnds = False,
    log_level: node_flags.LogLevel = None,
    log_format: node_flags.LogFormat = None,
) -> None:
    """Run one node of a cluster.

    All nodes are equal: any number of them may work on one database and share its shards. Prints a line when it is ready, and stops cleanly on Ctrl-C and SIGTERM.
    """
    node_flags.set_log(log_level, log_format)
    chosen = node_flags.chosen_roles(roles)
    engine = node_flags.engine_settings(lease_ttl, grace, words(callback_allow))
    engine = node_flags.with_retention(engine, keep_history, keep_dead_letters)
    engine = with_traces(engine, otlp_endpoint, trace_ratio)
    archive = ArchiveFlags(archive_dir, archive_after, keep_archive, archive_cache, archive_cache_size)
    engine = with_archive(engine, archive, os.environ)
    engine = node_flags.with_audit(engine, audit_key_file, audit_heads_file, audit_heads_url)
    engine = node_flags.with_encryption_keys(engine, encryption_key_file, encryption_key_command, os.environ)
    sources = SOURCES.chosen(source, os.environ)
    engine = replace(engine, brokers=BROKERS.chosen(broker, os.environ))
    access = node_flags.server_access(
        (tls_cert, tls_key), words(trusted_proxy), public_url, insecure=insecure, require_key=require_key
    )
    if Role.api in chosen:
        oidc = OidcFlags(oidc_issuer, oidc_client_id, oidc_client_secret_file, oidc_groups_claim, oidc_scopes)
        access = with_oidc(access, oidc, os.environ)
    url = choose_database(database_url, None, os.environ).url
    if url is None:
        raise BadUsage("A node needs a database.", "Give --database-url, or set HORAI_DATABASE_URL.")

    from horai.cli.commands.up_processes import serve_node  # noqa: PLC0415
    from horai.embedded import default_data_dir  # noqa: PLC0415
    from horai.engine_node import NodeSettings  # noqa: PLC0415

    settings = NodeSettings(
        default_data_dir(),
        host,
        port,
        url,
        name or gethostname(),
        engine,
        chosen,
        access=access,
        sources=sources,
        replica=chosen_replica(read_database_url, read_lag, os.environ),
    )
    serve_node(settings, until_stdin_ends=until_stdin_ends)
