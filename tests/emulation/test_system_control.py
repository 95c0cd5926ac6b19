# SPDX-License-Identifier: Apache-2.0
"""Registers of the system control space, on a core that does not run."""

from __future__ import annotations

from functools import partial

import pytest
from needs import require_module
from system_control import read_register, write_register

from ferrule.architectures.cortex_m.core_model import CPU_IDS, CortexMModel
from ferrule.boards import load_board
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.processor import Processor

pytestmark = [pytest.mark.cc, pytest.mark.emu]

ICTR, CPUID, ICSR, VTOR, AIRCR, CCR, CFSR, CPACR = 0x004, 0xD00, 0xD04, 0xD08, 0xD0C, 0xD14, 0xD28, 0xD88
CSR, RVR, CVR, CALIB = 0x010, 0x014, 0x018, 0x01C
ENABLE, DISABLE, PEND, UNPEND, ACTIVE, PRIORITY = 0x100, 0x180, 0x200, 0x280, 0x300, 0x400
SHPR1, SHCSR, FPCCR, STIR = 0xD18, 0xD24, 0xF34, 0xF00
MPU_TYPE, MPU_RNR, MPU_RBAR, MPU_RASR, MPU_RBAR_A1, MPU_RASR_A1 = 0xD90, 0xD98, 0xD9C, 0xDA0, 0xDA4, 0xDA8
TABLE = 0x1000_0000


def core(board: str) -> Processor:
    """Return a core at reset, with its vectors at 0x1000_0000."""
    return Processor(Guest(load_board(board)), load_board(board), TABLE)


@pytest.fixture
def processor(host_cc: tuple[str, ...]) -> Processor:
    """The processor of a board with a Cortex-M4."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    return core("mps2-an386")


@pytest.fixture
def secure(host_cc: tuple[str, ...]) -> Processor:
    """The processor of a board with a Cortex-M33."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    return core("mps2-an505")


def test_every_core_has_an_identity() -> None:
    assert CPU_IDS.keys() == CortexMModel.unicorn.models.keys()


def test_reset_values(processor: Processor) -> None:
    read = partial(read_register, processor)
    assert read(CPUID, 4) == 0x410F_C240
    assert read(VTOR, 4) == TABLE
    assert read(CCR, 4) == 0x200
    assert read(ICTR, 4) == 7
    assert read(ICSR, 4) == 1 << 11  # RETTOBASE is set in thread mode, where any return is one to the base level
    assert read(CSR, 4) == 4
    assert read(CALIB, 4) == 1 << 31
    assert read(FPCCR, 4) == 0xC000_0000
    assert read(MPU_TYPE, 4) == 8 << 8
    assert read(0xF5C, 4) == 0


def test_armv8_reset_values(secure: Processor) -> None:
    assert read_register(secure, CPUID, 4) == 0x410F_D213
    assert read_register(secure, CCR, 4) == 0x201
    assert read_register(secure, ICTR, 4) == 14


def test_read_only_and_reserved_registers_ignore_writes(processor: Processor) -> None:
    for register in (ICTR, CPUID, CALIB, MPU_TYPE, ACTIVE, 0xD40, 0xFD0):
        before = read_register(processor, register, 4)
        write_register(processor, register, 4, 0xFFFF_FFFF)
        assert read_register(processor, register, 4) == before


def test_vector_table_is_aligned(processor: Processor) -> None:
    write_register(processor, VTOR, 4, 0x2000_00FF)
    assert read_register(processor, VTOR, 4) == 0x2000_0080


def test_priority_grouping_needs_the_key(processor: Processor) -> None:
    write_register(processor, AIRCR, 4, 0x0000_0300)
    assert read_register(processor, AIRCR, 4) == 0xFA05_0000
    write_register(processor, AIRCR, 4, 0x05FA_0300)
    assert read_register(processor, AIRCR, 4) == 0xFA05_0300


def test_parts_of_registers(processor: Processor) -> None:
    write_register(processor, PRIORITY, 4, 0x1122_3344)
    write_register(processor, PRIORITY + 1, 1, 0xAA)
    assert read_register(processor, PRIORITY, 4) == 0x1122_AA44
    assert read_register(processor, PRIORITY + 2, 2) == 0x1122
    write_register(processor, CPACR + 2, 1, 0xF0)
    assert read_register(processor, CPACR, 4) == 0x00F0_0000
    write_register(processor, SHPR1 + 2, 1, 0x40)
    assert read_register(processor, SHPR1, 4) == 0x0040_0000


