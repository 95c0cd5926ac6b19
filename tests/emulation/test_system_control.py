# SPDX-License-Identifier: Apache-2.0
"""Registers of the system control space, without a core behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from ferrule.emulation import EngineError
from ferrule.emulation.unicorn.guest import MODELS, Guest
from ferrule.emulation.unicorn.system_control import CPU_IDS, SystemControl

CPUID, ICSR, VTOR, AIRCR, CCR, CFSR, CPACR, DEMCR = 0xD00, 0xD04, 0xD08, 0xD0C, 0xD14, 0xD28, 0xD88, 0xDFC
ENABLE, DISABLE, PEND, PRIORITY = 0x100, 0x180, 0x200, 0x400


class NoCore:
    """Takes the place of the guest, which the registers only attach themselves to."""

    def map_python(self, address: int, size_bytes: int, read: Callable[..., int], write: Callable[..., None]) -> None:
        """Attach nothing."""

    def synchronise(self, address: int, size_bytes: int) -> None:
        """Synchronise nothing."""


@pytest.fixture
def trace() -> list[bool]:
    """Every change of DEMCR.TRCENA."""
    return []


@pytest.fixture
def control(trace: list[bool]) -> SystemControl:
    """The registers of a Cortex-M4 with its vectors at 0x1000_0000."""
    return SystemControl(cast("Guest", NoCore()), 0xE000_E000, "cortex-m4", 0x1000_0000, trace.append)


def test_every_core_has_an_identity() -> None:
    assert CPU_IDS.keys() == MODELS.keys()


def test_reset_values(control: SystemControl) -> None:
    assert control.read(CPUID, 4) == 0x410F_C240
    assert control.read(VTOR, 4) == 0x1000_0000
    assert control.read(CCR, 4) == 0x200
    assert control.read(ICSR, 4) == control.read(0xF5C, 4) == 0


def test_read_only_and_reserved_registers_ignore_writes(control: SystemControl) -> None:
    for register in (CPUID, 0xD40, 0xFD0):
        before = control.read(register, 4)
        control.write(register, 4, 0xFFFF_FFFF)
        assert control.read(register, 4) == before


def test_vector_table_is_aligned(control: SystemControl) -> None:
    control.write(VTOR, 4, 0x2000_00FF)
    assert control.read(VTOR, 4) == 0x2000_0080


def test_trace_follows_demcr(control: SystemControl, trace: list[bool]) -> None:
    control.write(DEMCR, 4, 1 << 24)
    control.write(DEMCR, 4, 0)
    assert trace == [True, False]


def test_status_is_cleared_by_ones(control: SystemControl) -> None:
    control._registers[CFSR] = 0b1011
    control.write(CFSR, 4, 0b0010)
    assert control.read(CFSR, 4) == 0b1001
    control.write(CFSR, 1, 0b0001)
    assert control.read(CFSR, 4) == 0b1000


def test_parts_of_registers(control: SystemControl) -> None:
    control.write(PRIORITY, 4, 0x1122_3344)
    control.write(PRIORITY + 1, 1, 0xAA)
    assert control.read(PRIORITY, 4) == 0x1122_AA44
    assert control.read(PRIORITY + 2, 2) == 0x1122
    control.write(CPACR + 2, 1, 0xF0)
    assert control.read(CPACR, 4) == 0x00F0_0000


def test_interrupt_enables_set_and_clear(control: SystemControl) -> None:
    control.write(ENABLE, 4, 0b0110)
    control.write(ENABLE, 4, 0b1000)
    control.write(DISABLE, 4, 0b0010)
    assert control.read(ENABLE, 4) == control.read(DISABLE, 4) == 0b1100


@pytest.mark.parametrize(
    ("register", "value"),
    [(0x010, 0), (0x014, 1), (ICSR, 1 << 28), (ICSR, 1 << 31), (PEND, 1), (0xF00, 3), (AIRCR, 0x05FA_0004)],
)
def test_what_needs_interrupts_is_refused(control: SystemControl, register: int, value: int) -> None:
    with pytest.raises(EngineError):
        control.write(register, 4, value)


def test_systick_is_not_read_as_zero(control: SystemControl) -> None:
    with pytest.raises(EngineError, match="SysTick"):
        control.read(0x018, 4)


def test_a_reset_needs_the_key(control: SystemControl) -> None:
    control.write(AIRCR, 4, 0x0000_0004)
    assert control.read(AIRCR, 4) == 0xFA05_0000
