# SPDX-License-Identifier: Apache-2.0
"""The co-simulation peer against a recording of Renode 1.16.1, messages of both formats, and invalid ones."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcript import Player, chunks

from ferrule._typing import override
from ferrule.devices import BusError, DeviceModel, Register, RegisterModel, RegisterTable
from ferrule.emulation.renode.cosimulation import (
    SYSTICK_RELOAD,
    Action,
    CosimulationPeer,
    LogLevel,
    Message,
    WireFormat,
)
from ferrule.emulation.renode.errors import RenodeError
from ferrule.emulation.renode.stream import Stream


class RecordedDevice(DeviceModel):
    """The recording's device: a memory, a register that refuses access, and a doorbell that copies by DMA."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = bytearray(0x1000)
        self.peer: CosimulationPeer | None = None
        self.reset()

    @property
    @override
    def size_bytes(self) -> int:
        return 0x1000

    @override
    def reset(self) -> None:
        self.memory[:] = bytes(0x1000)
        self.memory[:4] = (0xACCE_1001).to_bytes(4, "little")

    @override
    def read(self, offset: int, width: int) -> int:
        if offset == 0x80:
            raise BusError("0x80 refuses", address=offset)
        return int.from_bytes(self.memory[offset : offset + width], "little")

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        if offset == 0x80:
            raise BusError("0x80 refuses", address=offset)
        self.memory[offset : offset + width] = value.to_bytes(width, "little")
        if offset == 4:
            source, target = self.read(0xC, 4), self.read(0x14, 4)
            for size, place in ((1, 0), (2, 2), (4, 4), (8, 8)):
                self.bus.write(target + place, self.bus.read(source + size, size))
            assert self.peer is not None
            self.peer.log("job done")
            self.irq.set(True)
        if offset == 0x24:
            self.irq.set(False)


def peer_of(player: Player, device: DeviceModel) -> CosimulationPeer:
    main, other = (Stream(player.ends[name], name=name, timeout_s=10) for name in ("main", "async"))
    return CosimulationPeer(device, main, other)


def test_a_session_with_renode_1_16_1() -> None:
    conversation = chunks("cosim")
    # Each peer chooses the address a barrier reads and the data in an error; all else equals the recording.
    player = Player(conversation)
    device = RecordedDevice()
    peer = peer_of(player, device)
    device.peer = peer
    peer.serve()
    peer.close()
    player.finish()
    assert player.received[-2:] == [("main", b""), ("async", b"")]
    differing = []
    for (channel, data), chunk in zip(player.received, [c for c in conversation if not c.by_renode], strict=True):
        if data != chunk.data:
            assert channel == chunk.channel
            ours, theirs = (Message.decode(each, WireFormat.V1_16) for each in (data, chunk.data))
            differing.append((Action(ours.action), Action(theirs.action)))
    barrier, refusal = (Action.GET_DOUBLE_WORD, Action.GET_QUAD_WORD), (Action.ERROR, Action.ERROR)
    assert differing == [refusal, barrier, barrier]
    assert peer.warnings == ["0x80 refuses", "0x80 refuses"]


TABLE = RegisterTable(name="t", registers=(Register("A", 0), Register("B", 4)), size_bytes=8)


class Delayed(RegisterModel):
    """Raises its interrupt some cycles after a write of A, and writes memory at that moment."""

    table = TABLE

    def __init__(self) -> None:
        super().__init__()
        self.left = 0
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.name == "A":
            self.left = new

    @override
    def advance(self, cycles: int) -> None:
        if 0 < self.left <= cycles:
            self.bus.write(0x21, b"abc")
            self.irq.set(True)
        self.left = max(self.left - cycles, 0)

    @override
    def next_event(self) -> int | None:
        return self.left or None


