"""A judge that counts: what its clients have under way at once, and in any minute."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Counts:
    """What the judge has seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most_at_once = 0
        self.arrivals: list[float] = []

    def begin(self) -> None:
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            self.arrivals.append(time.monotonic())

    def end(self) -> None:
        with self._lock:
            self._now -= 1

    def most_within(self, seconds: float) -> int:
        """The most requests that came within any window of that length."""
        times = sorted(self.arrivals)
        most = first = 0
        for last, arrived in enumerate(times):
            while arrived - times[first] >= seconds:
                first += 1
            most = max(most, last - first + 1)
        return most


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


@contextmanager
def judge_server(takes_s: float) -> Iterator[tuple[str, Counts]]:
    """Gives its URL: every answer is a score of 0.75, after so many seconds."""
    counts = Counts()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            counts.begin()
            self.rfile.read(int(self.headers.get("content-length", 0)))
            time.sleep(takes_s)
            counts.end()
            body = json.dumps({"score": 0.75}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/score", counts
        server.shutdown()
