# SPDX-License-Identifier: Apache-2.0
"""Cortex-M in the embedded engine: exceptions, NVIC, SysTick, system control space, DWT and bit bands."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.architectures.core_model import (
    I32,
    MOST_REGISTERS,
    POINTER,
    U32,
    U64,
    CoreModel,
    EngineCore,
    EngineGuest,
    EnginePlace,
    HookSources,
    UnicornCore,
)
from ferrule.architectures.cortex_m.fault_record import FAULTS, causes
from ferrule.architectures.state import address_text
from ferrule.errors import FerruleError

REGISTERS_BYTES = 0x1000
CPU_IDS: Mapping[str, int] = {
    "cortex-m0": 0x410C_C200,
    "cortex-m0plus": 0x410C_C601,
    "cortex-m3": 0x410F_C231,
    "cortex-m4": 0x410F_C240,
    "cortex-m7": 0x411F_C272,
    "cortex-m33": 0x410F_D213,
}
"""The values of CPUID, equal to QEMU's, which has no Cortex-M0+: that is revision r0p1."""
VERSIONS: Mapping[str, int] = {"cortex-m0": 6, "cortex-m0plus": 6, "cortex-m33": 8}
"""The version of the architecture of the cores that are not Armv7-M."""
LINES: Mapping[int, int] = {6: 32, 7: 240, 8: 480}
"""Number of interrupt lines by version, the largest that it allows."""
ALL_PRIORITY_BITS = 0xFF
TRACE_TYPE = "Miscellaneous.DWT"
BIT_BAND_TYPE = "Miscellaneous.BitBanding"
TRACE_BYTES = 0x1000
"""Window size of the data watchpoint and trace unit (Armv7-M ARM, C1.8), of which CTRL and CYCCNT are modelled."""
TRAPS: Mapping[int, str] = {1: "undefined instruction", 2: "supervisor call (svc)", 3: "prefetch abort"}
"""Names by the emulator's exception number; exceptions of M-profile cores are handled earlier."""


class CoreConfig(ctypes.Structure):
    """struct ferrule_core_config."""

    _fields_ = (
        *((name, U32) for name in ("architecture", "lines", "priority_mask", "cpu_id", "vector_table")),
        ("register_ids", I32 * MOST_REGISTERS),
    )


class CycleCounterState(ctypes.Structure):
    """struct ferrule_cycle_counter."""

    _fields_ = (
        ("guest", POINTER),
        ("since", U64),
        *((name, U32) for name in ("value", "control", "trace_enabled", "reserved")),
    )


