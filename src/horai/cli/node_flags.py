"""The flags of the commands that run a node, and the settings made from them."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from horai.cli.errors import refuse_flag
from horai.cli.flags import duration, setting, words
from horai.core.addresses import Network, parse_networks
from horai.core.settings import EngineSettings, ServerAccess
from horai.core.shards import EVERY_ROLE, Role, roles_of


class Level(StrEnum):
    """The levels of log lines."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class Format(StrEnum):
    """The formats of log lines."""

    text = "text"
    json = "json"


Port = Annotated[int, setting("--port", about="Port to listen on; 0 takes any free one.", limits=(0, 65535))]
Host = Annotated[str, setting("--host", about="Address to listen on.", metavar="ADDRESS")]
Name = Annotated[str | None, setting("--name", about="Name of this node (the host name).", metavar="NAME")]
CallbackAllow = Annotated[
    list[str] | None,
    setting("--callback-allow", about="Private network that callbacks may reach; repeatable.", metavar="CIDR"),
]
# typer does not read the variables: `NamedUrls.chosen` reads one for each name.
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        help="Database that reconcilers may read by this name; repeatable. [env var: HORAI_SOURCE_<NAME>, HORAI_SOURCE_<NAME>_FILE]",
        metavar="NAME=URL",
    ),
]
Brokers = Annotated[
    list[str] | None,
    typer.Option(
        "--broker",
        help="NATS or Kafka that sinks and jobs may send to by this name; repeatable. [env var: HORAI_BROKER_<NAME>, HORAI_BROKER_<NAME>_FILE]",
        metavar="NAME=URL",
    ),
]
TlsCert = Annotated[
    Path | None, setting("--tls-cert", about="Certificate chain of the server, as a PEM file.", metavar="FILE")
]
TlsKey = Annotated[Path | None, setting("--tls-key", about="Private key of the certificate.", metavar="FILE")]
TrustedProxy = Annotated[
    list[str] | None,
    setting("--trusted-proxy", about="Proxy that ends TLS; its X-Forwarded-For counts; repeatable.", metavar="CIDR"),
]
PublicUrl = Annotated[
    str | None, setting("--public-url", about="Address of the server as browsers see it.", metavar="URL")
]
Insecure = Annotated[
    bool, setting("--insecure", about="Listen beyond loopback without TLS; keys then travel in clear text.")
]
RequireKey = Annotated[
    bool, setting("--require-key", about="Serve no request without a key; the first start prints the first keys.")
]
OidcIssuer = Annotated[
    str | None,
    setting("--oidc-issuer", about="OpenID Connect provider that signs users in to the console.", metavar="URL"),
]
OidcClientId = Annotated[
    str | None, setting("--oidc-client-id", about="Id of this server at the provider.", metavar="ID")
]
# typer does not read the variable of the secret: no flag takes it, because `ps` shows flags to every user.
OidcClientSecretFile = Annotated[
    Path | None,
    setting(
        "--oidc-client-secret-file",
        about="File with the secret of this server at the provider; or HORAI_OIDC_CLIENT_SECRET.",
        metavar="FILE",
    ),
]
OidcGroupsClaim = Annotated[
    str, setting("--oidc-groups-claim", about="Claim of the ID token that lists the groups of a user.", metavar="CLAIM")
]
OidcScopes = Annotated[str, setting("--oidc-scopes", about="Scopes to ask the provider for.", metavar="SCOPES")]
LeaseTtl = Annotated[
    str,
    setting("--lease-ttl", about="Time after which other nodes take the work of a silent node.", metavar="DURATION"),
]
Grace = Annotated[
    str, setting("--grace", about="Time that running calls get to finish when the process stops.", metavar="DURATION")
]
KeepHistory = Annotated[
    str,
    setting("--keep-history", about="Time for which finished instances are kept; at least 2d.", metavar="DURATION"),
]
KeepDeadLetters = Annotated[
    str, setting("--keep-dead-letters", about="Time for which dead letters are kept.", metavar="DURATION")
]
LogLevel = Annotated[Level | None, setting("--log-level", about="Lowest level that is logged (info).")]
LogFormat = Annotated[Format | None, setting("--log-format", about="Format of log lines on stderr (text).")]
AuditKeyFile = Annotated[
    str | None,
    setting(
        "--audit-key-file", about="Ed25519 key (PEM) that signs the audit log; the same on every node.", metavar="FILE"
    ),
]
AuditHeadsFile = Annotated[
    str | None, setting("--audit-heads-file", about="File to add each head of the audit log to.", metavar="FILE")
]
AuditHeadsUrl = Annotated[
    str | None, setting("--audit-heads-url", about="URL to post each head of the audit log to.", metavar="URL")
]
EncryptionKeyFile = Annotated[
    str | None,
    setting(
        "--encryption-key-file",
        about="Keys (base64, the newest first) that encrypt secrets; HORAI_ENCRYPTION_KEY may hold them instead.",
        metavar="FILE",
    ),
]
EncryptionKeyCommand = Annotated[
    str | None,
    setting(
        "--encryption-key-command",
        about="Command that writes these keys to its standard output within 30 s, run without a shell.",
        metavar="COMMAND",
    ),
]
UntilStdinEnds = Annotated[
    bool,
    setting("--until-stdin-ends", about="Also stop when stdin ends, that is when the process at its other end exits."),
]
MayBeUnnamed = Annotated[
    bool, typer.Option("--may-be-unnamed", hidden=True, help="Set by `horai up --app` for its embedded database.")
]
Application = Annotated[
    str,
    typer.Argument(help="The application, such as shop.jobs:app; shop.jobs alone means that.", metavar="MODULE:APP"),
]


