# SPDX-License-Identifier: Apache-2.0
"""GDB and a guest that is replaced by a list of stops: after each, the guest halts, runs on, or is left alone."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from ferrule.architectures import CORTEX_M
from ferrule.devices import DeviceFaultError
from ferrule.emulation.gdb.packets import Event, Packet
from ferrule.emulation.unicorn.debugger import FAULTED, INTERRUPTED, TERMINATED, TRAPPED, Debugger
from ferrule.emulation.unicorn.layout import Stop

CONTINUE, STEP = Packet(payload=b"c"), Packet(payload=b"s")


class Processor:
    """Returns the given stops in order, and must not run any further."""

    def __init__(self, stops: Iterable[Stop | Exception]) -> None:
        self._stops = iter(stops)
        self.breakpoints: tuple[int, ...] = ()
        self.guest = SimpleNamespace(register=lambda _name: 0, registers_of=CORTEX_M.registers)

    def run(self, _instructions: int) -> Stop:
        return self._next()

    def step(self) -> Stop:
        return Stop.BUDGET

    def set_breakpoints(self, addresses: Iterable[int]) -> None:
        self.breakpoints = tuple(addresses)

    def _next(self) -> Stop:
        stop = next(self._stops, None)
        if isinstance(stop, Exception):
            raise stop
        assert stop is not None, "the guest runs although it should be halted"
        return stop


class Connection:
    """Delivers GDB's packets one by one; its events are delivered only to a poll."""

    connected = True

    def __init__(self, *packets: Packet | Event | None) -> None:
        self._packets = list(packets)
        self.sent: list[bytes] = []
        self.raw: list[bytes] = []

    def accept(self) -> None: ...

    def receive(self, timeout_s: float | None) -> Packet | Event | None:
        if timeout_s is not None:
            return self._packets.pop(0) if self._packets and isinstance(self._packets[0], Event) else None
        return self._packets.pop(0) if self._packets else None

    def send(self, data: bytes) -> None:
        self.sent.append(data)

    def send_raw(self, data: bytes) -> None:
        self.raw.append(data)

    def close(self) -> None:
        self.connected = False


def debugged(stops: Iterable[Stop | Exception], *packets: Packet | Event | None) -> tuple[Debugger, Connection]:
    connection = Connection(*packets)
    return Debugger(Processor(stops), connection), connection  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stops", "packets", "sent"),
    [
        ([Stop.BREAKPOINT, Stop.BREAKPOINT, Stop.BUDGET], [CONTINUE, CONTINUE, CONTINUE], [TRAPPED, TRAPPED]),
        ([Stop.BUDGET], [STEP, STEP, CONTINUE], [TRAPPED, TRAPPED]),
        ([Stop.BUDGET, Stop.BUDGET], [CONTINUE, Event.INTERRUPT, CONTINUE], [INTERRUPTED]),
    ],
    ids=["a breakpoint", "a step", "control-C"],
)
def test_the_guest_stands_until_gdb_goes_on(
    stops: list[Stop | Exception], packets: list[Packet | Event], sent: list[bytes]
) -> None:
    debugger, connection = debugged(stops, *packets)
    assert debugger.run(1000) is Stop.BUDGET
    assert connection.sent == sent


@pytest.mark.parametrize("stop", [Stop.LOCKUP, Stop.RESET, Stop.EXCEPTION, Stop.ERROR])
def test_gdb_sees_what_cannot_go_on(stop: Stop) -> None:
    debugger, connection = debugged([stop], CONTINUE, CONTINUE)
    assert debugger.run(1000) is stop
    assert connection.sent == [FAULTED, TERMINATED]
    assert not connection.connected


def test_a_gdb_that_left_stops_nothing() -> None:
    debugger, connection = debugged([Stop.BUDGET], None)
    assert debugger.run(1000) is Stop.BUDGET
    assert (connection.sent, connection.connected) == ([], False)


def test_only_a_damaged_packet_is_requested_again() -> None:
    debugger, connection = debugged([Stop.BUDGET], Event.DAMAGED, Event.INTERRUPT, Event.DAMAGED, CONTINUE)
    assert debugger.run(1000) is Stop.BUDGET
    assert connection.raw == [b"-", b"-", b"+"]


@pytest.mark.parametrize("last", [CONTINUE, Packet(payload=b"k"), None])
def test_gdb_can_look_at_the_guest_after_a_fault_of_a_model(last: Packet | None) -> None:
    fault = DeviceFaultError("the model is wrong", device="npu0")
    debugger, connection = debugged([Stop.BUDGET, fault], CONTINUE, last)
    assert debugger.run(1000) is Stop.BUDGET
    with pytest.raises(DeviceFaultError, match="the model is wrong"):
        debugger.run(1000)
    assert connection.sent[0] == FAULTED
    assert not connection.connected
