# SPDX-License-Identifier: Apache-2.0
"""Replays a recording of Renode's robot server: compares the calls, and returns Renode's recorded answers."""

from __future__ import annotations

import http.server
import threading
import xmlrpc.client

from transcript import chunks

from ferrule._frozen import positional
from ferrule._typing import override


@positional
class Exchange:
    """One call and its answer, as HTTP bodies."""

    request: bytes
    answer: bytes


def bodies(data: bytes) -> list[bytes]:
    """Return the bodies of the HTTP messages in a stream."""
    found = []
    while data:
        head, separator, rest = data.partition(b"\r\n\r\n")
        assert separator, data
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        size = int(length.split(b":")[1])
        found.append(rest[:size])
        data = rest[size:]
    return found


def recorded() -> list[Exchange]:
    """Return the recorded session with Renode 1.16.1."""
    conversation = chunks("rpc", 1)
    requests = bodies(b"".join(chunk.data for chunk in conversation if not chunk.by_renode))
    answers = bodies(b"".join(chunk.data for chunk in conversation if chunk.by_renode))
    return [Exchange(*pair) for pair in zip(requests, answers, strict=True)]


class RpcReplay:
    """An HTTP server on loopback with the recorded answers; `differences` lists the calls that were not as recorded."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self.left = list(exchanges)
        self.differences: list[str] = []
        replay = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = replay.answer(body)
                self.send_response(200)
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            @override
            def log_message(self, *_arguments: object) -> None:
                """Suppress the log."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def answer(self, body: bytes) -> bytes:
        """Return the recorded answer to the next call, and note the call if it differs from the recording."""
        if not self.left:
            self.differences.append(f"not recorded: {body!r}")
            return b"nothing"
        exchange = self.left.pop(0)
        got, wanted = (xmlrpc.client.loads(each, use_builtin_types=True) for each in (body, exchange.request))
        if got != wanted:
            self.differences.append(f"{got}, recorded {wanted}")
        return exchange.answer

    def close(self) -> None:
        """Shut the server down."""
        self._server.shutdown()
        self._server.server_close()
