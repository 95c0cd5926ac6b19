# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs that an emulator writes and reads in the firmware's memory."""

from __future__ import annotations

import struct

import pytest

from ferrule._typing import override
from ferrule.link import BoardMemory, DirectTensors, LinkError

BASE = 0x2000_0000
MODEL, INPUTS, OUTPUTS, DATA = BASE, BASE + 0x100, BASE + 0x200, BASE + 0x300


class Bytes(BoardMemory):
    """A memory at BASE."""

    def __init__(self, size_bytes: int = 0x400) -> None:
        self.data = bytearray(size_bytes)

    @override
    def read(self, address: int, size_bytes: int) -> bytes:
        return bytes(self.data[address - BASE : address - BASE + size_bytes])

    @override
    def write(self, address: int, data: bytes) -> None:
        self.data[address - BASE : address - BASE + len(data)] = data


def tensor(address: int, size_bytes: int) -> bytes:
    return struct.pack("<3I8I2B2x", 0, address, size_bytes, size_bytes, 0, 0, 0, 0, 0, 0, 0, 1, 9)


@pytest.fixture
def memory() -> Bytes:
    """A model with two inputs and one output."""
    memory = Bytes()
    memory.write(MODEL, struct.pack("<15I", 1, 2, 3, 4, 5, INPUTS, OUTPUTS, 8, 9, 10, 2, 1, 3, 64, 0))
    memory.write(INPUTS, tensor(DATA, 4) + tensor(DATA + 16, 3))
    memory.write(OUTPUTS, tensor(DATA + 32, 2))
    return memory


def test_all_inputs_are_written_and_an_output_is_read(memory: Bytes) -> None:
    tensors = DirectTensors.of(memory, MODEL)
    memory.write(DATA + 32, b"yz")
    tensors.write([b"abcd", b"efg"])
    assert memory.read(DATA, 4) == b"abcd"
    assert memory.read(DATA + 16, 4) == b"efg\0"
    assert tensors.read(0) == b"yz"


def test_an_input_of_another_size_is_refused(memory: Bytes) -> None:
    with pytest.raises(LinkError, match="an input has 2 bytes, the firmware's has 3"):
        DirectTensors.of(memory, MODEL).write([b"abcd", b"ef"])


def test_a_table_outside_of_the_memory_is_refused(memory: Bytes) -> None:
    memory.write(MODEL + 20, struct.pack("<I", BASE + 0x3F0))
    with pytest.raises(LinkError, match="the board has no memory for the 96 bytes at 0x200003f0"):
        DirectTensors.of(memory, MODEL)