class Renode:
    """Renode's side, scripted by the test."""

    def __init__(self, device: DeviceModel, wire: WireFormat = WireFormat.V1_16, *, ticks: bool = False) -> None:
        self.wire = wire
        self.memory: dict[int, int] = {}
        self.main, main = socket.socketpair()
        self.other, other = socket.socketpair()
        for end in (self.main, self.other):
            end.settimeout(5)
        self.peer = CosimulationPeer(
            device, Stream(main, name="main", timeout_s=5), Stream(other, name="async", timeout_s=5), wire=wire
        )
        if ticks:
            self.peer.use_ticks()
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self.peer.serve()
        except RenodeError as error:
            self.error = error
        self.peer.close()

    def send(self, action: int, address: int = 0, data: int = 0) -> None:
        self.main.sendall(Message(action=action, address=address, data=data, index=0).encode(self.wire))

    def hear(self, end: socket.socket) -> Message:
        return Message.decode(end.recv(self.wire.size_bytes, socket.MSG_WAITALL), self.wire)

    def expect(self, *actions: Action) -> None:
        """Expect these messages on the second socket, and answer DMA and barriers as Renode does."""
        for action in actions:
            message = self.hear(self.other)
            assert message.action == action
            if action in {Action.GET_DOUBLE_WORD, Action.GET_BYTE}:
                self.send(Action.WRITE_TO_BUS, data=self.memory.get(message.address, 0))
            elif action in {Action.PUSH_BYTE, Action.PUSH_WORD}:
                self.send(Action.PUSH_CONFIRMATION)

    def disconnect(self) -> None:
        self.send(Action.DISCONNECT)
        self.finish()
        assert self.error is None

    def finish(self) -> None:
        self._thread.join(5)
        assert not self._thread.is_alive()
        self.main.close()
        self.other.close()


@pytest.mark.parametrize("wire", list(WireFormat))
def test_both_wire_formats(wire: WireFormat) -> None:
    assert wire.size_bytes == (24 if wire is WireFormat.V1_16 else 20)
    renode = Renode(Delayed(), wire)
    renode.send(Action.HANDSHAKE)
    assert renode.hear(renode.main).action == Action.HANDSHAKE
    renode.send(Action.WRITE_DOUBLE_WORD, 4, 0x1234)
    assert renode.hear(renode.main).action == Action.OK
    renode.send(Action.READ_DOUBLE_WORD, 4)
    assert renode.hear(renode.main).data == 0x1234
    renode.disconnect()


class Widths(DeviceModel):
    """Notes the width of each access."""

    size_bytes = 16

    def __init__(self) -> None:
        self.widths: list[int] = []

    @override
    def reset(self) -> None:
        self.widths.clear()

    @override
    def read(self, offset: int, width: int) -> int:
        self.widths.append(width)
        return 1

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        self.widths.append(-width)


def test_each_request_has_its_width() -> None:
    device = Widths()
    renode = Renode(device)
    sizes = ("BYTE", 1), ("WORD", 2), ("DOUBLE_WORD", 4), ("QUAD_WORD", 8)
    reads = (Action.READ_FROM_BUS, 4), *((Action[f"READ_{size}"], width) for size, width in sizes)
    writes = (Action.WRITE_TO_BUS, -4), *((Action[f"WRITE_{size}"], -width) for size, width in sizes)
    for action, _ in (*reads, *writes):
        renode.send(action)
        assert renode.hear(renode.main).action != Action.ERROR, action
    renode.disconnect()
    assert device.widths == [width for _, width in (*reads, *writes)]


def test_without_ticks_work_is_done_before_the_write_is_answered() -> None:
    renode = Renode(Delayed())
    renode.send(Action.WRITE_DOUBLE_WORD, 0, 1000)
    renode.expect(Action.PUSH_BYTE, Action.PUSH_WORD, Action.INTERRUPT, Action.GET_DOUBLE_WORD)
    assert renode.hear(renode.main).action == Action.OK
    renode.send(Action.RESET_PERIPHERAL)
    renode.expect(Action.INTERRUPT, Action.GET_DOUBLE_WORD)
    renode.disconnect()


def test_a_request_right_behind_a_reset_waits_for_its_turn() -> None:
    """Renode does not wait after a reset, since a reset has no reply."""
    renode = Renode(Delayed())
    renode.send(Action.RESET_PERIPHERAL)
    renode.send(Action.WRITE_DOUBLE_WORD, 4, 0x77)
    renode.expect(Action.INTERRUPT, Action.GET_DOUBLE_WORD)
    assert renode.hear(renode.main).action == Action.OK
    renode.send(Action.READ_DOUBLE_WORD, 4)
    assert renode.hear(renode.main).data == 0x77
    renode.disconnect()


