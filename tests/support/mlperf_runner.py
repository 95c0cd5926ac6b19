# SPDX-License-Identifier: Apache-2.0
"""The runner's side of MLPerf Tiny's serial protocol: loads an input, times inferences and reads the results.

The commands and answers are those of MLPerf Tiny 1.x (docs/mlperf_tiny.md).
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from ferrule._frozen import frozen
from ferrule.interface import option
from ferrule.link.channel import Channel
from ferrule.link.errors import FirmwareError, LinkError, LinkTimeoutError

READY = "m-ready"
TERMINATOR = "%"
PIECE_BYTES = 31
"""Bytes of one `db` command, as in the official runner."""
_LAP = re.compile(r"m-lap-us-(\d+)")
_RESULTS = re.compile(r"m-results-\[([^]]+)\]")
_TEXT = re.compile(r"m-(name-dut|profile|model)-\[([^]]*)\]")
_WRAP_US = 1 << 32
_CHUNK_BYTES = 4096
_MOST_LINE_CHARACTERS = 1 << 20


@frozen
class Inference:
    """The answer to one `infer` command."""

    results: tuple[float, ...]
    """The results of the last inference, with three decimals."""
    elapsed_us: int
    """Time of all inferences but the warm-ups, by the device's own clock."""
    count: int
    """Number of the timed inferences."""

    @property
    def per_second(self) -> float:
        """Inferences per second; 0 if no time has passed."""
        return self.count * 1e6 / self.elapsed_us if self.elapsed_us else 0.0


class MlperfTinyRunner:
    """Drives a device under test behind a channel, for use by one thread.

    Raises:
        LinkTimeoutError: the device did not answer in `timeout_s`, or an inference took longer than `infer_timeout_s`.
        FirmwareError: the device refused a command.
        LinkError: an answer is not one of the protocol.
    """

    def __init__(self, channel: Channel, *, timeout_s: float = 5.0, infer_timeout_s: float = 300.0) -> None:
        self._channel = channel
        self._timeout_s = timeout_s
        self._infer_timeout_s = infer_timeout_s
        self._received = ""

    def wait_until_ready(self, timeout_s: float = 60.0) -> None:
        """Wait for the device's greeting after its start."""
        self._answer("its start", timeout_s)

    def names(self) -> dict[str, str]:
        """Return the device's name (`name-dut`), its `profile` and its `model`, the benchmark."""
        lines = [*self.command("name"), *self.command("profile")]
        found = [match for line in lines if (match := _TEXT.fullmatch(line)) is not None]
        return {match[1]: match[2] for match in found}

    def load(self, data: bytes) -> None:
        """Send an input."""
        self.command(f"db load {len(data)}")
        done: Sequence[str] = []
        for at in range(0, len(data), PIECE_BYTES):
            done = self.command(f"db {data[at : at + PIECE_BYTES].hex()}")
        if "m-load-done" not in done:
            raise LinkError(f"the device has not confirmed {len(data)} bytes of input: {done}")

    def infer(self, count: int, warmups: int = 0) -> Inference:
        """Run the loaded input `warmups` times, then `count` times against the clock."""
        lines = self.command(f"infer {count} {warmups}", self._infer_timeout_s)
        laps = [int(found[1]) for line in lines if (found := _LAP.fullmatch(line)) is not None]
        results = [found[1] for line in lines if (found := _RESULTS.fullmatch(line)) is not None]
        if len(laps) != 2 or len(results) != 1:
            raise LinkError(f"the answer to infer has {len(laps)} times and {len(results)} results: {lines}")
        try:
            values = tuple(float(each) for each in results[0].split(","))
        except ValueError:
            raise LinkError(f"the device's results are no numbers: {results[0]}") from None
        return Inference(results=values, elapsed_us=(laps[1] - laps[0]) % _WRAP_US, count=count)

    def command(self, text: str, timeout_s: float | None = None) -> Sequence[str]:
        """Send a command and return the lines of its answer, without the last one, which says that it is complete."""
        self._channel.write((text + TERMINATOR).encode())
        return self._answer(f"'{text[:40]}'", self._timeout_s if timeout_s is None else timeout_s)

    def _answer(self, what: str, timeout_s: float) -> list[str]:
        deadline = time.monotonic() + timeout_s
        lines: list[str] = []
        while True:
            while "\n" in self._received:
                line, _, self._received = self._received.partition("\n")
                line = line.strip("\r\0")
                if line == READY:
                    refusals = [each for each in lines if each.startswith("e-[")]
                    if refusals:
                        raise FirmwareError(f"the device refused {what}: {refusals[0]}", code=0)
                    return lines
                lines += [line] if line else []
            left_s = deadline - time.monotonic()
            if left_s <= 0 or len(self._received) > _MOST_LINE_CHARACTERS:
                raise LinkTimeoutError(
                    f"the device has not answered {what} within {timeout_s:g} s, but sent {lines[-3:]}",
                    hint=f"is it a firmware that was generated with {option('app', 'mlperf-tiny')}?",
                )
            self._received += self._channel.read(_CHUNK_BYTES, left_s).decode("ascii", "backslashreplace")
