"""The address of a bucket of S3-compatible storage, and the credentials of the operator.

BucketCredentials are in no `repr`, no message and no row: they come from the environment and stay in the process.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urlsplit

SCHEME = "s3://"
AWS = "https://s3.{region}.amazonaws.com"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_REGION = re.compile(r"[a-z0-9-]{1,40}")


class Addressing(StrEnum):
    """The place of the bucket's name in an address: `https://host/bucket/key` or `https://bucket.host/key`."""

    PATH = "path"
    VIRTUAL = "virtual"


@dataclass(frozen=True, slots=True)
class BucketCredentials:
    """An access key. The token belongs to temporary keys."""

    key_id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


class ObjectAddress(NamedTuple):
    """The address of an object: the origin without a path, the host as the header `Host` has it, and the path."""

    origin: str
    host: str
    path: str


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """A bucket, the part of it that the archive uses, and how requests reach it."""

    name: str
    prefix: str
    endpoint: str
    region: str
    addressing: Addressing
    credentials: BucketCredentials

    def address_of(self, key: str) -> ObjectAddress:
        """Return the address of an object. The key is below the prefix."""
        scheme, host = self.endpoint.split("://", 1)
        path = "/".join(part for part in (self.prefix, key) if part)
        if self.addressing is Addressing.PATH:
            path = f"{self.name}/{path}"
        else:
            host = f"{self.name}.{host}"
        return ObjectAddress(f"{scheme}://{host}", host, f"/{path}")


def split_location(location: str) -> tuple[str, str]:
    """Return the bucket and the prefix of `s3://bucket/prefix`. Raises `ValueError`."""
    name, _, prefix = location.removeprefix(SCHEME).partition("/")
    prefix = prefix.strip("/")
    if not _BUCKET.fullmatch(name) or ".." in name:
        raise ValueError("must name a bucket: s3://bucket or s3://bucket/prefix")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise ValueError("has a prefix with other characters than A-Z, a-z, 0-9, '.', '_', '-' and '/'")
    return name, prefix


def checked_endpoint(text: str) -> str:
    """Return an endpoint as scheme, host and port. Raises `ValueError`; its message does not show the endpoint."""
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = parts = None
    if parts is None or not host or parts.scheme not in ("http", "https"):
        raise ValueError("must be an address such as https://storage.example.com")
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must have a host and a port only: no path, no password")
    shown = f"[{host}]" if ":" in host else host
    is_usual = port is None or port == {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{shown}" + ("" if is_usual else f":{port}")


def checked_region(text: str) -> str:
    """Return a region. Raises `ValueError`."""
    if not _REGION.fullmatch(text):
        raise ValueError("must be the name of a region such as eu-central-1")
    return text
