"""The settings of the identity provider, from the flags and the environment of the commands that run a node."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import words
from horai.core.settings import OidcSettings, ServerAccess

SECRET = "HORAI_OIDC_CLIENT_SECRET"  # noqa: S105 - the name of a variable
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class OidcFlags:
    """The flags as given."""

    issuer: str | None
    client_id: str | None
    secret_file: Path | None
    groups_claim: str
    scopes: str


def with_oidc(access: ServerAccess, given: OidcFlags, environ: Mapping[str, str]) -> ServerAccess:
    """Return the access with the identity provider, if the flags name one. Raises for the flag that is missing or wrong."""
    if given.issuer is None:
        if given.client_id is not None or given.secret_file is not None:
            refuse_flag("--oidc-issuer", "is missing: --oidc-client-id and --oidc-client-secret-file belong to it")
        return access
    if not _is_safe(given.issuer) or urlsplit(given.issuer).query:
        refuse_flag("--oidc-issuer", f"{given.issuer!r} must be an https address; http only on this machine")
    if not given.client_id:
        refuse_flag("--oidc-client-id", "is missing: --oidc-issuer needs it")
    if access.public_url is None:
        refuse_flag("--public-url", "is missing: the provider sends browsers back to it")
    if not _is_safe(access.public_url):
        refuse_flag("--public-url", "must begin with https:// for --oidc-issuer; http only on this machine")
    scopes = tuple(words([given.scopes]))
    if "openid" not in scopes:
        refuse_flag("--oidc-scopes", "must contain openid")
    secret = _secret(given.secret_file, environ)
    return replace(access, oidc=OidcSettings(given.issuer, given.client_id, secret, given.groups_claim, scopes))


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
        return (
            bool(parts.hostname)
            and parts.username is None
            and not parts.fragment
            and (parts.scheme == "https" or is_local)
        )
    except ValueError:
        return False


def _secret(file: Path | None, environ: Mapping[str, str]) -> str:
    """Return the client secret from the file or the environment. No error shows it."""
    if file is None:
        if given := environ.get(SECRET, "").strip():
            return given
        raise BadUsage("--oidc-issuer needs the client secret.", f"Give --oidc-client-secret-file, or set {SECRET}.")
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        refuse_flag(
            "--oidc-client-secret-file", f"{file} cannot be read: {getattr(error, 'strerror', None) or 'not text'}"
        )
    if not text:
        refuse_flag("--oidc-client-secret-file", f"{file} is empty")
    return text
