"""The bucket of the archive, from its location and the variables that tools of S3 use.

    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN   the access key, each also as NAME_FILE
    AWS_REGION or AWS_DEFAULT_REGION                              us-east-1 without one
    AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL                       Amazon without one
    HORAI_S3_ADDRESSING                                           path or virtual

No error shows a credential.
"""

from collections.abc import Callable, Mapping

from horai.cli.errors import BadUsage, refuse_flag
from horai.core.bucket import (
    AWS,
    Addressing,
    BucketCredentials,
    BucketSettings,
    checked_endpoint,
    checked_region,
    split_location,
)
from horai.db.database_location import secret

KEY_ID, SECRET, TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
ADDRESSING = "HORAI_S3_ADDRESSING"


def bucket_of(location: str, environ: Mapping[str, str]) -> BucketSettings:
    """Return the bucket of `s3://bucket/prefix`. Raises for the variable that is missing or wrong."""
    try:
        name, prefix = split_location(location)
    except ValueError as error:
        refuse_flag("--archive-dir", str(error))
    region = _first(REGIONS, environ, checked_region) or "us-east-1"
    given = _first(ENDPOINTS, environ, checked_endpoint)
    return BucketSettings(
        name,
        prefix,
        given or AWS.format(region=region),
        region,
        _addressing(environ.get(ADDRESSING), name, has_endpoint=given is not None),
        _credentials(environ),
    )


def _first(names: tuple[str, ...], environ: Mapping[str, str], checked: Callable[[str], str]) -> str | None:
    for name in names:
        if given := environ.get(name, "").strip():
            try:
                return checked(given)
            except ValueError as error:
                raise BadUsage(f"{name} {error}.") from error
    return None


def _addressing(given: str | None, bucket: str, *, has_endpoint: bool) -> Addressing:
    """Return how the bucket is addressed. A name with dots does not match the certificate of a virtual host."""
    if not given:
        return Addressing.PATH if has_endpoint or "." in bucket else Addressing.VIRTUAL
    try:
        return Addressing(given)
    except ValueError as error:
        raise BadUsage(f"{ADDRESSING} must be path or virtual.") from error


def _credentials(environ: Mapping[str, str]) -> BucketCredentials:
    key_id, key, token = (secret(name, environ) for name in (KEY_ID, SECRET, TOKEN))
    if not key_id or not key:
        raise BadUsage("A bucket needs credentials.", f"Set {KEY_ID} and {SECRET}, or {KEY_ID}_FILE and {SECRET}_FILE.")
    for name, value in ((KEY_ID, key_id), (SECRET, key), (TOKEN, token)):
        if value is not None and not (value.isascii() and value.isprintable() and " " not in value):
            raise BadUsage(f"{name} has characters that no access key has.")
    return BucketCredentials(key_id, key, token)
