# SPDX-License-Identifier: Apache-2.0
"""The structs of the C hooks as ctypes classes."""

from __future__ import annotations

import ctypes
from enum import IntEnum

WINDOWS = 16
TIMERS = 16
BLOCKS = 1 << 14
SITES = 1 << 14
UART_OUTPUT_BYTES = 1 << 16
UART_WORDS = 32
OWNED_REGIONS = 8


class Stop(IntEnum):
    """The reasons why the guest stopped; mirrors enum ferrule_guest_stop."""

    RUNS = 0
    BUDGET = 1
    IDLE = 2
    OUTPUT = 3
    EXCEPTION = 4
    ASLEEP = 5
    LOCKUP = 6
    RESET = 7
    FAILED = 8
    ERROR = 9
    BREAKPOINT = 10
    OWNERSHIP = 11


GUEST_REGISTERS = (
    "R0", "R1", "R2", "R3", "R12", "SP", "LR", "PC", "XPSR", "XPSR_NZCVQG", "IEPSR", "CPSR",
    "CONTROL", "PRIMASK", "BASEPRI", "FAULTMASK", "PSP", "FPSCR", "D0",
)  # fmt: skip
"""Unicorn's names in the order of enum ferrule_register."""
FAULT_REGISTERS = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc", "xpsr")
"""Register names in the order of ferrule_fault.registers."""


