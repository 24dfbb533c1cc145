"""AWS Signature Version 4: the published examples, and the addresses and credentials of buckets."""

from datetime import UTC, datetime

import pytest

from horai.core.bucket import (
    Addressing,
    BucketCredentials,
    BucketSettings,
    checked_endpoint,
    checked_region,
    split_location,
)
from horai.core.sigv4 import EMPTY, Unsigned, signed_headers

AT = datetime(2013, 5, 24, tzinfo=UTC)
EXAMPLE = BucketCredentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
HOST = "examplebucket.s3.amazonaws.com"
WELCOME = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"


def authorization(request: Unsigned, credentials: BucketCredentials = EXAMPLE, at: datetime = AT) -> str:
    return signed_headers(request, credentials, "us-east-1", at)["authorization"]


def test_the_published_example_of_a_get_has_its_signature() -> None:
    signed = authorization(Unsigned("GET", "/test.txt", {"host": HOST, "range": "bytes=0-9"}))
    assert signed == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def test_the_published_example_of_a_put_has_its_signature() -> None:
    headers = {
        "host": HOST,
        "date": "Fri, 24 May 2013 00:00:00 GMT",
        "x-amz-storage-class": "REDUCED_REDUNDANCY",
    }
    signed = authorization(Unsigned("PUT", "/test$file.text", headers, WELCOME))
    assert signed.endswith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")


@pytest.mark.parametrize(
    "other",
    [
        Unsigned("PUT", "/a", {"host": HOST}),
        Unsigned("GET", "/b", {"host": HOST}),
        Unsigned("GET", "/a", {"host": "other"}),
        Unsigned("GET", "/a", {"host": HOST}, WELCOME),
    ],
)
def test_a_signature_covers_method_path_host_and_body(other: Unsigned) -> None:
    assert authorization(Unsigned("GET", "/a", {"host": HOST}, EMPTY)) != authorization(other)


def test_the_token_of_temporary_keys_is_sent_and_signed_and_no_repr_shows_a_secret() -> None:
    temporary = BucketCredentials("AKIA", "the-secret", "the-token")
    headers = signed_headers(Unsigned("GET", "/a", {"host": HOST}), temporary, "us-east-1", AT)
    assert headers["x-amz-security-token"] == "the-token"
    assert "x-amz-security-token" in headers["authorization"].split("SignedHeaders=")[1]
    assert "the-secret" not in repr(headers)
    bucket = BucketSettings("b", "", "https://s3.example.com", "eu", Addressing.PATH, temporary)
    assert "the-secret" not in repr(bucket)
    assert "the-token" not in repr(bucket)


def test_both_styles_of_addresses() -> None:
    path = BucketSettings("logs", "horai/one", "http://127.0.0.1:9000", "eu", Addressing.PATH, EXAMPLE)
    virtual = BucketSettings("logs", "", "https://s3.eu.amazonaws.com", "eu", Addressing.VIRTUAL, EXAMPLE)
    assert path.address_of("a/b") == ("http://127.0.0.1:9000", "127.0.0.1:9000", "/logs/horai/one/a/b")
    assert virtual.address_of("a/b") == (
        "https://logs.s3.eu.amazonaws.com",
        "logs.s3.eu.amazonaws.com",
        "/a/b",
    )


def test_locations_endpoints_and_regions_are_checked() -> None:
    assert split_location("s3://logs") == ("logs", "")
    assert split_location("s3://logs/horai/one/") == ("logs", "horai/one")
    for wrong in ("s3://", "s3:///a", "s3://Logs", "s3://a", "s3://logs/../x", "s3://logs/a//b", "s3://logs/a b"):
        with pytest.raises(ValueError, match=r"must name a bucket|has a prefix"):
            split_location(wrong)
    assert checked_endpoint("https://s3.example.com:443/") == "https://s3.example.com"
    assert checked_endpoint("http://[::1]:9000") == "http://[::1]:9000"
    for wrong in ("s3.example.com", "ftp://a", "https://", "https://a:b@c", "https://a/path", "https://a:99999"):
        with pytest.raises(ValueError, match="must "):
            checked_endpoint(wrong)
    assert checked_region("eu-central-1") == "eu-central-1"
    with pytest.raises(ValueError, match="must be the name of a region"):
        checked_region("eu central/1")
