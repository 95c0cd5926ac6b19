# SPDX-License-Identifier: Apache-2.0
"""The contract of devices in unit tests: a misbehaving device is named, and a right one is not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from needs import require_module
from woofles_bench import DRIVER, OK, TIMEOUT, Job, WooflesBench, jobs

from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.command import Command
from ferrule.backends.woofles.model import WooflesModel
from ferrule.devices import Fault, NeverDone
from ferrule.devices.contract import Breach, ContractError
from ferrule.errors import FerruleError
from ferrule.testing import Adapter, CData, build_adapter
from ferrule.testing.kit_contract import DeviceCall, KitContract, Shared

pytestmark = pytest.mark.cc

NAME = "FaultInjector at 0x40100000"
Work = Callable[[WooflesModel, Command], None]


@pytest.fixture(scope="module")
def adapter() -> Adapter[Any]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    return build_adapter("bare_metal", **DRIVER)


@pytest.fixture
def job() -> Job:
    return jobs()["add"]


class Setup:
    """A driver with its operands in shared memory, each with its role."""

    def __init__(self, adapter: Adapter[Any], job: Job, *, size: int = 24, interrupt: bool = False) -> None:
        adapter.reset()
        self.bench = WooflesBench(adapter, interrupt=interrupt)
        self.layer = self.bench.layer(job)
        self.inputs = [adapter.new("int8_t[]", job.arrays[name].tolist()) for name in ("input", "second")]
        self.output: CData = adapter.new("int8_t[]", size)
        for name, value in zip(("input", "second"), self.inputs, strict=True):
            adapter.share(value, access="read", name=name)
        self.address = adapter.share(self.output, access="write", name="output")

    def run(self, fault: Fault | None = None) -> int:
        """Activate, open, execute with a fault, and close, as an executor does."""
        bench = self.bench
        assert bench.lib.ferrule_device_activate(bench.handle) == OK
        status = int(bench.lib.ferrule_device_open(bench.handle))
        bench.inject(fault)
        status = status or int(bench.lib.woofles_execute(bench.handle, self.layer, *self.inputs, self.output))
        closed = int(bench.lib.ferrule_device_close(bench.handle))
        return status or closed or int(bench.lib.ferrule_device_deactivate(bench.handle))


EXECUTE = arithmetic.execute


@pytest.fixture
def misbehave(monkeypatch: pytest.MonkeyPatch) -> Callable[[Work], None]:
    """Replaces what the device does at the end of a command, after its work."""

    def replaced(work: Work) -> None:
        def finish(self: WooflesModel, command: Command) -> None:
            monkeypatch.setattr(arithmetic, "execute", lambda command, _: work(self, command))
            ending(self, command)

        ending = WooflesModel._finish
        monkeypatch.setattr(WooflesModel, "_finish", finish)

    return replaced


def right(model: WooflesModel, command: Command) -> None:
    EXECUTE(command, model.bus)


def with_(more: Work) -> Work:
    """Return the right work, followed by more."""

    def work(model: WooflesModel, command: Command) -> None:
        right(model, command)
        more(model, command)

    return work


BREACHES: dict[str, tuple[Work, Breach, str]] = {
    "one byte more": (
        with_(lambda model, command: model.bus.write(command.output, bytes(25))),
        *(Breach.OUTSIDE, "writes 25 B at 0x.*: 1 B beyond the end of 'output' "),
    ),
    "the input": (
        with_(lambda model, command: model.bus.write(command.second + 23, b"\0")),
        *(Breach.DIRECTION, "writes 1 B at 0x.*: 'second', which the command only reads"),
    ),
    "nothing": (
        lambda model, command: None,
        *(Breach.UNWRITTEN, "command 1 is over, and neither .* has written bytes 0 to 23 of its output 'output'"),
    ),
    "all but one byte": (
        lambda model, command: model.bus.write(command.output, bytes(23)),
        *(Breach.UNWRITTEN, "has written byte 23 of its output 'output'"),
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
@pytest.mark.parametrize("interrupt", [False, True])
def test_a_breach_names_the_device(
    adapter: Adapter[Any], job: Job, misbehave: Callable[[Work], None], breach: str, interrupt: bool
) -> None:
    work, kind, text = BREACHES[breach]
    setup = Setup(adapter, job, interrupt=interrupt)
    misbehave(work)
    with pytest.raises(ContractError, match=text) as caught:
        setup.run()
    assert (caught.value.breach, caught.value.device, caught.value.command) == (kind, NAME, "command 1")
    if kind is not Breach.UNWRITTEN:
        assert "asked for by a write of 0x1 to QUEUE_HEAD" in str(caught.value)


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_right_device(adapter: Adapter[Any], job: Job, misbehave: Callable[[Work], None], interrupt: bool) -> None:
    """Also one that writes the last byte by itself, and twice."""
    setup = Setup(adapter, job, interrupt=interrupt)
    misbehave(
        with_(lambda model, command: model.bus.write(command.output + 23, model.bus.read(command.output + 23, 1)))
    )
    for _ in range(2):
        assert setup.run() == OK
        assert list(setup.output) == job.expected.tolist()


def test_a_view_for_writing_counts_as_written(
    adapter: Adapter[Any], job: Job, misbehave: Callable[[Work], None]
) -> None:
    setup = Setup(adapter, job)
    misbehave(lambda model, command: model.bus.view(command.output, 24, writable=True).fill(3))
    assert setup.run() == OK
    assert list(setup.output) == [3] * 24


def _late(monkeypatch: pytest.MonkeyPatch, setup: Setup) -> list[bool]:
    """Let the device write its output at each step of time in which the list says so."""
    armed: list[bool] = []
    advance = WooflesModel.advance

    def later(self: WooflesModel, cycles: int) -> None:
        advance(self, cycles)
        if armed and armed.pop():
            self.bus.write(setup.address, bytes(4))

    monkeypatch.setattr(WooflesModel, "advance", later)
    return armed


@pytest.mark.parametrize("aborted", [False, True])
def test_a_write_after_the_end(adapter: Adapter[Any], job: Job, monkeypatch: pytest.MonkeyPatch, aborted: bool) -> None:
    """Of a command that was aborted, too: the driver resets the device, and the device says that it is idle."""
    setup = Setup(adapter, job)
    armed = _late(monkeypatch, setup)
    if aborted:
        monkeypatch.setattr(WooflesModel, "_finish", lambda self, command: None)
    assert setup.run() == (TIMEOUT if aborted else OK)
    assert not setup.bench.lib.ferrule_device_is_lost(setup.bench.handle)
    armed.append(True)
    adapter.fakes.advance_ms(20)
    end = "was aborted" if aborted else "is over"
    with pytest.raises(ContractError, match=f"the device has no command; after command 1, which {end}") as caught:
        setup.bench.window.access(setup.bench.window.base, 4, write=False, value=0)
    assert caught.value.breach is Breach.LATE


def test_a_failed_command_may_leave_its_output(adapter: Adapter[Any], job: Job) -> None:
    setup = Setup(adapter, job)
    assert setup.run(NeverDone(since=3)) != OK


def test_memory_without_a_role(adapter: Adapter[Any], job: Job, misbehave: Callable[[Work], None]) -> None:
    """Only its time is checked: a device may write it while it has a command."""
    setup = Setup(adapter, job)
    free = adapter.new("uint32_t[4]")
    address = adapter.share(free)
    misbehave(with_(lambda model, command: model.bus.write(address, bytes(16))))
    assert setup.run() == OK


def test_a_driver_that_does_not_submit_has_a_command_while_it_is_open() -> None:
    contract = KitContract(pytest.fail)
    contract.share(Shared(data=np.zeros(4, np.uint8), address=64, access="write", name="output"))
    contract.add_device("npu", tensor=1, transfer=1)
    told: Any = SimpleNamespace(handle=1, ended=False, status=0, submits=False, is_lost=False)
    told.call, told.is_open = DeviceCall.OPENS, False
    contract.called(told)
    contract.accessed("npu")
    for call, is_open, breach in ((DeviceCall.OPENS, True, None), (DeviceCall.CLOSES, False, Breach.LATE)):
        told.call, told.is_open, told.ended = call, is_open, True
        contract.called(told)
        found = contract.judge("npu", 64, 4, write=True, cause=str)
        assert getattr(found, "breach", None) is breach


def test_alignment(adapter: Adapter[Any], job: Job) -> None:
    """`share` keeps the alignment of a pointer, so that a driver's own check sees it, and the device's is checked."""
    adapter.reset()
    raw = adapter.new("int8_t[]", 8192)
    adapter.keep(raw)
    first = int(adapter.ffi.cast("uintptr_t", raw))
    for offset in (0, 1, 7, 16, 64, 4095):
        skip = (offset - first) % 4096
        address = adapter.share(raw + skip, size_bytes=1, name="operand")
        assert address % 4096 == offset
        assert adapter.lib.ferrule_bus_address(raw + skip) == address
        adapter.reset()
        adapter.keep(raw)
    setup = Setup(adapter, job)
    contract = setup.bench.adapter._space.contract
    contract.add_device(NAME, tensor=4096, transfer=1)
    with pytest.raises(ContractError, match="it needs tensors at multiples of 4096") as caught:
        setup.run()
    assert caught.value.breach is Breach.ALIGNMENT


def test_the_null_pointer_has_an_address_as_on_a_board(adapter: Adapter[Any]) -> None:
    adapter.reset()
    assert adapter.lib.ferrule_bus_address(adapter.ffi.NULL) == 0


def test_an_unknown_access(adapter: Adapter[Any]) -> None:
    adapter.reset()
    with pytest.raises(FerruleError, match="there is no access 'writes'"):
        adapter.share(adapter.new("int8_t[4]"), access="writes")  # type: ignore[arg-type]


def test_two_fills(adapter: Adapter[Any], job: Job) -> None:
    """A function that leaves a byte is found, whichever value the byte has."""
    adapter.reset()
    output = adapter.new("int8_t[16]")
    view = np.frombuffer(adapter.ffi.buffer(output), np.uint8)
    adapter.check_written(lambda: view.fill(0xA5), output)
    adapter.check_written(lambda: view.fill(0x5A), output)

    def all_but_one() -> None:
        view[:15] = 1

    with pytest.raises(FerruleError, match=r"1 B of 'int8_t\[16\]' were written by nobody, the first at byte 15"):
        adapter.check_written(all_but_one, output)