@frozen
class CortexMModel(CoreModel):
    """Armv6-M, Armv7-M and Armv8-M without Helium."""

    unicorn = UnicornCore(
        architecture="UC_ARCH_ARM",
        # UC_MODE_MCLASS would make every core a Cortex-M33, whatever model is selected afterwards.
        mode="UC_MODE_THUMB",
        constants="unicorn.arm_const",
        register_prefix="UC_ARM_REG_",
        models={
            "cortex-m0": "UC_CPU_ARM_CORTEX_M0",
            "cortex-m0plus": "UC_CPU_ARM_CORTEX_M0",
            "cortex-m3": "UC_CPU_ARM_CORTEX_M3",
            "cortex-m4": "UC_CPU_ARM_CORTEX_M4",
            "cortex-m7": "UC_CPU_ARM_CORTEX_M7",
            "cortex-m33": "UC_CPU_ARM_CORTEX_M33",
        },
        page_bytes=1024,
    )
    hooks = HookSources(
        folder=Path(__file__).parent / "engine",
        sources=(
            *("alignment", "nvic", "core", "systick", "system_control", "exceptions", "cycle_counter", "conditional"),
            *("decoding", "narrow", "wide", "floating", "run"),
        ),
        headers=(
            *("architecture", "cortex_m", "nvic", "systick", "system_control", "exceptions", "cycle_counter"),
            "decoding",
        ),
    )
    prototypes = (
        ("ferrule_core_attach_trace", None, (POINTER, POINTER, POINTER)),
        ("ferrule_system_control_read", U64, (POINTER, U64, U32, POINTER)),
        ("ferrule_system_control_write", None, (POINTER, U64, U32, U64, POINTER)),
    )
    mirrors = (("ferrule_core_config_bytes", CoreConfig), ("ferrule_cycle_counter_bytes", CycleCounterState))
    registers = (
        "R0", "R1", "R2", "R3", "R12", "SP", "LR", "PC", "XPSR", "XPSR_NZCVQG", "IEPSR", "CPSR",
        "CONTROL", "PRIMASK", "BASEPRI", "FAULTMASK", "PSP", "FPSCR", "D0",
    )  # fmt: skip
    call = "svc"
    reset_request = "AIRCR.SYSRESETREQ"

    @override
    def configuration(
        self, core: str, controllers: Sequence[EnginePlace], vector_table: int, fault_registers: Sequence[int]
    ) -> CoreConfig:
        version = VERSIONS.get(core, 7)
        masks = (each.properties.get("priorityMask") for each in controllers)
        mask = next((mask for mask in masks if isinstance(mask, int)), ALL_PRIORITY_BITS)
        config = CoreConfig(
            architecture=version,
            lines=LINES[version],
            priority_mask=mask & ALL_PRIORITY_BITS,
            cpu_id=CPU_IDS[core],
            vector_table=vector_table,
        )
        for index, number in enumerate(fault_registers):
            config.register_ids[index] = number
        return config

    @override
    def attach_controller(self, guest: EngineGuest, core: EngineCore, place: EnginePlace) -> None:
        read, write = "ferrule_system_control_read", "ferrule_system_control_write"
        guest.map_c(place.address, REGISTERS_BYTES, read, write, core.state)
        guest.synchronise(place.address, REGISTERS_BYTES)

    @override
    def attach(self, guest: EngineGuest, core: EngineCore, place: EnginePlace) -> bool:
        if place.type == TRACE_TYPE:
            _attach_cycle_counter(guest, core, place.address)
        elif place.type == BIT_BAND_TYPE:
            _attach_bit_band(guest, place)
        else:
            return False
        return True

    @override
    def reset(self, guest: EngineGuest, vector_table: int) -> dict[str, int]:
        stack, reset = guest.words(vector_table, 2)
        if not reset & 1:
            raise FerruleError(
                f"no reset vector at {address_text(vector_table + 4)}: {reset:#x} is not the address of Thumb code",
                hint="link the vector table to the start of the memory that holds the code",
            )
        return {"sp": stack & ~3, "lr": 0xFFFF_FFFF, "pc": reset}

    @override
    def written(self, register: str, value: int) -> tuple[str, int]:
        """Return a register's other name, and pc with the Thumb bit, without which the core would fault."""
        return ("xpsr_nzcvqg" if register == "xpsr" else register), value | (register == "pc")

    @override
    def fault_text(self, exception: int, status: int, more: int) -> str:
        return f"{FAULTS.get(exception, 'fault')} ({', '.join(causes(status, more))})"

    @override
    def trap_text(self, number: int) -> str:
        return f"{TRAPS.get(number, f'exception {number} of the emulator')}, which no M-profile core takes"


def _attach_cycle_counter(guest: EngineGuest, core: EngineCore, address: int) -> None:
    """Attach CYCCNT, which counts instructions while DEMCR.TRCENA and CTRL.CYCCNTENA are set and the core is awake."""
    state = CycleCounterState(guest=guest.state_address)
    guest.map_c(address, TRACE_BYTES, "ferrule_cycle_counter_read", "ferrule_cycle_counter_write", state)
    guest.synchronise(address, TRACE_BYTES)
    # the C hooks report every change of DEMCR.TRCENA to it
    entry = ctypes.cast(guest.hooks.ferrule_cycle_counter_enable, ctypes.c_void_p)
    guest.hooks.ferrule_core_attach_trace(core.core, entry, ctypes.addressof(state))


def _attach_bit_band(guest: EngineGuest, place: EnginePlace) -> None:
    """Attach an alias of which each word is one bit of a memory or of peripherals (Cortex-M4 TRM, 3.7)."""
    base = place.properties.get("peripheralBase")
    if not isinstance(base, int):
        raise FerruleError(
            f"the bit-band alias {place.name} has no property peripheralBase",
            hint="it is the address of the region, such as 0x20000000 or 0x40000000",
        )

    def bit_of(offset: int, size_bytes: int) -> tuple[int, int]:
        """Return the address of the value that contains the bit, and the bit's number in it."""
        return base + (offset >> 5 & -size_bytes), offset >> 2 & 8 * size_bytes - 1

    def read(offset: int, size_bytes: int) -> int:
        address, bit = bit_of(offset, size_bytes)
        return guest.bus_access(address, size_bytes) >> bit & 1

    def write(offset: int, size_bytes: int, value: int) -> None:
        address, bit = bit_of(offset, size_bytes)
        before = guest.bus_access(address, size_bytes)
        guest.bus_access(address, size_bytes, before & ~(1 << bit) | (value & 1) << bit)

    guest.map_python(place.address, place.size_bytes, read, write)
