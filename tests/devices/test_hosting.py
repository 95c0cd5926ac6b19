# SPDX-License-Identifier: Apache-2.0
"""Hosted models: what is no fault of the model, and faults outside of register accesses."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import numpy as np
import pytest
from contract_device import CLEAR, DMA, PULSE, VALUE, ContractDevice, ContractLine, hang, raises

from ferrule._typing import override
from ferrule.devices import (
    Bus,
    BusError,
    DeviceFaultError,
    DeviceModel,
    FaultInjector,
    FaultyLine,
    InterruptLine,
    LineFault,
    LineFaultKind,
    MemoryBus,
    SerialModel,
)
from ferrule.devices.hosting import HostedModel, HostedSerialModel, created, hosted
from ferrule.errors import FerruleError


class Lost(MemoryBus):
    """A bus whose connection to the memory breaks."""

    @override
    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> np.ndarray:
        raise FerruleError("the connection broke")


class Late:
    """An interrupt line that the host cannot set at the moment."""

    def set(self, level: bool) -> None:
        raise FerruleError("not now")


def test_errors_of_the_host_are_no_faults_of_the_model() -> None:
    model = hosted(ContractDevice())
    model.attach(bus=Lost(), irq=Late())
    for offset, message in ((DMA, "the connection broke"), (PULSE, "not now")):
        with pytest.raises(FerruleError, match=f"^{message}$") as caught:
            model.write(offset, 4, 0)
        assert type(caught.value) is FerruleError
    assert model.fault is None


def test_the_first_refusal_is_kept() -> None:
    device = ContractDevice()
    model = HostedModel(device, name="npu0")
    for reason in ("first", "second"):
        device.on_value = raises(BusError(reason, address=VALUE))
        with pytest.raises(BusError, match=reason):
            model.read(VALUE, 4)
    assert str(model.first_refusal) == "first"


def test_a_line_damages_each_direction_by_itself() -> None:
    class Echo(SerialModel):
        @override
        def receive(self, data: bytes) -> bytes:
            return data

    lost = [LineFault(at=at, kind=LineFaultKind.LOST, to_device=to_device) for at, to_device in ((0, True), (1, False))]
    assert FaultyLine(Echo(), lost).receive(b"abc") == b"b"


@pytest.mark.parametrize("span", [(1.5, 4), ("x", 4), (-4, 4), (0, -1), (0, 2.0)])
def test_dma_of_no_range_is_a_fault(span: tuple[int, int]) -> None:
    device = ContractDevice()
    model = HostedModel(device, name="npu0")
    model.attach(bus=MemoryBus())
    device.on_value = lambda: device.bus.read(*span)
    with pytest.raises(
        DeviceFaultError, match=r"device npu0: its model raised (Type|Value)Error: .* in a read of VALUE"
    ):
        model.read(VALUE, 4)


def test_memory_views_reach_the_model() -> None:
    device, bus = ContractDevice(), MemoryBus()
    memory = bus.add(0x100, 4)
    hosted(device).attach(bus=bus)
    device.bus.view(np.uint32(0x100), 4, writable=True)[2] = 7  # type: ignore[arg-type]
    assert list(memory) == [0, 0, 7, 0]


class Odd(ContractDevice):
    """A device whose window, attaching or names are wrong."""

    size: object = 0

    @property  # type: ignore[misc]
    def size_bytes(self) -> int:  # type: ignore[override]
        return self.size() if callable(self.size) else self.size  # type: ignore[return-value, no-any-return]

    @override
    def attach(self, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        raise RuntimeError("not like that")

    @override
    def register_name(self, offset: int) -> str:
        raise KeyError(offset)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "returned 0, expected a positive number of bytes, in size_bytes"),
        ("4 KiB", "returned '4 KiB', expected a positive number"),
        (raises(ZeroDivisionError("z")), "raised ZeroDivisionError: z in size_bytes"),
    ],
)
def test_a_window_of_no_size(size: object, message: str) -> None:
    device = Odd()
    device.size = size
    with pytest.raises(DeviceFaultError, match=f"device npu0: its model {message}"):
        _ = HostedModel(device, name="npu0").size_bytes


def test_attaching_may_fail_and_names_are_not_needed() -> None:
    device = Odd()
    with pytest.raises(DeviceFaultError, match="its model raised RuntimeError: not like that in attach"):
        HostedModel(device, name="npu0").attach(bus=MemoryBus())
    device.on_value = lambda: -1
    with pytest.raises(DeviceFaultError, match=re.escape("a read of the register (offset 0x10)")) as caught:
        HostedModel(device, name="npu0").read(VALUE, 4)
    assert (caught.value.register, caught.value.offset) == (None, VALUE)


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("statistics", lambda: {"a": "b"}, r"returned \{'a': 'b'\}, expected finite numbers by name, in statistics"),
        ("statistics", lambda: {1: 2}, r"returned \{1: 2\}, expected finite numbers"),
        ("statistics", lambda: {"a": True}, r"returned \{'a': True\}, expected finite numbers"),
        ("statistics", lambda: {"a": float("nan")}, r"returned \{'a': nan\}, expected finite numbers"),
        ("statistics", lambda: None, "raised TypeError: .* in statistics"),
        ("statistics", raises(ZeroDivisionError("z")), "raised ZeroDivisionError: z in statistics"),
        ("failure", lambda: None, "returned None, expected a text, in failure"),
        ("failure", raises(ZeroDivisionError("z")), "raised ZeroDivisionError: z in failure"),
    ],
)
def test_wrong_answers(method: str, answer: Callable[[], object], message: str) -> None:
    device = ContractDevice()
    setattr(device, method, answer)
    model = HostedModel(FaultInjector(device), name="npu0")
    with pytest.raises(DeviceFaultError, match=f"device npu0: its model {message}"):
        (model.statistics if method == "statistics" else model.complaint)()


def test_statistics_pass_through_an_injector_of_faults() -> None:
    device = ContractDevice()
    assert HostedModel(device, name="npu0").statistics() == {}
    device.statistics = lambda: {"commands": 3, "rate": 0.5}  # type: ignore[method-assign]
    assert HostedModel(FaultInjector(device), name="npu0").statistics() == {"commands": 3, "rate": 0.5}


def test_a_failure() -> None:
    device = ContractDevice()
    assert HostedModel(FaultInjector(device), name="npu0").complaint() == ""
    device.failure = lambda: "no"  # type: ignore[method-assign]
    assert HostedModel(FaultInjector(device), name="npu0").complaint() == "no"


def test_after_a_fault_the_model_is_called_no_more() -> None:
    device = ContractDevice()
    model = HostedModel(device, name="npu0")
    device.on_value = raises(RuntimeError("first"))
    with pytest.raises(DeviceFaultError) as first:
        model.read(VALUE, 4)
    for call in (lambda: model.read(CLEAR, 4), lambda: model.write(CLEAR, 4, 1), lambda: model.advance(1)):
        with pytest.raises(DeviceFaultError) as again:
            call()
        assert again.value is first.value


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(("value", "text"), [(Unprintable(), "a Unprintable"), ("x" * 99, "'" + "x" * 56 + "...")])
def test_values_in_messages(value: object, text: str) -> None:
    device = ContractDevice()
    device.on_value = lambda: value
    with pytest.raises(DeviceFaultError, match=re.escape(f"its model returned {text}, expected")):
        hosted(device).read(VALUE, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (raises(ZeroDivisionError("z")), "its model cannot be created: ZeroDivisionError: z"),
        (raises(SystemExit(0)), "its model cannot be created: SystemExit: 0"),
        (lambda: None, "its model is None, expected a DeviceModel"),
    ],
)
def test_a_model_that_cannot_be_created(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DeviceFaultError, match=f"device npu0: {message}"):
        created(make, DeviceModel, name="npu0")  # type: ignore[type-abstract]


def test_the_shorter_limit_counts_through_all_wrappers() -> None:
    device, line = ContractDevice(), ContractLine(lambda: b"")
    device.deadline_s = line.deadline_s = 5
    assert HostedModel(FaultInjector(device), name="").deadline_s == 5
    assert HostedModel(device, name="", limit_s=2).deadline_s == 2
    assert HostedModel(device, name="", limit_s=9).deadline_s == 5
    assert HostedSerialModel(FaultyLine(line, ()), name="").deadline_s == 5


class Deaf(SerialModel):
    """Catches every exception once, and returns too late."""

    def __init__(self) -> None:
        super().__init__()
        self.deadline_s = 0.05

    @override
    def receive(self, data: bytes) -> bytes:
        try:
            hang()
        except BaseException:  # noqa: BLE001
            return b"late"
        return b""


def test_a_model_that_catches_its_interruption_is_late_all_the_same() -> None:
    model = HostedSerialModel(Deaf(), name="far")
    assert model.receive(b"x") == b"late"
    with pytest.raises(DeviceFaultError, match=r"device far: its model did not return within \d+.\d s in receive"):
        model.receive(b"x")


def test_deadlines_hold_in_the_child_of_a_fork() -> None:
    model = HostedSerialModel(ContractLine(hang), name="far")
    model.deadline_s = 0.05
    child = os.fork()
    if not child:
        try:
            model.receive(b"x")
        except DeviceFaultError:
            os._exit(7)
        os._exit(8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("value", [-1, 1 << 32, None])
def test_an_injector_of_faults_hides_no_wrong_answer(value: object) -> None:
    device = ContractDevice()
    device.on_value = lambda: value
    with pytest.raises(DeviceFaultError, match=r"device npu0: its model returned .* in a read of VALUE"):
        HostedModel(FaultInjector(device), name="npu0").read(VALUE, 4)
