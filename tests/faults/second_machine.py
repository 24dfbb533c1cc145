"""A receiver on another machine: it prints its address, then one line for each call, with the verdict on its signature."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from horai import verify_webhook


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_signed = verify_webhook(sys.argv[2], dict(self.headers), body)
        self.send_response(200)
        self.end_headers()
        print("signed" if is_signed else "forged", body.decode(), flush=True)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep stdout for the verdicts."""


server = HTTPServer((sys.argv[1], 0), Receiver)
print(f"http://{sys.argv[1]}:{server.server_port}/", flush=True)
server.serve_forever()
