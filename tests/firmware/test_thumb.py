# SPDX-License-Identifier: Apache-2.0
"""The instructions of an ELF file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ferrule.architectures import CORTEX_M, PLAIN, Effect, Flow
from ferrule.architectures.cortex_m.thumb import WIDE, effect, selects_zero
from ferrule.firmware.frames import Code

pytestmark = pytest.mark.cc

SOURCE = """
    .syntax unified
    .thumb
    .section .text.one, "ax"
    .global one
    .type one, %function
one:
    cmp r0, r1
    ldr r2, =0xEA5F901F
    cset r0, eq
    .inst.w 0xEA53901F
    .inst.w 0xEA5F81B2
    csel r1, r2, r3, lt
    cinc r0, r2, lt
    orrs r0, r1, r2
    movs.w r0, r2
    bx lr
    .ltorg
    .section .text.two, "ax"
two:
    nop
    .word 0xEA5F901F
    .section .rodata
    .word 0xEA5F901F
"""
EFFECTS = {
    "bx lr": (0x4770, 0, Effect(Flow.END)),
    "blx r3": (0x4798, 0, Effect(Flow.POINTER_CALL, 3)),
    "mov sp, r0": (0x4685, 0, Effect(sets_sp=True)),
    "add sp, r0, r1": (0xEB00, 0x0D01, Effect(sets_sp=True)),
    "lsl sp, r0, r1": (0xFA00, 0xFD01, Effect(sets_sp=True)),
    "lsl r3, r0, r1": (0xFA00, 0xF301, PLAIN),
    "vpop {d8}": (0xECBD, 0x8B02, Effect(pushed=-8)),
    "udf.w #0": (0xF7F0, 0xA000, Effect(Flow.END)),
    "smc #0": (0xF7F0, 0x8000, PLAIN),
}
SELECTS_ZERO = (0xEA5F901F, 0xEA53901F, 0xEA5F81B2)
"""The instructions in which register 15 is zero."""


def assemble(compiler: str, folder: Path) -> Path:
    """Return an ELF file of the source."""
    source, elf = folder / "code.s", folder / "code.elf"
    source.write_text(SOURCE)
    argv = [compiler, "-mcpu=cortex-m55", "-mthumb", "-nostdlib", "-Wl,--entry=one", "-Wl,-Ttext=0x1000"]
    subprocess.run([*argv, str(source), "-o", str(elf)], check=True, timeout=60)
    return elf


def test_code_is_told_from_data(arm_gcc: str, tmp_path: Path) -> None:
    found = list(Code(assemble(arm_gcc, tmp_path), CORTEX_M.instructions).instructions())
    words = [first << 16 | second if first >= WIDE else first for _, first, second in found]
    assert len(found) == 11
    assert found == sorted(found)
    assert words[0] == 0x4288
    assert words[-2:] == [0x4770, 0xBF00]
    assert tuple(word for word, (_, *each) in zip(words, found, strict=True) if selects_zero(*each)) == SELECTS_ZERO


@pytest.mark.parametrize("instruction", EFFECTS)
def test_the_effect_of_an_instruction(instruction: str) -> None:
    first, second, expected = EFFECTS[instruction]
    assert effect(0x1000, first, second) == expected


def test_a_move_is_no_select() -> None:
    assert not selects_zero(0xEA5F, 0x0002)  # movs.w r0, r2
    assert not selects_zero(0x4770, 0)
