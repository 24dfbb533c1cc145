"""Signatures of requests to S3-compatible storage: AWS Signature Version 4 in the `Authorization` header.

A signature covers the method, the path, the headers and the SHA-256 of the body, for one region and one day. The secret
key itself is never sent. The requests of Horai have no query.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from horai.core.bucket import BucketCredentials

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY = hashlib.sha256(b"").hexdigest()
"""The SHA-256 of a request without a body."""


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A request before it is signed. `headers` has the name `host`; names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body_sha256: str = EMPTY


def signed_headers(
    request: Unsigned, credentials: BucketCredentials, region: str, at: datetime, service: str = "s3"
) -> dict[str, str]:
    """Return the headers of the request with its signature."""
    moment = f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    headers = {**request.headers, "x-amz-content-sha256": request.body_sha256, "x-amz-date": moment}
    if credentials.token is not None:
        headers["x-amz-security-token"] = credentials.token
    names = sorted(headers)
    canonical = "\n".join(
        [
            request.method,
            encoded_path(request.path),
            "",
            *(f"{name}:{' '.join(headers[name].split())}" for name in names),
            "",
            ";".join(names),
            request.body_sha256,
        ]
    )
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = "\n".join([ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{credentials.secret}".encode()
    for part in (moment[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), hashlib.sha256)
    signature = hmac.digest(key, text.encode(), hashlib.sha256).hex()
    told = f"Credential={credentials.key_id}/{scope},SignedHeaders={';'.join(names)},Signature={signature}"
    return {**headers, "authorization": f"{ALGORITHM} {told}"}


def encoded_path(path: str) -> str:
    """Return a path as a request has it: S3 encodes each byte once, except for letters, digits and `-_.~/`."""
    return quote(path, safe="-_.~/")