def test_a_reset_during_dma_is_done_afterwards() -> None:
    renode = Renode(Delayed())
    renode.send(Action.WRITE_DOUBLE_WORD, 0, 1000)
    assert renode.hear(renode.other).action == Action.PUSH_BYTE
    renode.send(Action.RESET_PERIPHERAL)
    renode.send(Action.PUSH_CONFIRMATION)
    renode.expect(Action.PUSH_WORD, Action.INTERRUPT, Action.GET_DOUBLE_WORD)
    assert renode.hear(renode.main).action == Action.OK
    renode.expect(Action.INTERRUPT, Action.GET_DOUBLE_WORD)
    renode.send(Action.READ_DOUBLE_WORD, 0)
    assert renode.hear(renode.main).data == 0
    renode.disconnect()


def test_with_ticks_time_passes_with_them() -> None:
    renode = Renode(Delayed(), ticks=True)
    renode.send(Action.WRITE_DOUBLE_WORD, 0, 15)
    assert renode.hear(renode.main).action == Action.OK
    renode.send(Action.TICK_CLOCK, data=10)
    renode.expect(Action.TICK_CLOCK)
    renode.send(Action.TICK_CLOCK, data=10)
    renode.expect(Action.PUSH_BYTE, Action.PUSH_WORD, Action.GET_DOUBLE_WORD)  # reads the reload value of SysTick
    renode.expect(Action.INTERRUPT, Action.GET_DOUBLE_WORD, Action.TICK_CLOCK)
    renode.disconnect()


@pytest.mark.parametrize("wire", list(WireFormat))
def test_an_interrupt_that_would_make_renode_stand_still_ends_it(wire: WireFormat) -> None:
    renode = Renode(Delayed(), wire, ticks=True)
    renode.memory[SYSTICK_RELOAD] = 24_999
    renode.send(Action.WRITE_DOUBLE_WORD, 0, 15)
    assert renode.hear(renode.main).action == Action.OK
    renode.send(Action.TICK_CLOCK, data=20)
    renode.expect(Action.PUSH_BYTE, Action.PUSH_WORD)
    if wire is WireFormat.V1_16:
        renode.expect(Action.GET_DOUBLE_WORD)
    renode.expect(Action.TICK_CLOCK)
    renode.finish()
    assert "its interrupt rose within a tick, where it would deadlock Renode" in str(renode.error)


def test_log_lines() -> None:
    device = Delayed()
    renode = Renode(device)
    renode.peer.log("grüße", LogLevel.WARNING)
    message = renode.hear(renode.other)
    assert (message.action, message.address, message.data) == (Action.LOG_MESSAGE, 5, 2)
    assert renode.other.recv(5, socket.MSG_WAITALL) == b"gr??e"
    renode.disconnect()


@pytest.mark.parametrize("action", [Action.INVALID, Action.STEP, Action.ERROR, 99, -1])
def test_what_no_peripheral_is_asked(action: int) -> None:
    renode = Renode(Delayed())
    renode.send(action)
    renode.finish()
    assert f"requests the action {int(action)}" in str(renode.error)


def test_a_wrong_reply_to_dma_ends_it() -> None:
    renode = Renode(Delayed())
    renode.send(Action.WRITE_DOUBLE_WORD, 0, 1)
    assert renode.hear(renode.other).action == Action.PUSH_BYTE
    renode.send(Action.READ_BYTE)
    renode.finish()
    assert "sent the action 21 where PUSH_CONFIRMATION was expected" in str(renode.error)


def test_a_lost_connection_ends_it() -> None:
    renode = Renode(Delayed())
    renode.main.sendall(b"\x17\x00")
    renode.main.close()
    renode.finish()
    assert "24 B were expected, 2 came" in str(renode.error)


@settings(max_examples=100)
@given(st.binary(max_size=96))
def test_any_bytes_are_served_or_one_clear_error(data: bytes) -> None:
    main, own = socket.socketpair()
    other, own_async = socket.socketpair()
    with main, other:
        main.sendall(data)
        main.shutdown(socket.SHUT_WR)
        peer = CosimulationPeer(
            RecordedDevice(), Stream(own, name="main", timeout_s=2), Stream(own_async, name="async", timeout_s=2)
        )
        with contextlib.suppress(RenodeError, AssertionError):
            peer.serve()
        peer.close()
