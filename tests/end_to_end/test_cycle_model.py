# SPDX-License-Identifier: Apache-2.0
"""The cycle model of benchmarks/cycles.py: how it reads instructions, and that it counts what the engines count."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import small_networks
from needs import require_cc, require_program

import ferrule

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import cycles
from cycles import Kind

# As arm-none-eabi-as and LLVM assemble them.
CODES = {
    "ldr r0, [r1]": ("6808", Kind.LOAD, 1),
    "str r0, [r1]": ("6008", Kind.OTHER, 1),
    "ldrsb r0, [r1, r2]": ("5688", Kind.LOAD, 1),
    "adds r0, r1, r2": ("1888", Kind.OTHER, 1),
    "push {r4, r5, lr}": ("b530", Kind.STORES, 3),
    "pop {r4, r5, pc}": ("bd30", Kind.LOADS, 3),
    "ldmia r0!, {r1, r2}": ("c806", Kind.LOADS, 2),
    "ldrd r0, r1, [r2]": ("e9d2 0100", Kind.LOADS, 2),
    "strd r0, r1, [r2]": ("e9c2 0100", Kind.STORES, 2),
    "ldrsb.w r0, [r1, #4]": ("f991 0004", Kind.LOAD, 1),
    "str.w r0, [r1, #4]": ("f8c1 0004", Kind.OTHER, 1),
    "smlad r0, r1, r2, r3": ("fb21 3002", Kind.OTHER, 1),
    "smmlar r0, r1, r2, r3": ("fb51 3012", Kind.OTHER, 1),
    "sdiv r0, r1, r2": ("fb91 f0f2", Kind.DIVISION, 1),
    "tbb [pc, r0]": ("e8df f000", Kind.OTHER, 1),
    "vldr s0, [r0]": ("ed90 0a00", Kind.LOAD, 1),
    "vmov s0, r0": ("ee00 0a10", Kind.OTHER, 1),
    "dls lr, r0": ("f040 e001", Kind.LOOP, 1),
    "le lr, .": ("f00f c001", Kind.LOOP, 1),
    "bl .": ("f000 f800", Kind.OTHER, 1),
    "vldrb.u8 q0, [r0]": ("ed90 1e00", Kind.VECTOR_MEMORY, 1),
    "vstrw.32 q0, [r0]": ("ed80 1f00", Kind.VECTOR_MEMORY, 1),
    "vadd.i32 q0, q1, q2": ("ef22 0844", Kind.VECTOR_ARITHMETIC, 1),
    "vmladava.s8 r0, q0, q1": ("eef0 0f22", Kind.VECTOR_ARITHMETIC, 1),
}


@pytest.mark.parametrize("text", CODES)
def test_the_kind_of_an_instruction(text: str) -> None:
    words, kind, registers = CODES[text]
    code = b"".join(int(word, 16).to_bytes(2, "little") for word in words.split())
    assert cycles.kind_of(code) == (kind, registers)


@pytest.mark.emu
@pytest.mark.cc
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_it_counts_the_instructions_of_an_inference(board: str) -> None:
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_program("qemu-system-arm", "apt install qemu-system-arm")
    require_cc()
    firmware = ferrule.compile(small_networks.dense(), board=board, toolchain="arm-none-eabi-gcc")
    found = cycles.estimate(firmware)
    counted = firmware.run(engine="qemu").count.per_inference
    assert counted - 100 <= found.instructions <= counted + 600
    assert found.instructions * 0.8 < found.low <= found.high < 4 * found.instructions
