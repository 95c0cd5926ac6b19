# SPDX-License-Identifier: Apache-2.0
"""The supported cores and their optional features."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.boards.board import Cpu
from ferrule.boards.description import CpuDescription
from ferrule.boards.repl import Platform
from ferrule.errors import FerruleError

_CORE = "CPU.CortexM"
FPUS = ("none", "fpv4-sp-d16", "fpv5-sp-d16", "fpv5-d16")


@frozen
class Core:
    """The options of a core that Arm leaves to chip makers."""

    fpus: tuple[str, ...]
    dsp: tuple[bool, ...]
    mve: tuple[bool, ...] = (False,)
    interrupts: int = 240
    """The largest number of lines that the interrupt controller can have (Armv6-M ARM, B3.4; Armv7-M ARM, B1.5.3;
    Armv8-M ARM, B3.1)."""
    has_stack_limit: bool = False
    """Whether the core has MSPLIM and PSPLIM."""
    has_data_cache: bool = False
    """Whether the core can have a data cache that is maintained through the registers of its architecture."""


CORES: Mapping[str, Core] = {
    "cortex-m0": Core(fpus=("none",), dsp=(False,), interrupts=32),
    "cortex-m0plus": Core(fpus=("none",), dsp=(False,), interrupts=32),
    "cortex-m3": Core(fpus=("none",), dsp=(False,)),
    "cortex-m4": Core(fpus=("none", "fpv4-sp-d16"), dsp=(True,)),
    "cortex-m7": Core(fpus=("none", "fpv5-sp-d16", "fpv5-d16"), dsp=(True,), has_data_cache=True),
    "cortex-m33": Core(fpus=("none", "fpv5-sp-d16"), dsp=(False, True), interrupts=480, has_stack_limit=True),
    "cortex-m55": Core(
        fpus=("none", "fpv5-d16"),
        dsp=(True,),
        mve=(False, True),
        interrupts=480,
        has_stack_limit=True,
        has_data_cache=True,
    ),
}
"""Supported cores by Arm's name in lower case."""


def cpu(platform: Platform, description: CpuDescription, file: Path) -> Cpu:
    """Return the core described by a platform description and the table `[cpu]` of `file`.

    Raises:
        FerruleError: there is not one core, it is not supported, or it cannot have a feature that the table states.
    """
    entries = platform.of_type(_CORE)
    if len(entries) != 1:
        raise FerruleError(f"{platform.file}: {len(entries)} entries of type {_CORE}, exactly one is supported")
    entry = entries[0]
    kind = entry.text("cpuType")
    if kind is None:
        raise FerruleError(f"{entry.place}: '{entry.name}' has no cpuType")
    plain = kind.removesuffix("f").replace("+", "plus")
    core = CORES.get(plain)
    if core is None:
        raise FerruleError(f"{entry.place}: core '{kind}' is not supported", hint=f"supported: {', '.join(CORES)}")
    fpu = description.fpu
    if fpu not in FPUS:
        raise FerruleError(f"{file}: cpu.fpu is '{fpu}'", hint=f"known: {', '.join(FPUS)}")
    if fpu not in core.fpus:
        raise FerruleError(f"{file}: a {plain} has no {fpu}", hint=f"cpu.fpu can be {', '.join(core.fpus)}")
    for key, value, allowed in (("dsp", description.dsp, core.dsp), ("mve", description.mve, core.mve)):
        if value not in allowed:
            raise FerruleError(f"{file}: cpu.{key} is {str(value).lower()}, which a {plain} cannot be")
    interrupts = core.interrupts if description.interrupts is None else description.interrupts
    if interrupts > core.interrupts:
        raise FerruleError(f"{file}: cpu.interrupts is {interrupts}, a {plain} has at most {core.interrupts}")
    return Cpu(type=plain, fpu=fpu, dsp=description.dsp, mve=description.mve, interrupts=interrupts)
