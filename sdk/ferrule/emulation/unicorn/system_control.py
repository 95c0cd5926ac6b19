# SPDX-License-Identifier: Apache-2.0
"""The system control space (Armv7-M ARM, B3.2): what start-up code and counters touch.

Interrupts are not modelled: enabling one is remembered, and a write that would have to raise one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferrule.emulation.crash import EngineError
from ferrule.emulation.unicorn.guest import Guest

REGISTERS_BYTES = 0x1000

CPU_IDS: Mapping[str, int] = {
    "cortex-m0": 0x410C_C200,
    "cortex-m3": 0x410F_C231,
    "cortex-m4": 0x410F_C240,
    "cortex-m7": 0x411F_C272,
    "cortex-m33": 0x410F_D213,
}
"""Part and revision, the same as QEMU's."""

ICTR, ACTLR, CPUID, ICSR, VTOR, AIRCR = 0x004, 0x008, 0xD00, 0xD04, 0xD08, 0xD0C
SCR, CCR, SHCSR, CFSR, HFSR, DFSR, CPACR, DEMCR = 0xD10, 0xD14, 0xD24, 0xD28, 0xD2C, 0xD30, 0xD88, 0xDFC
SYSTICK = range(0x010, 0x020)
INTERRUPT_SET, INTERRUPT_CLEAR, INTERRUPT_PEND = range(0x100, 0x140), range(0x180, 0x1C0), range(0x200, 0x240)
PLAIN = (
    ACTLR, SCR, CCR, CPACR, 0xD18, 0xD1C, 0xD20, SHCSR, 0xD34, 0xD38, 0xD3C, 0xD84,  # CSSELR
    0xD94, 0xD98, 0xD9C, 0xDA0, 0xDC0, 0xDC4, 0xDD0, 0xDD8, 0xDDC, 0xDE0, 0xDE4, 0xDE8,  # MPU and SAU
    0xF34, 0xF38, 0xF3C,  # floating-point context
)  # fmt: skip
"""Offsets that keep what is written."""
TRCENA = 1 << 24
RESET_REQUEST = 1 << 2
PEND_BITS = 1 << 31 | 1 << 28 | 1 << 26
CCR_RESET = 1 << 9  # STKALIGN


class SystemControl:
    """The register window at 0xE000_E000."""

    def __init__(
        self, guest: Guest, address: int, cpu: str, vector_table: int, enable_trace: Callable[[bool], None]
    ) -> None:
        self._address = address
        self._enable_trace = enable_trace
        self._registers = {CPUID: CPU_IDS[cpu], VTOR: vector_table, CCR: CCR_RESET, AIRCR: 0xFA05_0000}
        guest.map_python(address, REGISTERS_BYTES, self.read, self.write)
        guest.synchronise(address, REGISTERS_BYTES)

    def read(self, offset: int, size_bytes: int) -> int:
        """Return a register or a part of one; reserved ones read as zero."""
        word = offset & ~3
        if word in SYSTICK:
            raise self._refusal(word, "SysTick is not modelled")
        if word in INTERRUPT_CLEAR:
            word = INTERRUPT_SET[word - INTERRUPT_CLEAR.start]
        value = self._registers.get(word, 0) >> 8 * (offset & 3)
        return value & (1 << 8 * size_bytes) - 1

    def write(self, offset: int, size_bytes: int, value: int) -> None:
        """Set a register or a part of one; read-only and reserved ones ignore it."""
        word, shift = offset & ~3, 8 * (offset & 3)
        mask = ((1 << 8 * size_bytes) - 1) << shift
        self._write_word(word, self._registers.get(word, 0) & ~mask | value << shift & mask, value << shift & mask)

    def _write_word(self, word: int, merged: int, written: int) -> None:
        if word in SYSTICK:
            raise self._refusal(word, "SysTick is not modelled")
        if (word == ICSR and written & PEND_BITS) or (word in INTERRUPT_PEND and written) or word == 0xF00:
            raise self._refusal(word, "interrupts are not modelled")
        if word == AIRCR and written & RESET_REQUEST and written >> 16 == 0x05FA:
            raise EngineError("the firmware asked for a reset (AIRCR.SYSRESETREQ)")
        if word in INTERRUPT_SET:
            self._registers[word] = self._registers.get(word, 0) | written
        elif word in INTERRUPT_CLEAR:
            enabled = INTERRUPT_SET[word - INTERRUPT_CLEAR.start]
            self._registers[enabled] = self._registers.get(enabled, 0) & ~written
        elif word in {CFSR, HFSR, DFSR}:
            self._registers[word] = self._registers.get(word, 0) & ~written
        elif word == VTOR:
            self._registers[word] = merged & ~0x7F
        elif word == DEMCR:
            self._registers[word] = merged
            self._enable_trace(bool(merged & TRCENA))
        elif word in PLAIN or 0x400 <= word < 0x5F0:  # interrupt priorities
            self._registers[word] = merged

    def _refusal(self, word: int, why: str) -> EngineError:
        return EngineError(
            f"the firmware uses the system register at {self._address + word:#010x}, but {why} by the unicorn engine",
            hint="run it with --engine qemu",
        )
