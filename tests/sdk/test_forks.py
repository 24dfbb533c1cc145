"""`.sync` in a process that is forked afterwards: the child gets an event loop and connections of its own."""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from terminal import clean_environment

SITE = """
import os
from horai import Horai

app = Horai("shop")

@app.job
def greet(name: str) -> str:
    return f"hello {name}"

FIRST = greet.sync.enqueue("import")

def serve(environ, start_response):
    made = greet.sync.enqueue("request")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{FIRST.id} {made.id} {os.getpid()}".encode()]
"""


FORK = """
import os
import signal
from horai import Horai

app = Horai("shop")

@app.job
def greet(name: str) -> str:
    return f"hello {name}"

signal.alarm(30)  # ends a process that hangs
print(greet.sync.enqueue("parent").id, flush=True)
child = os.fork()
signal.alarm(15)
for _ in range(1 if child == 0 else 2):
    print(greet.sync.enqueue("either").id, flush=True)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_and_its_parent_both_go_on_adding(url: str) -> None:
    environment = clean_environment() | {"HORAI_DATABASE_URL": url}
    told = subprocess.run(
        [sys.executable, "-c", FORK], env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert told.returncode == 0, told.stderr
    assert len(set(told.stdout.split())) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="gunicorn needs fork")
def test_gunicorn_with_preload_answers_when_sync_was_used_at_import(url: str, tmp_path: Path) -> None:
    (tmp_path / "site_of_shop.py").write_text(SITE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "--preload", "-w", "2", "-b", f"127.0.0.1:{port}", "--timeout", "20"]
    environment = clean_environment() | {"HORAI_DATABASE_URL": url}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen([*command, "site_of_shop:serve"], cwd=tmp_path, env=environment, stderr=log)
    try:
        answers = [answer_of(server, port).split() for _ in range(20)]
    finally:
        server.terminate()
        server.wait(20)

    assert len({made for _, made, _ in answers}) == 20
    assert len({first for first, _, _ in answers}) == 1
    assert str(server.pid) not in {pid for _, _, pid in answers}


def answer_of(server: "subprocess.Popen[bytes]", port: int, within: float = 30.0) -> str:
    """Return the answer of a site, which may still be starting."""
    deadline = time.monotonic() + within
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as response:
                return response.read().decode()
        except OSError:
            assert server.poll() is None, "gunicorn ended"
            assert time.monotonic() < deadline, "gunicorn does not answer"
            time.sleep(0.05)
