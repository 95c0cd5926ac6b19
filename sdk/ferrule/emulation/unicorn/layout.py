# SPDX-License-Identifier: Apache-2.0
"""The structs of src_c/emulation/unicorn_hooks.h as ctypes sees them."""

from __future__ import annotations

import ctypes
from enum import IntEnum

WINDOWS = 16
BLOCKS = 1 << 14
UART_OUTPUT_BYTES = 1 << 16


class Stop(IntEnum):
    """Why the guest stands."""

    RUNS = 0
    BUDGET = 1
    IDLE = 2
    OUTPUT = 3
    EXCEPTION = 4


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

    _fields_ = (("address", ctypes.c_uint32), ("bytes", ctypes.c_uint16), ("instructions", ctypes.c_uint16))


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
        ("stop_emulation", ctypes.c_void_p),
        ("read_register", ctypes.c_void_p),
        ("write_register", ctypes.c_void_p),
        ("entered", ctypes.c_uint64),
        ("budget", ctypes.c_uint64),
        ("now", ctypes.c_uint64),
        ("stop", ctypes.c_uint32),
        ("block_address", ctypes.c_uint32),
        ("block_bytes", ctypes.c_uint32),
        ("exception", ctypes.c_uint32),
        ("system_address", ctypes.c_uint32),
        ("system_bytes", ctypes.c_uint32),
        ("program_counter", ctypes.c_uint32),
        ("status_register", ctypes.c_uint32),
        ("fault", Fault),
        ("window_count", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("windows", Window * WINDOWS),
        ("cache", Block * BLOCKS),
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
        ("reserved", ctypes.c_uint32),
        ("output", ctypes.c_uint8 * UART_OUTPUT_BYTES),
    )