def test_interrupt_enables_set_and_clear(processor: Processor) -> None:
    write_register(processor, ENABLE + 4, 4, 0b0110)
    write_register(processor, ENABLE + 4, 4, 0b1000)
    write_register(processor, DISABLE + 4, 4, 0b0010)
    assert read_register(processor, ENABLE + 4, 4) == read_register(processor, DISABLE + 4, 4) == 0b1100
    assert processor.is_enabled(34)
    assert not processor.is_enabled(33)
    write_register(processor, ENABLE, 1, 0b1)
    write_register(processor, ENABLE + 1, 1, 0b1)
    assert read_register(processor, ENABLE, 4) == 0x101


def test_lines_that_do_not_exist_stay_off(processor: Processor) -> None:
    write_register(processor, ENABLE + 0x1C, 4, 0xFFFF_FFFF)
    assert read_register(processor, ENABLE + 0x1C, 4) == 0x0000_FFFF  # lines 224 to 239
    processor.set_irq(300, True)
    assert read_register(processor, PEND + 0x24, 4) == 0


def test_a_rising_line_is_pending_and_holds(processor: Processor) -> None:
    processor.set_irq(5, True)
    assert read_register(processor, PEND, 4) == 1 << 5
    write_register(processor, UNPEND, 4, 1 << 5)
    assert read_register(processor, PEND, 4) == 1 << 5  # the line is still high
    processor.set_irq(5, False)
    assert read_register(processor, PEND, 4) == 1 << 5
    write_register(processor, UNPEND, 4, 1 << 5)
    assert read_register(processor, PEND, 4) == 0
    write_register(processor, STIR, 4, 7)
    assert read_register(processor, PEND, 4) == 1 << 7
    assert read_register(processor, ICSR, 4) & (1 << 22)


def test_system_exceptions_pend(processor: Processor) -> None:
    write_register(processor, ICSR, 4, 1 << 28 | 1 << 26)
    assert read_register(processor, ICSR, 4) >> 12 == (1 << 28 | 1 << 26 | 14 << 12) >> 12
    write_register(processor, ICSR, 4, 1 << 27)
    assert read_register(processor, ICSR, 4) >> 12 == (1 << 26 | 15 << 12) >> 12


def test_fault_handlers_are_enabled_one_by_one(processor: Processor) -> None:
    write_register(processor, SHCSR, 4, 1 << 17)
    assert read_register(processor, SHCSR, 4) == 1 << 17


def test_regions_are_kept(processor: Processor, secure: Processor) -> None:
    write_register(processor, MPU_RBAR, 4, 0x2000_0000 | 1 << 4 | 3)
    write_register(processor, MPU_RASR, 4, 0x1234_5678)
    assert read_register(processor, MPU_RNR, 4) == 3
    assert read_register(processor, MPU_RBAR_A1, 4) == 0x2000_0003
    assert read_register(processor, MPU_RASR_A1, 4) == 0x1234_5678
    write_register(secure, MPU_RNR, 4, 4)
    write_register(secure, MPU_RBAR_A1, 4, 0x3800_0000)
    write_register(secure, MPU_RNR, 4, 5)
    assert read_register(secure, MPU_RBAR, 4) == 0x3800_0000


def test_systick_stands_until_it_is_enabled(processor: Processor) -> None:
    write_register(processor, RVR, 4, 0xFFFF_FFFF)
    assert read_register(processor, RVR, 4) == 0x00FF_FFFF
    assert read_register(processor, CVR, 4) == 0
    write_register(processor, CSR, 4, 3)
    assert read_register(processor, CSR, 4) == 7
    write_register(processor, CSR, 4, 0)
    assert read_register(processor, CSR, 4) == 4


@pytest.mark.parametrize(
    ("board", "kept"), [("mps2-an386", 0xFF), ("stm32f4_discovery", 0xF0), ("nrf52840dk", 0xE0), ("microbit", 0xC0)]
)
def test_priorities_have_the_bits_of_the_chip(host_cc: tuple[str, ...], board: str, kept: int) -> None:
    assert host_cc
    chip = core(board)
    write_register(chip, PRIORITY, 4, 0xFFFF_FFFF)
    assert read_register(chip, PRIORITY, 4) == kept * 0x0101_0101