ENCRYPTION_KEY = "HORAI_ENCRYPTION_KEY"


def set_log(level: Level | None, form: Format | None) -> None:
    """Set the log's level and format in the environment, which further processes inherit."""
    for name, value in (("HORAI_LOG_LEVEL", level), ("HORAI_LOG_FORMAT", form)):
        if value is not None:
            os.environ[name] = value


def engine_settings(lease_ttl: str, grace: str, networks: list[str]) -> EngineSettings:
    """Return the engine's settings. Raises for the flag that is wrong."""
    lease, patience = duration("--lease-ttl", lease_ttl), duration("--grace", grace)
    if not lease:
        refuse_flag("--lease-ttl", "must be longer than 0")
    return EngineSettings(lease=lease, grace=patience, callback_allow=_allowed(networks))


SHORTEST_HISTORY = timedelta(days=2)
"""Days are folded an hour after their end: a shorter time would drop them before."""


def with_retention(engine: EngineSettings, history: str, dead_letters: str) -> EngineSettings:
    """Return the settings with the times for which rows are kept. Raises for a time that is too short."""
    kept, letters = duration("--keep-history", history), duration("--keep-dead-letters", dead_letters)
    if kept < SHORTEST_HISTORY:
        refuse_flag("--keep-history", "must be at least 2d")
    if letters < kept:
        refuse_flag("--keep-dead-letters", "must not be shorter than --keep-history")
    return replace(engine, history_keep=kept, dead_letter_keep=letters)


def with_audit(engine: EngineSettings, key: str | None, heads: str | None, heads_url: str | None) -> EngineSettings:
    """Return the settings of the audit log. Paths no longer depend on the current directory. Raises for a wrong URL."""
    key, heads = (str(Path(file).absolute()) if file else None for file in (key, heads))
    if heads_url is not None and not _is_url(heads_url):
        refuse_flag("--audit-heads-url", "must be an address such as https://audit.example.com/heads")
    return replace(engine, audit_key_file=key, audit_heads_file=heads, audit_heads_url=heads_url)


def with_encryption_keys(
    engine: EngineSettings, file: str | None, command: str | None, environ: Mapping[str, str]
) -> EngineSettings:
    """Return the settings with the encryption keys. File or command override the variable. Raises if a key is unusable."""
    if file and command:
        refuse_flag("--encryption-key-command", "cannot be combined with --encryption-key-file")
    from horai.operations.keyring import with_given_keys  # noqa: PLC0415 - `horai --help` does not need it

    return with_given_keys(engine, file, command, environ.get(ENCRYPTION_KEY))


def _allowed(networks: list[str]) -> tuple[Network, ...]:
    try:
        return parse_networks(networks)
    except ValueError as error:
        refuse_flag("--callback-allow", str(error))


def server_access(
    tls: tuple[Path | None, Path | None],
    proxies: list[str],
    public_url: str | None,
    *,
    insecure: bool,
    require_key: bool,
) -> ServerAccess:
    """Return how clients reach the server. Raises for the flag that is wrong."""
    cert, key = tls
    if (cert is None) != (key is None):
        refuse_flag("--tls-cert", "goes together with --tls-key")
    for name, file in (("--tls-cert", cert), ("--tls-key", key)):
        if file is not None and not os.access(file, os.R_OK):
            refuse_flag(name, f"{file} cannot be read")
    try:
        trusted = parse_networks(proxies)
    except ValueError as error:
        refuse_flag("--trusted-proxy", str(error))
    if public_url is not None and not (_is_url(public_url) and urlsplit(public_url).path in {"", "/"}):
        refuse_flag("--public-url", f"{public_url!r} is not an address such as https://horai.example.com")
    return ServerAccess(cert, key, trusted, public_url, insecure, require_key)


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False


def chosen_roles(text: str) -> frozenset[Role]:
    """Parse a list of roles such as `scheduler,executor`."""
    named = words([text])
    roles = roles_of(named) & EVERY_ROLE
    choice = ", ".join(role for role in Role if role in EVERY_ROLE)
    if unknown := sorted(set(named) - roles):
        refuse_flag("--roles", f"'{unknown[0]}' is not a role: choose from {choice}")
    if not roles:
        refuse_flag("--roles", f"a node without a role has nothing to do: choose from {choice}")
    return roles