class Window(ctypes.Structure):
    """struct ferrule_guest_window."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("constant", ctypes.c_uint64),
        ("executes", ctypes.c_uint64),
    )


class Block(ctypes.Structure):
    """struct ferrule_guest_block."""

    _fields_ = (
        ("address", ctypes.c_uint32),
        ("bytes", ctypes.c_uint16),
        ("instructions", ctypes.c_uint16),
        ("needed", ctypes.c_uint16),
        ("kept", ctypes.c_uint16),
        ("gained", ctypes.c_uint16),
        ("reserved", ctypes.c_uint16),
    )


class Fault(ctypes.Structure):
    """struct ferrule_guest_fault."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("value", ctypes.c_int64),
        ("type", ctypes.c_int32),
        ("bytes", ctypes.c_int32),
        ("program_counter", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class GuestState(ctypes.Structure):
    """struct ferrule_guest."""

    _fields_ = (
        ("start_emulation", ctypes.c_void_p),
        ("stop_emulation", ctypes.c_void_p),
        ("read_register", ctypes.c_void_p),
        ("write_register", ctypes.c_void_p),
        ("add_hook", ctypes.c_void_p),
        ("control", ctypes.c_void_p),
        ("protect_memory", ctypes.c_void_p),
        ("engine", ctypes.c_void_p),
        ("core", ctypes.c_void_p),
        ("ownership", ctypes.c_void_p),
        ("entered", ctypes.c_uint64),
        ("budget", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
        ("now", ctypes.c_uint64),
        ("stop", ctypes.c_uint32),
        ("block_address", ctypes.c_uint32),
        ("block_bytes", ctypes.c_uint32),
        ("paused", ctypes.c_uint32),
        ("exception", ctypes.c_uint32),
        ("error", ctypes.c_uint32),
        ("fault", Fault),
        ("ask", ctypes.c_void_p),
        ("answer", ctypes.c_uint64),
        ("register_ids", ctypes.c_int32 * len(GUEST_REGISTERS)),
        ("window_count", ctypes.c_uint32),
        ("breakpoints", ctypes.c_uint32),
        ("aligned", ctypes.c_uint32),
        ("unaligned", ctypes.c_uint32),
        ("base", ctypes.c_uint32),
        ("base_value", ctypes.c_uint32),
        ("base_mask", ctypes.c_uint32),
        ("site_count", ctypes.c_uint32),
        ("traps", ctypes.c_uint32),
        ("wants_traps", ctypes.c_uint32),
        ("unaligned_address", ctypes.c_uint32),
        ("accessor", ctypes.c_uint32),
        ("windows", Window * WINDOWS),
        ("cache", Block * BLOCKS),
        ("sites", ctypes.c_uint32 * SITES),
    )


class CoreFault(ctypes.Structure):
    """struct ferrule_fault."""

    _fields_ = (
        ("access", Fault),
        ("executed", ctypes.c_uint64),
        ("exception", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("hard_status", ctypes.c_uint32),
        ("registers", ctypes.c_uint32 * len(FAULT_REGISTERS)),
    )


class CoreConfig(ctypes.Structure):
    """struct ferrule_core_config."""

    _fields_ = (
        ("architecture", ctypes.c_uint32),
        ("lines", ctypes.c_uint32),
        ("priority_mask", ctypes.c_uint32),
        ("cpu_id", ctypes.c_uint32),
        ("vector_table", ctypes.c_uint32),
        ("register_ids", ctypes.c_int32 * len(FAULT_REGISTERS)),
    )


class CycleCounterState(ctypes.Structure):
    """struct ferrule_cycle_counter."""

    _fields_ = (
        ("guest", ctypes.POINTER(GuestState)),
        ("since", ctypes.c_uint64),
        ("value", ctypes.c_uint32),
        ("control", ctypes.c_uint32),
        ("trace_enabled", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class OwnedRegion(ctypes.Structure):
    """struct ferrule_owned_region."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("holder", ctypes.c_void_p),
        ("target", ctypes.c_void_p),
        ("cached", ctypes.c_void_p),
        ("ownership", ctypes.c_void_p),
        ("line_bytes", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class OwnedBufferState(ctypes.Structure):
    """struct ferrule_owned_buffer."""

    _fields_ = (
        ("address", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("last", ctypes.c_int32),
        ("input", ctypes.c_uint32),
        ("becomes", ctypes.c_uint32),
    )


class OwnedUseState(ctypes.Structure):
    """struct ferrule_owned_use."""

    _fields_ = (("buffer", ctypes.c_uint32), ("roles", ctypes.c_uint32))


class ViolatedState(ctypes.Structure):
    """struct ferrule_violated."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint32),
        ("violation", ctypes.c_uint32),
        ("write", ctypes.c_uint32),
        ("actor", ctypes.c_int32),
        ("step", ctypes.c_int32),
        ("holder", ctypes.c_uint32),
        ("target", ctypes.c_uint32),
        ("busy", ctypes.c_uint32),
        ("block", ctypes.c_uint32),
        ("program_counter", ctypes.c_uint32),
        ("exact", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class OwnershipState(ctypes.Structure):
    """struct ferrule_ownership."""

    _fields_ = (
        ("guest", ctypes.c_void_p),
        ("buffers", ctypes.c_void_p),
        ("uses", ctypes.c_void_p),
        ("first_use", ctypes.c_void_p),
        ("device", ctypes.c_void_p),
        ("begun", ctypes.c_void_p),
        ("flying", ctypes.c_void_p),
        ("flying_roles", ctypes.c_void_p),
        ("roles", ctypes.c_void_p),
        ("buffer_count", ctypes.c_uint32),
        ("step_count", ctypes.c_uint32),
        ("run", ctypes.c_uint32),
        ("until", ctypes.c_uint32),
        ("next", ctypes.c_uint32),
        ("ran", ctypes.c_uint32),
        ("finish", ctypes.c_uint32),
        ("finish_returns", ctypes.c_uint32),
        ("finish_stack", ctypes.c_uint32),
        ("finishing", ctypes.c_uint32),
        ("flying_count", ctypes.c_uint32),
        ("region_count", ctypes.c_uint32),
        ("busy", ctypes.c_uint32),
        ("exact", ctypes.c_uint32),
        ("program_counter", ctypes.c_uint32),
        ("on_operator", ctypes.c_uint32),
        ("returns", ctypes.c_uint32),
        ("stack", ctypes.c_uint32),
        ("step", ctypes.c_int32),
        ("ended", ctypes.c_uint32),
        ("read_end", ctypes.c_uint32),
        ("pending", ctypes.c_uint32),
        ("asked", ctypes.c_uint32),
        ("asked_bytes", ctypes.c_uint32),
        ("info_argument", ctypes.c_uint32),
        ("given", ctypes.c_uint32),
        ("accepted", ctypes.c_uint64 * 9),
        ("granted", (ctypes.c_uint64 * 2) * 9),
        ("inferences", ctypes.c_uint64),
        ("accesses", ctypes.c_uint64),
        ("transfers", ctypes.c_uint64),
        ("violated", ViolatedState),
        ("doubted", ViolatedState),
        ("regions", OwnedRegion * OWNED_REGIONS),
    )


class UartState(ctypes.Structure):
    """struct ferrule_uart."""

    _fields_ = (
        ("guest", ctypes.POINTER(GuestState)),
        ("input", ctypes.c_void_p),
        ("input_bytes", ctypes.c_uint64),
        ("input_taken", ctypes.c_uint64),
        ("output_wanted", ctypes.c_uint64),
        ("output_bytes", ctypes.c_uint64),
        ("output_lost", ctypes.c_uint64),
        ("last_poll", ctypes.c_uint64),
        ("polls", ctypes.c_uint32),
        ("control", ctypes.c_uint32),
        ("state", ctypes.c_uint32),
        ("interrupts", ctypes.c_uint32),
        ("baud_divider", ctypes.c_uint32),
        ("transmit_line", ctypes.c_int32),
        ("receive_line", ctypes.c_int32),
        ("receives", ctypes.c_uint32),
        ("words", ctypes.c_uint32 * UART_WORDS),
        ("output", ctypes.c_uint8 * UART_OUTPUT_BYTES),
    )
