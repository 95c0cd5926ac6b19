# SPDX-License-Identifier: Apache-2.0
"""Cortex-M: the M profile of the Arm architecture, Armv6-M to Armv8.1-M."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.architectures.architecture import Architecture, Elf, Gcc, PlatformClasses, Qemu, RenodeDefect, Words
from ferrule.architectures.cortex_m import cores as options
from ferrule.architectures.cortex_m.core_model import CortexMModel
from ferrule.architectures.cortex_m.fault_record import FIELDS, CortexMFault, fault_record
from ferrule.architectures.cortex_m.micro_programs import longest_loop_bytes, micro_programs
from ferrule.architectures.cortex_m.thumb import Thumb, selects_zero
from ferrule.architectures.cpu import NO_FPU, Cpu
from ferrule.architectures.micro_program import Areas, Assembly, MicroProgram
from ferrule.architectures.state import RegisterNames, Registers, Semihosting
from ferrule.backends.contribution import shipped

_VECTOR_TABLES = {"ferrule_vectors": 16, "ferrule_interrupt_vectors": 128}
"""The tables that start-up code and the bare-metal platform define, with their entries."""
_RESET = 1
"""The entry of the reset handler, behind that of the stack's top."""
_FRAME, _FLOAT_FRAME, _ALIGNMENT = 32, 104, 4
"""Bytes that the core saves at an exception, without and with floating-point registers, and the padding (Armv8-M ARM,
B3.19)."""
_FOLDER = Path(__file__).parent
_NUMBERED = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc")


@frozen
class CortexM(Architecture):
    """Armv6-M, Armv7-M and Armv8-M."""

    name = "Cortex-M"
    cores = options.CORES
    plain = Cpu(type="cortex-m3", fpu=NO_FPU, dsp=False)
    platform = PlatformClasses(
        core="CPU.CortexM",
        controller="IRQControllers.NVIC",
        window_bytes={"IRQControllers.NVIC": 0x1000, "Miscellaneous.DWT": 0x1000},
        devicetree="nvic",
    )
    gcc = Gcc(program="arm-none-eabi-gcc", package="gcc-arm-none-eabi", library="libnewlib-arm-none-eabi")
    clang_target = "arm-none-eabi"
    elf = Elf(machine="EM_ARM", title="Arm")
    instructions = Thumb()
    registers = RegisterNames(
        numbered=_NUMBERED,
        others=("xpsr",),
        link="lr",
        arguments=_NUMBERED[:4],
        gdb_architecture="arm",
        gdb_feature="org.gnu.gdb.arm.m-profile",
    )
    semihosting = Semihosting(
        before=b"",
        call=b"\xab\xbe",  # bkpt 0xAB
        operation="r0",
        argument="r1",
        breakpoint="bkpt",
    )
    qemu = Qemu(
        program="qemu-system-arm",
        package="qemu-system-arm",
        machine="mps2-an385",
        registers=r"\b(R\d\d|XPSR|PSR)=([0-9a-f]{8})",
        renamed={**{f"R{number:02d}": name for number, name in enumerate(_NUMBERED)}, "XPSR": "xpsr", "PSR": "xpsr"},
    )
    model = CortexMModel()
    assembly = Assembly(before=(".syntax unified", ".thumb"), function=(".thumb_func",))
    renode_defects = (
        RenodeDefect(
            last_release=(1, 16),
            cores=("cortex-m55",),
            is_wrong=selects_zero,
            what="CSET or other conditional selects with the zero register",
            why="Renode up to 1.16.1 reads the program counter in place of zero",
        ),
    )
    startup = shipped("src_c/startup", "include", folder=_FOLDER / "startup")
    bare_metal = shipped("platforms/bare_metal_core", folder=_FOLDER / "bare_metal")
    fault_words = len(FIELDS)

    @override
    def cpu(self, kind: str, *, fpu: str, dsp: bool, mve: bool, interrupts: int | None, file: str, place: str) -> Cpu:
        return options.cpu(kind, fpu=fpu, dsp=dsp, mve=mve, interrupts=interrupts, file=file, place=place)

    @override
    def zig_flags(self, cpu: Cpu) -> Words:
        return options.zig_flags(cpu)

    @override
    def gcc_flags(self, cpu: Cpu) -> Words:
        return options.gcc_flags(cpu)

    @override
    def handlers(self, symbols: Mapping[str, int], word: Callable[[int], int | None]) -> Sequence[int]:
        first = next(iter(_VECTOR_TABLES))
        if first not in symbols:
            raise LookupError(f"has no vector table {first}")
        words = [
            word(symbols[table] + 4 * entry) or 0
            for table, entries in _VECTOR_TABLES.items()
            if table in symbols
            for entry in range(entries)
        ]
        handlers = {each & ~1: None for each in words[_RESET + 1 :] if each}
        return [words[_RESET] & ~1, *handlers]

    @override
    def exception_bytes(self, cpu: Cpu) -> int:
        return _ALIGNMENT + (_FLOAT_FRAME if cpu.hard_float or cpu.mve else _FRAME)

    @override
    def longest_loop_bytes(self, cpu: Cpu) -> int | None:
        return longest_loop_bytes(cpu)

    @override
    def micro_programs(self, cpu: Cpu, used: Areas) -> tuple[MicroProgram, ...]:
        return micro_programs(cpu, used)

    @override
    def disassemble(self, code: bytes, address: int) -> str | None:
        if not code or find_spec("capstone") is None:
            return None
        capstone = import_module("capstone")
        decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
        first = next(decoder.disasm_lite(code, address, 1), None)
        return f"{first[2]} {first[3]}".strip() if first else None

    @override
    def caller(self, registers: Registers) -> int:
        return (registers.get("lr", 0) - 2) & ~1

    @override
    def fault_record(self, words: Sequence[int]) -> CortexMFault | None:
        return fault_record(words)
