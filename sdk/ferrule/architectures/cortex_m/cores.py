# SPDX-License-Identifier: Apache-2.0
"""The supported cores, their optional features, and the compilers' flags for them."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule._frozen import frozen
from ferrule.architectures.cpu import NO_FPU, Core, Cpu
from ferrule.errors import FerruleError

FPUS = (NO_FPU, "fpv4-sp-d16", "fpv5-sp-d16", "fpv5-d16")


@frozen
class CortexMCore(Core):
    """The options of a core that Arm leaves to chip makers."""

    fpus: tuple[str, ...]
    dsp: tuple[bool, ...]
    mve: tuple[bool, ...] = (False,)
    interrupts: int = 240
    """The largest number of lines that the interrupt controller can have (Armv6-M ARM, B3.4; Armv7-M ARM, B1.5.3;
    Armv8-M ARM, B3.1)."""


CORES: Mapping[str, CortexMCore] = {
    "cortex-m0": CortexMCore(fpus=("none",), dsp=(False,), interrupts=32),
    "cortex-m0plus": CortexMCore(fpus=("none",), dsp=(False,), interrupts=32),
    "cortex-m3": CortexMCore(fpus=("none",), dsp=(False,)),
    "cortex-m4": CortexMCore(fpus=("none", "fpv4-sp-d16"), dsp=(True,)),
    "cortex-m7": CortexMCore(fpus=("none", "fpv5-sp-d16", "fpv5-d16"), dsp=(True,), has_data_cache=True),
    "cortex-m33": CortexMCore(fpus=("none", "fpv5-sp-d16"), dsp=(False, True), interrupts=480, has_stack_limit=True),
    "cortex-m55": CortexMCore(
        fpus=("none", "fpv5-d16"),
        dsp=(True,),
        mve=(False, True),
        interrupts=480,
        has_stack_limit=True,
        has_data_cache=True,
    ),
}
"""Supported cores by Arm's name in lower case."""


def cpu(kind: str, *, fpu: str, dsp: bool, mve: bool, interrupts: int | None, file: str, place: str) -> Cpu:
    """Return a core with its options; see `Architecture.cpu`."""
    plain = kind.removesuffix("f").replace("+", "plus")
    core = CORES.get(plain)
    if core is None:
        raise FerruleError(f"{place}: core '{kind}' is not supported", hint=f"supported: {', '.join(CORES)}")
    if fpu not in FPUS:
        raise FerruleError(f"{file}: cpu.fpu is '{fpu}'", hint=f"known: {', '.join(FPUS)}")
    if fpu not in core.fpus:
        raise FerruleError(f"{file}: a {plain} has no {fpu}", hint=f"cpu.fpu can be {', '.join(core.fpus)}")
    for key, value, allowed in (("dsp", dsp, core.dsp), ("mve", mve, core.mve)):
        if value not in allowed:
            raise FerruleError(f"{file}: cpu.{key} is {str(value).lower()}, which a {plain} cannot be")
    found = core.interrupts if interrupts is None else interrupts
    if found > core.interrupts:
        raise FerruleError(f"{file}: cpu.interrupts is {found}, a {plain} has at most {core.interrupts}")
    return Cpu(type=plain, fpu=fpu, dsp=dsp, mve=mve, interrupts=found)


def gcc_flags(cpu: Cpu) -> tuple[str, ...]:
    """Return the flags that select a core for GCC, which assumes that a core has all extensions."""
    extensions = ""
    if cpu.type == "cortex-m55":
        extensions = "+nomve.fp" if cpu.mve else "+nomve"
    elif cpu.type == "cortex-m33" and not cpu.dsp:
        extensions = "+nodsp"
    fpu = ("-mfloat-abi=hard", f"-mfpu={cpu.fpu}") if cpu.hard_float else ("-mfloat-abi=soft",)
    return ("-mthumb", f"-mcpu={cpu.type}{extensions}", *fpu)


def zig_flags(cpu: Cpu) -> tuple[str, ...]:
    """Return the flags that select a core for zig, which unlike LLVM assumes no FPU, and no DSP on the M33."""
    abi = "eabihf" if cpu.hard_float else "eabi"
    fpu = {"fpv4-sp-d16": "+vfp4d16sp", "fpv5-sp-d16": "+fp_armv8d16sp", "fpv5-d16": "+fp_armv8d16"}.get(cpu.fpu, "")
    dsp = "+dsp" if cpu.type == "cortex-m33" and cpu.dsp else ""
    mve = "+mve" if cpu.mve else ""  # integers only: float vectors flush subnormal numbers to zero
    return ("-target", f"thumb-freestanding-{abi}", f"-mcpu={cpu.type.replace('-', '_')}{fpu}{dsp}{mve}")
