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
        ("engine", ctypes.c_void_p),
        ("core", ctypes.c_void_p),
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
        ("wired", ctypes.c_uint32),
        ("receives", ctypes.c_uint32),
        ("words", ctypes.c_uint32 * UART_WORDS),
        ("output", ctypes.c_uint8 * UART_OUTPUT_BYTES),
    )
