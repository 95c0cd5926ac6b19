# SPDX-License-Identifier: Apache-2.0
"""Plays Renode's side of a recorded conversation over real sockets."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

from ferrule._frozen import positional

FOLDER = Path(__file__).parents[1] / "emulation" / "renode" / "transcripts"


@positional
class Chunk:
    """Bytes sent on one channel; empty bytes close it."""

    channel: str
    by_renode: bool
    data: bytes


def chunks(name: str, connection: int | None = None) -> list[Chunk]:
    """Return a recorded conversation, or a single connection of it."""
    lines = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[1:]]
    return [
        Chunk(line["channel"], line["from"] == "renode", bytes.fromhex(line["hex"]))
        for line in lines
        if connection is None or line.get("conn") == connection
    ]


class Player:
    """Sends Renode's recorded bytes and expects the peer's recorded bytes; `differences` lists deviations."""

    def __init__(self, conversation: list[Chunk], *, split: int = 0) -> None:
        self._conversation = conversation
        self._split = split
        names = list(dict.fromkeys(chunk.channel for chunk in conversation))
        pairs = {name: socket.socketpair() for name in names}
        self.ends = {name: pair[0] for name, pair in pairs.items()}
        """The sockets of the peer under test, by channel."""
        self._own = {name: pair[1] for name, pair in pairs.items()}
        self.received: list[tuple[str, bytes]] = []
        """Bytes received from the peer, split as in the recording."""
        self.differences: list[str] = []
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def _play(self) -> None:
        for number, chunk in enumerate(self._conversation):
            end = self._own[chunk.channel]
            end.settimeout(10)
            if chunk.by_renode:
                self._send(end, chunk.data)
                continue
            data = bytearray()
            try:
                while len(data) < len(chunk.data):
                    more = end.recv(len(chunk.data) - len(data))
                    if not more:
                        break
                    data += more
            except TimeoutError:
                pass
            self.received.append((chunk.channel, bytes(data)))
            if data != chunk.data:
                self.differences.append(f"chunk {number} on {chunk.channel}: {data.hex()}, recorded {chunk.data.hex()}")
                if len(data) != len(chunk.data):
                    break
        for end in self._own.values():
            end.close()

    def _send(self, end: socket.socket, data: bytes) -> None:
        if not data:
            end.shutdown(socket.SHUT_WR)
            return
        step = self._split or len(data)
        for start in range(0, len(data), step):
            end.sendall(data[start : start + step])

    def finish(self) -> None:
        """Wait until the whole conversation has been played."""
        self._thread.join(20)
        assert not self._thread.is_alive(), "the conversation has stalled"
