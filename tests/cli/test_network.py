"""A server that a network reaches: with keys and TLS it serves, without them it refuses to start."""

import json
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from certificates import certificate
from harness import HoraiProcess
from terminal import Terminal


def own_address() -> str:
    """The address of this machine on its network, or loopback if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


def test_C42a_a_server_beyond_loopback_serves_with_tls_and_a_key(short_place: Path, tmp_path: Path) -> None:
    address = own_address()
    cert, key = certificate(tmp_path, address, "127.0.0.1")
    running = HoraiProcess(
        short_place / "network", "--host", "0.0.0.0", "--require-key", "--tls-cert", str(cert), "--tls-key", str(key)
    ).start()
    try:
        assert running.base.startswith("https://0.0.0.0:")
        base = f"https://{address}:{urlsplit(running.base).port}"
        trusting = ssl.create_default_context(cafile=str(cert))
        admin = running.lines[1].split(": ")[1].strip()

        def asked(**headers: str) -> tuple[int, str]:
            request = urllib.request.Request(f"{base}/api/v1/jobs", headers=headers)
            try:
                with urllib.request.urlopen(request, context=trusting) as response:
                    return response.status, ""
            except urllib.error.HTTPError as error:
                return error.code, json.loads(error.read())["code"]

        assert asked() == (401, "SCH_401_UNAUTHENTICATED")
        assert asked(Authorization=f"Bearer {admin}") == (200, "")
        assert asked(Authorization=f"Bearer {admin}", Host="rebound.example") == (403, "SCH_403_FORBIDDEN")
        listed = Terminal(SSL_CERT_FILE=str(cert))("jobs", "list", "--server", base, "--api-key", admin)
        assert listed.code == 0, listed.err
        assert Terminal()("jobs", "list", "--server", base, "--api-key", admin).code == 1  # an unknown certificate
    finally:
        assert running.stop() == 0


def test_a_server_beyond_loopback_is_refused_without_a_key(short_place: Path) -> None:
    refused = Terminal()(
        "up", "--host", "0.0.0.0", "--insecure", "--port", "0", "--data-dir", str(short_place / "unlocked")
    )
    assert refused.code == 1
    assert "error: Refusing to listen on 0.0.0.0 without a key" in refused.err
    assert "hint: Add --require-key" in refused.err


def test_flags_of_tls_and_proxies_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    for flags, words in (
        (("--tls-cert", str(tmp_path / "absent.pem")), "goes together with --tls-key"),
        (("--tls-cert", str(tmp_path / "a.pem"), "--tls-key", str(tmp_path / "b.pem")), "cannot be read"),
        (("--trusted-proxy", "everyone"), "--trusted-proxy"),
        (("--public-url", "horai.example.com"), "is not an address"),
        (("--public-url", "https://horai.example.com/console"), "is not an address"),
        (("--audit-heads-url", "audit.example.com"), "must be an address such as"),
    ):
        refused = Terminal()("up", *flags)
        assert refused.code == 2, flags
        assert words in refused.err, refused.err
