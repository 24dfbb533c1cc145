"""The requests of the client, and its handling of answers, against a server that may answer anything."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from terminal import Terminal

from horai.cli.client import client_of, path_of
from horai.cli.errors import BadUsage, CommandFailed, lines_of


@contextmanager
def answering(status: int, body: bytes, **headers: str) -> Generator[tuple[str, list[dict[str, str]]]]:
    """A server with one answer to everything; it keeps the headers it saw."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(dict(self.headers) | {"path": self.path})
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{serving.server_port}", seen
        finally:
            serving.shutdown()


def failure_of(status: int, body: object, **headers: str) -> list[str]:
    with answering(status, body if isinstance(body, bytes) else json.dumps(body).encode(), **headers) as (base, _):
        with pytest.raises(CommandFailed) as raised:
            client_of(base, None).call("GET", "/")
        return [line.replace(base, "SERVER") for line in lines_of(raised.value)]


def test_a_problem_becomes_its_detail_and_its_hint() -> None:
    problem = {"detail": "There is no job 'x'.", "hint": "Look again.", "code": "SCH_404_NOT_FOUND"}

    assert failure_of(404, problem) == ["error: There is no job 'x'.", "hint: Look again."]


def test_a_wrong_field_is_told_once() -> None:
    errors = [{"field": "cron", "message": "is wrong"}, {"field": "queue", "message": "is odd"}]

    assert failure_of(422, {"detail": "cron: is wrong", "errors": errors}) == [
        "error: cron: is wrong",
        "error: queue: is odd",
    ]


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"message": "no"}', b""])
def test_an_answer_that_is_not_ours_is_said_to_be_so(body: bytes) -> None:
    assert failure_of(502, body) == [
        "error: SERVER answered with status 502: it is not a Horai server.",
        "hint: Check --server or HORAI_SERVER.",
    ]


def test_a_redirect_is_not_followed_with_the_key_in_hand() -> None:
    with answering(200, b"{}") as (elsewhere, seen):
        told = failure_of(302, b"", Location=elsewhere)

    assert told[0] == "error: SERVER answered with status 302: it is not a Horai server."
    assert seen == []


def test_control_characters_in_a_server_error_are_escaped() -> None:
    assert failure_of(500, {"detail": "a\x1b[31mb\nc\u202e"}) == ["error: a\\x1b[31mb c\\u202e"]


def test_the_key_is_shown_as_a_bearer_from_flag_variable_or_file(alone: Terminal, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("filed\n")
    with answering(200, b'{"items": [], "nextCursor": null}') as (base, seen):
        filed = {"HORAI_SERVER": base, "HORAI_API_KEY_FILE": str(tmp_path / "key")}
        alone("jobs", "list", "--json", **filed, http_proxy="http://127.0.0.1:1")
        alone("jobs", "list", "--json", **filed, HORAI_API_KEY="variable")
        alone("jobs", "list", "--json", "--api-key", "flag", **filed, HORAI_API_KEY="variable")

    assert [headers["Authorization"] for headers in seen] == ["Bearer filed", "Bearer variable", "Bearer flag"]


@pytest.mark.parametrize("server", ["", "localhost:8470", "ftp://host", "http://", "http://host:port", "http://a b"])
def test_an_invalid_server_address_is_bad_usage(server: str) -> None:
    with pytest.raises(BadUsage, match="is not the address of a server"):
        client_of(server, None)


def test_a_path_carries_any_name() -> None:
    assert path_of("jobs", "a/b?c", "instances", "文 #1") == "/api/v1/jobs/a%2Fb%3Fc/instances/%E6%96%87%20%231"


def test_without_a_server_the_way_to_one_is_told(alone: Terminal) -> None:
    ended = alone("jobs", "list")

    assert ended.failed_with(
        1,
        "error: no server answers at http://127.0.0.1:1",
        "hint: start one with `horai up`, or set HORAI_SERVER",
    )
