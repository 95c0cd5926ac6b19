# SPDX-License-Identifier: Apache-2.0
"""Pieces of code, and the cycles that ten of each take on each core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CORES = ("cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m7")


@dataclass(frozen=True)
class Case:
    """A piece of code; `timed_code.START` says what registers hold when it begins."""

    code: str
    cycles: Mapping[str, int]
    """Of ten pieces, by core."""


def _case(code: str, *cycles: int, cores: tuple[str, ...] = CORES) -> Case:
    return Case(code=code, cycles=dict(zip(cores, cycles, strict=True)))


_MAIN, _DSP, _FLOAT = CORES[2:], CORES[3:], CORES[3:]

CASES: Mapping[str, Case] = {
    # ---- data processing
    "sum": _case("adds r0, r0, #1", 10, 10, 10, 10, 10, 10),
    "sums": _case("adds r0, r0, #1\nadds r4, r4, #1", 20, 20, 20, 20, 20, 10),
    "nops": _case("nop\nnop", 20, 20, 20, 20, 10, 10),
    "extension": _case("uxtb r0, r0", 10, 10, 10, 10, 10, 10),
    "reversals": _case("rev r0, r0", 10, 10, 10, 10, 10, 20),
    "shifted": _case("add r0, r3, r0, lsl #2", 10, 10, 20, 20, cores=_MAIN),
    "shifted_constant": _case("orr r0, r0, #0x1fc0", 10, 10, 20, 10, cores=_MAIN),
    "fields": _case("ubfx r0, r3, #1, #2\nubfx r4, r3, #1, #2", 20, 20, 20, 20, cores=_MAIN),
    "field_and_shift": _case("ubfx r0, r3, #1, #2\nadd r4, r4, r3, lsl #2", 20, 20, 20, 20, cores=_MAIN),
    "extension_and_shift": _case("uxtb r0, r3\nadd r4, r4, r3, lsl #2", 20, 20, 20, 10, cores=_MAIN),
    "sum_and_address": _case("add.w r4, r1, r6\nnop.w\nldr r0, [r4]\nnop.w", 20, cores=("cortex-m7",)),
    "logic_and_address": _case("eor.w r4, r1, r6\nnop.w\nldr r0, [r4]\nnop.w", 30, cores=("cortex-m7",)),
    # ---- products and divisions
    "products": _case("muls r0, r3, r0\nmuls r4, r3, r4", 20, 20, 20, 20, 40, 20),
    "product_used": _case("mul r0, r3, r3\nadd r4, r0, #1", 20, 20, 30, 20, cores=_MAIN),
    "addends": _case("mla r0, r3, r3, r0", 20, 10, 10, 10, cores=_MAIN),
    "dsp_addends": _case("smlad r0, r3, r3, r0", 10, 10, 10, cores=_DSP),
    "long": _case("smull r0, r4, r3, r3", 40, 10, 10, 10, cores=_MAIN),
    "long_addends": _case("umlal r0, r4, r3, r3", 60, 10, 10, 10, cores=_MAIN),
    "division_of_zero": _case("sdiv r0, r6, r3", 20, 20, 20, 30, cores=_MAIN),
    "long_division": _case("udiv r0, r7, r12", 120, 120, 120, 120, cores=_MAIN),
    # ---- loads and stores
    "load": _case("ldr r0, [r1]\nadds r4, r0, #1", 30, 30, 30, 30, 30, 10),
    "byte": _case("ldrb r0, [r1]\nadds r4, r0, #1", 30, 30, 30, 30, 30, 20),
    "byte_chain": _case("ldrb r4, [r5]\nldr r0, [r4, r1]", 40, 40, 30, 30, 30, 40),
    "byte_and_store": _case("ldrb r0, [r1]\nstr r0, [r2]\nadds r4, r4, #1", 50, 50, 30, 30, 30, 15),
    "loads": _case("ldr r0, [r1]\nldr r4, [r2]\nnop", 50, 50, 40, 40, 20, 20),
    "loads_of_a_bank": _case("ldr r0, [r1]\nldr r4, [r1, #8]", 40, 40, 20, 20, 20, 20),
    "loads_of_both_banks": _case("ldr r0, [r1]\nldr r4, [r1, #4]", 40, 40, 20, 20, 20, 10),
    "load_and_store": _case("ldr r0, [r1]\nstr r0, [r2]\nadds r4, r4, #1", 50, 50, 30, 30, 30, 15),
    "store_and_load": _case("str r0, [r1]\nldr r4, [r2]\nnop", 50, 50, 50, 50, 20, 15),
    "unaligned": _case("adds r4, r1, #1\nldr r0, [r4]", 40, 40, 20, 20, cores=_MAIN),
    "stores": _case("str r0, [r1]", 20, 20, 10, 10, 10, 10),
    "stores_by_register": _case("str r0, [r1, r6]", 20, 20, 20, 20, 10, 10),
    "address": _case("adds r4, r1, r6\nldr r0, [r4]", 30, 30, 40, 40, 20, 20),
    "chain": _case("ldr r4, [r5]\nldr r0, [r4, r1]", 40, 40, 30, 30, 30, 30),
    "steps": _case("ldr r0, [r5], #4\nldr r4, [r5], #4", 40, 40, 20, 20, cores=_MAIN),
    "load_for_product": _case("ldr r0, [r1]\nmul r4, r0, r3", 30, 30, 30, 20, cores=_MAIN),
    "load_for_addend": _case("ldr r0, [r1]\nmla r0, r3, r3, r0", 40, 30, 20, 10, cores=_MAIN),
    "doubles": _case("ldrd r0, r4, [r1]\nstrd r0, r4, [r2]", 60, 60, 40, 20, cores=_MAIN),
    "stack": _case("push {r0, r4}\npop {r0, r4}", 60, 60, 60, 60, 40, 20),
    "larger_stack": _case("push {r0, r3, r4, r6}\npop {r0, r3, r4, r6}", 100, 100, 100, 100, 80, 40),
    # ---- jumps
    "branch": _case("b 1f\nnop\n1:", 30, 20, 20, 20, 20, 10),
    "not_taken": _case("cmp r6, #0\nbne 1f\n1:", 20, 20, 20, 20, 10, 10),
    "taken": _case("cmp r6, #0\nbeq 1f\nnop\n1:", 40, 30, 30, 30, 30, 90),
    "taken_apart": _case("cmp r6, #0\nbeq.w 1f\n.space 1018\n1:", 10, cores=("cortex-m7",)),
    "taken_later": _case("cmp r6, #0\nmov r0, r3\nbeq 1f\nnop\n1:", 50, 40, 40, 40, 30, 100),
    "loop": _case("movs r0, #10\n1: subs r0, #1\nbne 1b", 390, 300, 300, 300, 290, 350),
    "call": _case("bl 1f\nb 2f\n1: bx lr\n2:", 100, 70, 70, 70, 60, 40),
    "return": _case("bl 1f\nb 2f\n1: push {lr}\npop {pc}\n2: nop", 150, 120, 120, 120, 90, 60),
    "table": _case("tbb [pc, r6]\n.byte 1\n.byte 0\nnop", 70, 70, 50, 50, cores=_MAIN),
    "unaligned_target": _case("b.w 1f\n.balign 4\nnop\n1: add.w r0, r0, #1", 40, 40, 40, 10, cores=_MAIN),
    "if_then": _case("it eq\naddeq r0, r0, #1", 10, 10, 10, 20, cores=_MAIN),
    "if_then_taken": _case("cmp r6, #0\nit ne\naddne r4, r4, #1\nbeq 1f\nnop\n1:", 30, cores=("cortex-m33",)),
    "if_then_alone": _case("add.w r4, r4, #1\nit eq\naddeq.w r0, r0, #1", 30, 30, 30, 20, cores=_MAIN),
    # ---- others
    "special": _case("mrs r0, primask", 40, 30, 20, 20, 20, 30),
    "state": _case("cpsie i", 10, 10, 10, 10, 10, 30),
    "barrier": _case("dsb", 40, 30, 10, 10, 20, 30),
    "exception": _case("svc 0\nnop", 330, 310, 250, 250, 240, 260),
    "exceptions": _case(
        "ldr r4, =0xE000ED04\nldr r0, =0x14000000\nstr r0, [r4]\nisb\nnop", 510, 470, 360, 360, 360, 380
    ),
    # ---- floating point
    "float_sum": _case("vadd.f32 s0, s0, s1", 20, 20, 30, cores=_FLOAT),
    "float_sums": _case("vadd.f32 s0, s1, s1", 10, 10, 10, cores=_FLOAT),
    "float_product": _case("vmul.f32 s0, s0, s1", 20, 20, 30, cores=_FLOAT),
    "float_products": _case("vmul.f32 s0, s1, s1", 10, 10, 10, cores=_FLOAT),
    "float_fused": _case("vfma.f32 s0, s1, s2", 30, 30, 30, cores=_FLOAT),
    "float_addends": _case("vmla.f32 s0, s1, s2", 30, 30, 30, cores=_FLOAT),
    "float_fused_used": _case("vfma.f32 s0, s1, s2\nvmul.f32 s1, s0, s2", 60, 60, 80, cores=_FLOAT),
    "float_addends_used": _case("vmla.f32 s0, s1, s2\nvmul.f32 s1, s0, s2", 60, 60, 90, cores=_FLOAT),
    "float_fused_apart": _case(
        "vfma.f32 s0, s4, s5\nvfma.f32 s1, s4, s5\nvfma.f32 s2, s4, s5", 90, 90, 30, cores=_FLOAT
    ),
    "float_division": _case("vdiv.f32 s0, s1, s2", 140, 140, 160, cores=_FLOAT),
    "float_root": _case("vsqrt.f32 s0, s1", 140, 140, 140, cores=_FLOAT),
    "float_division_aside": _case("vdiv.f32 s0, s1, s2\n.rept 20\nnop.w\n.endr", 210, 210, 255, cores=_FLOAT),
    "float_moves": _case("vmov.f32 s0, s1", 10, 10, 10, cores=_FLOAT),
    "float_move": _case("vmov.f32 s0, s0", 10, 10, 30, cores=_FLOAT),
    "float_transfer": _case("vmov s0, r0\nvmov r0, s0", 20, 20, 60, cores=_FLOAT),
    "float_transfer_of_two": _case("vmov r0, r4, d0", 20, 20, 10, cores=_FLOAT),
    "float_status": _case("vmrs r0, fpscr", 10, 10, 10, cores=_FLOAT),
    "float_loads": _case("vldr s0, [r1]\nvldr s4, [r1, #8]", 20, 20, 20, cores=_FLOAT),
    "float_load": _case("vldr s0, [r1]\nvadd.f32 s1, s0, s0", 30, 20, 10, cores=_FLOAT),
    "float_stores": _case("vstr s0, [r1]", 20, 10, 10, cores=_FLOAT),
    "float_store": _case("vadd.f32 s0, s0, s1\nvstr s0, [r1]", 30, 20, 30, cores=_FLOAT),
    "float_doubles": _case("vldr d0, [r1]\nvstr d0, [r2]", 60, 40, 20, cores=_FLOAT),
    "float_stack": _case("vpush {s0-s3}\nvpop {s0-s3}", 100, 80, 40, cores=_FLOAT),
    "double_sum": _case("vadd.f64 d0, d0, d1", 40, cores=("cortex-m7",)),
    "double_sums": _case("vadd.f64 d0, d1, d1", 20, cores=("cortex-m7",)),
    "double_product": _case("vmul.f64 d0, d0, d1", 70, cores=("cortex-m7",)),
    "double_products": _case("vmul.f64 d0, d1, d1", 50, cores=("cortex-m7",)),
    "double_addends": _case("vfma.f64 d0, d1, d2", 80, cores=("cortex-m7",)),
    "double_apart": _case("vfma.f64 d0, d3, d4\nvfma.f64 d1, d3, d4", 140, cores=("cortex-m7",)),
    "double_division": _case("vdiv.f64 d0, d1, d2", 300, cores=("cortex-m7",)),
}

WITNESSES: Mapping[str, tuple[str, ...]] = {
    "alu": ("sum",),
    "field": ("extension",),
    "nop": (
        "nops",
        "exception",
    ),
    "multiply": ("products",),
    "load": (
        "load",
        "loads",
    ),
    "store": ("stores",),
    "multiple": ("stack",),
    "multiple_words": ("stack",),
    "branch": ("branch",),
    "refill_direct": ("branch",),
    "refill_link": ("call",),
    "refill_indirect": ("call",),
    "refill_load": ("return",),
    "special": ("special",),
    "state": ("state",),
    "barrier": ("barrier",),
    "exception_entry": ("exception",),
    "exception_exit": ("exception",),
    "exception_chain": ("exceptions",),
    "shifted": ("shifted",),
    "accumulate": ("addends",),
    "divide_least": ("division_of_zero",),
    "divide_most": ("long_division",),
    "it": ("if_then",),
    "it_folds": ("if_then",),
    "multiply_flags": ("products",),
    "issue": ("loads",),
    "alu_forward": ("unaligned",),
    "store_register": ("stores_by_register",),
    "load_double": ("doubles",),
    "store_double": ("doubles",),
    "table_branch": ("table",),
    "load_pipelined": ("loads",),
    "address_early": (
        "address",
        "unaligned",
    ),
    "alu_latency": (
        "sum",
        "address",
    ),
    "shifted_latency": ("shifted",),
    "field_latency": ("extension",),
    "multiply_latency": ("product_used",),
    "shifted_early": ("reversals",),
    "load_latency": ("chain",),
    "unaligned": ("unaligned",),
    "refill_unaligned": ("unaligned_target",),
    "load_after_store": ("store_and_load",),
    "multiply_long": ("long",),
    "accumulate_long": ("long_addends",),
    "float_add": ("float_sums",),
    "float_multiply": ("float_products",),
    "float_accumulate": ("float_addends",),
    "float_fused": ("float_fused",),
    "float_divide": ("float_division",),
    "float_root": ("float_root",),
    "float_holds": ("float_division_aside",),
    "float_move": ("float_moves",),
    "float_transfer_double": ("float_transfer_of_two",),
    "float_status": ("float_status",),
    "float_load": ("float_loads",),
    "float_store": ("float_stores",),
    "float_load_double": ("float_doubles",),
    "float_store_double": ("float_doubles",),
    "float_multiple": ("float_stack",),
    "float_multiple_words": ("float_stack",),
    "float_add_latency": ("float_sum",),
    "float_multiply_latency": ("float_product",),
    "float_accumulate_latency": (
        "float_addends",
        "float_addends_used",
    ),
    "float_fused_latency": (
        "float_fused",
        "float_fused_used",
    ),
    "float_move_latency": ("float_move",),
    "float_accumulate_late": ("float_addends",),
    "float_fused_late": ("float_fused",),
    "float_transfer": ("float_transfer",),
    "float_transfer_latency": ("float_transfer",),
    "float_store_late": ("float_store",),
    "load_narrow_latency": (
        "byte",
        "byte_chain",
    ),
    "accumulate_late": ("addends",),
    "store_late": (
        "load_and_store",
        "byte_and_store",
    ),
    "float_unit": (
        "float_fused",
        "float_fused_apart",
    ),
    "flags_refill": ("taken",),
    "load_multiply": ("load_for_product",),
    "float_load_latency": ("float_load",),
    "double_add": ("double_sums",),
    "double_multiply": ("double_products",),
    "double_accumulate": ("double_apart",),
    "double_divide": ("double_division",),
    "mispredict": ("taken",),
    "predictor_bits": ("taken_apart",),
    "double_add_latency": ("double_sum",),
    "double_multiply_latency": ("double_product",),
    "double_accumulate_latency": ("double_addends",),
    "pair_loads": ("loads",),
}
"""The cases that notice a change of a number; those of numbers that are not listed are searched for."""
