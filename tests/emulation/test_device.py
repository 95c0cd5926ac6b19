# SPDX-License-Identifier: Apache-2.0
"""Device models on unicorn's bus: a refused access is a bus fault of the core."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import guest
import pytest

from ferrule._typing import override
from ferrule.devices import (
    Access,
    BusErrorAt,
    DeviceFaultError,
    DeviceModel,
    Fault,
    FaultInjector,
    Register,
    RegisterModel,
    RegisterTable,
)
from ferrule.emulation import AttachedDevice, Engine, EngineError, Machine
from ferrule.emulation.unicorn.session import UnicornSession

pytestmark = [pytest.mark.cc, pytest.mark.emu]

BASE, LINE = 0x4F00_0000, 26
Build = Callable[[str, str], Machine]
BOARDS = ["mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505"]


class Scratch(RegisterModel):
    """Registers that allow only some kinds of access."""

    table = RegisterTable(
        name="scratch",
        registers=(
            Register("VALUE", 0x0),
            Register("CONSTANT", 0x4, access=Access.READ_ONLY, reset=0x1234),
            Register("SECRET", 0x8, access=Access.WRITE_ONLY),
        ),
        size_bytes=0x400,
    )  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.reset()


class Broken(Scratch):
    """A model with a programming error."""

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        raise ZeroDivisionError("the model is wrong")


def trace(engine: Engine, machine: Machine, model: DeviceModel) -> list[str]:
    """Run the firmware that misuses its device, and return its lines."""
    device = AttachedDevice(name="npu0", model=model, address=BASE, interrupt=LINE)
    with engine.start(replace(machine, devices=(device,))) as session:
        assert isinstance(session, UnicornSession)
        return guest.trace(session)


@pytest.mark.parametrize("board", BOARDS)
def test_the_firmware_handles_the_fault_and_goes_on(unicorn: Engine, build_exceptions: Build, board: str) -> None:
    """CFSR reports a precise fault, BFAR its address; a refused load changes no register, a refused store no device."""
    model = FaultInjector(Scratch())
    assert trace(unicorn, build_exceptions("refusal", board), model) == [
        "value 00000007",
        "constant 00001234",
        "write of constant: cfsr 00008200 bfar 4f000004",
        "read of secret: cfsr 00008200 bfar 4f000008",
        "byte: cfsr 00008200 bfar 4f000000",
        "nothing there: cfsr 00008200 bfar 4f000010",
        "in an it block: cfsr 00008200 bfar 4f000004",
        "value 00000007",
        ".",
    ]
    assert [(access.offset, access.write) for access in model.accesses] == [
        (0, True), (0, False), (4, False), (4, True), (8, False), (0, False), (0x10, True), (4, True), (0, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "access"),
    [
        (BusErrorAt(at=0), "write of 0x7 (4 B) to 0x4f00_0000 (VALUE of device npu0, which refuses it: injected"),
        (BusErrorAt(at=2), "read of 4 B at 0x4f00_0004 (CONSTANT of device npu0, which refuses it: injected"),
        (Fault(), "write of 0x63 (4 B) to 0x4f00_0004 (CONSTANT of device npu0, which refuses it: scratch: a write of"),
    ],
)
def test_the_crash_report_names_device_register_and_reason(
    unicorn: Engine, build_exceptions: Build, fault: Fault, access: str
) -> None:
    """The start-up's handler, which does not resume, records the fault."""
    machine = build_exceptions("refusal_recorded", "mps2-an386")
    with pytest.raises(EngineError, match=re.escape(access)) as caught:
        trace(unicorn, machine, FaultInjector(Scratch(), fault))
    assert str(caught.value).startswith("HardFault (bus error on a data access, address 0x4f00_000")
    assert caught.value.report is not None
    assert "main" in f"{caught.value.report.symbol} {caught.value.report.notes}"


def test_a_model_may_stop_the_session(
    unicorn: Engine, build_exceptions: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = AttachedDevice(name="npu0", model=Scratch(), address=BASE)
    with unicorn.start(replace(build_exceptions("refusal", "mps2-an386"), devices=(device,))) as session:
        monkeypatch.setattr(Scratch, "on_write", lambda *_: session.stop())
        assert session.channel().read(65536, 10)  # what was sent before the end comes first
        with pytest.raises(EngineError, match="the session is over"):
            session.channel().read(1, 10)


def test_a_mistake_of_the_model_names_device_register_and_place(unicorn: Engine, build_exceptions: Build) -> None:
    with pytest.raises(EngineError, match=r"device npu0: its model raised ZeroDivisionError: the model is") as caught:
        trace(unicorn, build_exceptions("refusal", "mps2-an386"), Broken())
    assert str(caught.value).splitlines()[0].endswith("in a write of VALUE (offset 0x0) at pc 0x0000_00f8 (store+0xc)")
    assert re.fullmatch(r"raised at test_device.py:\d+, in on_write", caught.value.hint or "")
    fault = caught.value.__cause__
    assert isinstance(fault, DeviceFaultError)
    assert (fault.device, fault.register, fault.offset, fault.pc) == ("npu0", "VALUE", 0, 0xF8)
    assert isinstance(fault.__cause__, ZeroDivisionError)
