"""A `horai up` for the browser tests, and a way for them to stop it and to start it again."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from harness import HoraiProcess


def free_port() -> int:
    """A port that nobody has now: the server must come back where it was."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def staged(data_dir: Path) -> Generator[dict[str, str]]:
    """The server, and the environment that tells the tests of it."""
    horai = HoraiProcess(data_dir, "--port", str(free_port())).start()
    doings = {"/stop": horai.stop, "/start": horai.start}

    class Control(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            doings[self.path]()
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Silent: pytest shows what matters."""

    control = ThreadingHTTPServer(("127.0.0.1", 0), Control)
    threading.Thread(target=control.serve_forever, daemon=True).start()
    try:
        yield {"HORAI_URL": horai.base, "HORAI_CONTROL": f"http://127.0.0.1:{control.server_port}"}
    finally:
        control.shutdown()
        control.server_close()
        horai.stop()
