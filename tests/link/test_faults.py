# SPDX-License-Identifier: Apache-2.0
"""The session over a wire that loses, repeats, changes and inserts bytes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from host_link import HostChannel, HostFirmware
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ferrule._frozen import positional
from ferrule.link import LinkSession, ModelInfo

pytestmark = pytest.mark.cc

SHAPE = (1, 100, 103, 3)


@positional
class Fault:
    """A fault at the byte with this position among all bytes sent in one direction."""

    position: int
    kind: str
    value: int = 0

    def apply(self, byte: int) -> bytes:
        return {
            "drop": b"",
            "double": bytes([byte, byte]),
            "flip": bytes([byte ^ (1 << self.value % 8)]),
            "set": bytes([self.value]),
            "insert": bytes([self.value, byte]),
            "burst": bytes([self.value] * 1500),
        }[self.kind]


class Wire:
    """One direction of the wire, with its faults."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.sent = 0
        self._faults = {fault.position: fault for fault in faults}

    def __call__(self, data: bytes) -> bytes:
        begin, self.sent = self.sent, self.sent + len(data)
        out = bytearray(data)
        for position in sorted((at for at in self._faults if begin <= at < self.sent), reverse=True):
            at = position - begin
            out[at : at + 1] = self._faults[position].apply(out[at])
        return bytes(out)


def test_every_fault_at_every_position(firmware: HostFirmware, channel: HostChannel) -> None:
    def talk(faults: Iterable[Fault], direction: str) -> tuple[ModelInfo, int]:
        wire = Wire(faults)
        channel.to_firmware = channel.to_host = bytes
        setattr(channel, direction, wire)
        firmware.reset()
        session = LinkSession(channel, timeout_s=0.0)
        session._sequence = 0
        return session.model_info(), wire.sent

    kinds = [
        ("drop", 0),
        ("double", 0),
        ("flip", 5),
        ("set", 0),
        ("set", 255),
        ("insert", 0),
        ("insert", 3),
        ("burst", 9),
    ]
    for direction in ("to_firmware", "to_host"):
        info, length = talk([], direction)
        assert length > 60
        for position in range(length):
            for kind, value in kinds:
                assert talk([Fault(position, kind, value)], direction)[0] == info


def check_run(firmware: HostFirmware, channel: HostChannel, seed: int, runs: int, timeout_s: float = 0.0) -> None:
    generator = np.random.default_rng(seed)
    image = generator.integers(0, 256, SHAPE, dtype=np.uint8)
    bias = generator.integers(-3000, 3000, 3, dtype=np.int16)
    firmware.reset()
    for index in range(600):
        firmware.state.operator_cycles[index] = index
    session = LinkSession(channel, timeout_s=timeout_s)
    for _ in range(runs):
        result = session.run([image, bias], profile=True)
        assert_array_equal(result.outputs[0].reshape(-1), image.reshape(-1)[::-1])
        sums = bias + image.reshape(-1, 3).astype(np.int64).sum(axis=0)
        assert_array_equal(result.outputs[1], sums.astype(np.int16))
        assert result.counters == tuple(range(600))
    assert firmware.state.runs == runs


faults = st.lists(
    st.builds(
        Fault,
        st.one_of(st.integers(0, 400), st.integers(30_000, 33_500), st.integers(0, 70_000)),
        st.sampled_from(["drop", "double", "flip", "set", "insert", "burst"]),
        st.integers(0, 255),
    ),
    max_size=5,
)


@settings(max_examples=60)
@given(faults, faults, st.integers(0, 9))
def test_runs_over_a_faulty_wire(
    firmware: HostFirmware, channel: HostChannel, there: list[Fault], back: list[Fault], seed: int
) -> None:
    channel.to_firmware, channel.to_host = Wire(there), Wire(back)
    check_run(firmware, channel, seed, 2)


@pytest.mark.parametrize("every", [2, 3])
def test_lost_repeated_and_stale_writes(firmware: HostFirmware, channel: HostChannel, every: int) -> None:
    counts = {"there": 0, "back": 0}
    kept: list[bytes] = []

    def there(data: bytes) -> bytes:
        counts["there"] += 1
        return data * 2 if counts["there"] % every else b""

    def back(data: bytes) -> bytes:
        counts["back"] += 1
        kept.append(data)
        stale = b"".join(kept[-4:-1])
        return stale + data if counts["back"] % every else stale

    channel.to_firmware, channel.to_host = there, back
    check_run(firmware, channel, 3, 2, timeout_s=0.005)  # skipping stale frames takes several readings
    assert counts["there"] > 2 * 100
