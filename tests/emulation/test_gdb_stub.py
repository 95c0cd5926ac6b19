# SPDX-License-Identifier: Apache-2.0
"""GDB's packets, and the stub's answers for a stand-in of a core."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.architectures import CORTEX_M
from ferrule.emulation.gdb import GdbStub, Resume
from ferrule.emulation.gdb.packets import LARGEST, Event, Packet, PacketReader, frame

NAMES = CORTEX_M.registers


class Core:
    """A core with 256 bytes of memory at 0x100 and numbered registers."""

    def __init__(self) -> None:
        self.registers = {name: index for index, name in enumerate(NAMES.all)}
        self.memory = bytearray(256)

    def register(self, name: str) -> int:
        return self.registers[name]

    def set_register(self, name: str, value: int) -> None:
        self.registers[name] = value

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        offset = address - 0x100
        return bytes(self.memory[offset : offset + size_bytes]) if 0 <= offset < 256 else b""

    def write_memory(self, address: int, data: bytes) -> bool:
        offset = address - 0x100
        if not 0 <= offset <= 256 - len(data):
            return False
        self.memory[offset : offset + len(data)] = data
        return True


@pytest.fixture
def core() -> Core:
    """A new core."""
    return Core()


@pytest.fixture
def stub(core: Core) -> GdbStub:
    """A stub for the core."""
    return GdbStub(core, NAMES)


def test_packets_are_framed() -> None:
    assert frame(b"OK") == b"$OK#9a"
    assert frame(b"}") == b"$}]#da"


@given(st.lists(st.binary(max_size=60), max_size=5), st.integers(1, 7))
def test_packets_survive_the_way(payloads: list[bytes], piece: int) -> None:
    stream = b"+".join(frame(payload) for payload in payloads)
    reader, found = PacketReader(), []
    for first in range(0, len(stream), piece):
        found += reader.feed(stream[first : first + piece])
    assert found == [Packet(payload=payload) for payload in payloads]


def test_damage_and_interrupts_are_told() -> None:
    reader = PacketReader()
    assert reader.feed(b"$OK#00+\x03noise$OK#9a") == [Event.DAMAGED, Event.INTERRUPT, Packet(payload=b"OK")]
    assert reader.feed(b"$" + b"x" * (2 * LARGEST + 1)) == [Event.DAMAGED]
    assert reader.feed(frame(b"g")) == [Packet(payload=b"g")]


@given(st.binary(max_size=200))
def test_any_bytes_can_be_fed(data: bytes) -> None:
    PacketReader().feed(data)


@given(st.binary(max_size=60))
def test_any_request_gets_an_answer(payload: bytes) -> None:
    assert isinstance(GdbStub(Core(), NAMES).answer(payload), (bytes, Resume))


@given(st.sampled_from("gGpPmMcsZzHTDkqQv?"), st.text("0123456789abcdef,:;=-", max_size=30))
def test_likely_requests_get_an_answer(kind: str, rest: str) -> None:
    assert isinstance(GdbStub(Core(), NAMES).answer((kind + rest).encode()), (bytes, Resume))


def test_registers(core: Core, stub: GdbStub) -> None:
    everything = stub.answer(b"g")
    assert isinstance(everything, bytes)
    assert everything[8:16] == b"01000000"
    assert len(everything) == 8 * len(NAMES.all)
    assert stub.answer(b"pf") == b"0f000000"
    assert stub.answer(b"Pf=78563412") == b"OK"
    assert core.registers["pc"] == 0x1234_5678
    assert stub.answer(b"G" + everything) == b"OK"
    assert core.registers["pc"] == 15
    assert stub.answer(b"p11") == stub.answer(b"G00") == b"E01"


def test_memory(core: Core, stub: GdbStub) -> None:
    assert stub.answer(b"M104,2:beef") == b"OK"
    assert stub.answer(b"m104,2") == b"beef"
    assert stub.answer(b"m0,4") == stub.answer(b"M0,1:00") == stub.answer(b"M104,3:beef") == b"E01"


def test_breakpoints(stub: GdbStub) -> None:
    assert stub.answer(b"Z0,101,2") == stub.answer(b"Z1,200,2") == b"OK"
    assert stub.breakpoints == {0x100, 0x200}
    assert stub.answer(b"z0,100,2") == b"OK"
    assert stub.breakpoints == {0x200}
    assert stub.answer(b"Z2,100,4") == b""  # watchpoints are not supported


def test_going_on(core: Core, stub: GdbStub) -> None:
    assert stub.answer(b"c") is stub.answer(b"vCont;c") is Resume.CONTINUE
    assert stub.answer(b"s") is stub.answer(b"vCont;s:1;c") is Resume.STEP
    assert stub.answer(b"D") is Resume.DETACH
    assert stub.answer(b"k") is stub.answer(b"vKill;1") is Resume.KILL
    assert stub.answer(b"c100") is Resume.CONTINUE
    assert core.registers["pc"] == 0x100


def test_the_description_comes_in_pieces(stub: GdbStub) -> None:
    text, offset = b"", 0
    while True:
        piece = stub.answer(b"qXfer:features:read:target.xml:%x,%x" % (offset, 100))
        assert isinstance(piece, bytes)
        text, offset = text + piece[1:], offset + 100
        if piece[:1] == b"l":
            break
    assert text == NAMES.description
    assert b"m-profile" in text


def test_acknowledgements_end(stub: GdbStub) -> None:
    assert stub.acknowledges
    assert stub.answer(b"QStartNoAckMode") == b"OK"
    assert not stub.acknowledges


@pytest.mark.parametrize(
    "packet",
    ["m100000000,4", "m0,-4", "m-1,4", "Z0,100000000,2", "c100000000", "p100000000", "M1_00,1:00", "m+1,1", "s "],
)
def test_numbers_have_32_bits(stub: GdbStub, packet: str) -> None:
    assert stub.answer(packet.encode()) == b"E01"
