# SPDX-License-Identifier: Apache-2.0
"""The structs of the C hooks as ctypes classes."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

from ferrule.architectures.core_model import MOST_REGISTERS

U8, U16, U32, U64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
I32, I64, POINTER = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p

WINDOWS = 16
TIMERS = 16
BLOCKS = 1 << 14
SITES = 1 << 14
UART_OUTPUT_BYTES = 1 << 16
UART_WORDS = 32
OWNED_REGIONS = 8
TIMED_MEMORIES = 16
TIMED_CACHES = 8


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


def _each(kind: Any, *names: str) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401 a type of ctypes
    """Return fields of the same type."""
    return tuple((name, kind) for name in names)


class Window(ctypes.Structure):
    """struct ferrule_guest_window."""

    _fields_ = (
        *_each(U64, "address", "bytes"),
        ("data", POINTER),
        *_each(U64, "constant", "executes"),
    )


class Block(ctypes.Structure):
    """struct ferrule_guest_block."""

    _fields_ = (
        ("address", U32),
        *_each(U16, "bytes", "instructions", "needed", "kept", "gained", "reserved"),
    )


class Fault(ctypes.Structure):
    """struct ferrule_guest_fault."""

    _fields_ = (
        ("address", U64),
        ("value", I64),
        *_each(I32, "type", "bytes"),
        *_each(U32, "program_counter", "reserved"),
    )


class GuestState(ctypes.Structure):
    """struct ferrule_guest."""

    _fields_ = (
        *_each(
            POINTER,
            "start_emulation",
            "stop_emulation",
            "read_register",
            "write_register",
            "add_hook",
            "delete_hook",
            "control",
            "protect_memory",
            "engine",
            "core",
            "ownership",
            "timing",
        ),
        *_each(U64, "entered", "budget", "limit", "elapsed", "due", "now"),
        *_each(U32, "stop", "block_address", "block_bytes", "paused", "exception", "error"),
        ("fault", Fault),
        ("ask", POINTER),
        ("answer", U64),
        ("register_ids", I32 * MOST_REGISTERS),
        *_each(
            U32,
            "window_count",
            "breakpoints",
            "aligned",
            "unaligned",
            "base",
            "base_value",
            "base_mask",
            "site_count",
            "traps",
            "wants_traps",
            "unaligned_address",
            "accessor",
        ),
        ("windows", Window * WINDOWS),
        ("cache", Block * BLOCKS),
        ("sites", U32 * SITES),
    )


class CoreFault(ctypes.Structure):
    """struct ferrule_fault."""

    _fields_ = (
        ("access", Fault),
        ("executed", U64),
        *_each(U32, "exception", "status", "hard_status"),
        ("registers", U32 * MOST_REGISTERS),
    )


class TimedMemory(ctypes.Structure):
    """struct ferrule_memory_timing."""

    _fields_ = (
        *_each(U64, "address", "bytes"),
        *_each(U32, "wait_states", "write_wait_states", "width_bytes", "prefetch", "code_cache", "data_cache"),
        *_each(U32, "width_shift", "line_shift"),
    )


class OwnedRegion(ctypes.Structure):
    """struct ferrule_owned_region."""

    _fields_ = (
        *_each(U64, "address", "bytes"),
        *_each(POINTER, "data", "holder", "target", "cached", "ownership"),
        *_each(U32, "line_bytes", "reserved"),
    )


class OwnedBufferState(ctypes.Structure):
    """struct ferrule_owned_buffer."""

    _fields_ = (
        *_each(U32, "address", "bytes"),
        ("last", I32),
        *_each(U32, "input", "becomes"),
    )


class OwnedUseState(ctypes.Structure):
    """struct ferrule_owned_use."""

    _fields_ = (*_each(U32, "buffer", "roles"),)


class ViolatedState(ctypes.Structure):
    """struct ferrule_violated."""

    _fields_ = (
        ("address", U64),
        *_each(U32, "bytes", "violation", "write"),
        *_each(I32, "actor", "step"),
        *_each(U32, "holder", "target", "busy", "block", "program_counter", "exact", "reserved"),
    )


class OwnershipState(ctypes.Structure):
    """struct ferrule_ownership."""

    _fields_ = (
        *_each(POINTER, "guest", "buffers", "uses", "first_use", "device", "begun", "flying", "flying_roles", "roles"),
        *_each(
            U32,
            "buffer_count",
            "step_count",
            "run",
            "until",
            "next",
            "ran",
            "finish",
            "finish_returns",
            "finish_stack",
            "finishing",
            "flying_count",
            "region_count",
            "busy",
            "exact",
            "program_counter",
            "on_operator",
            "returns",
            "stack",
        ),
        ("step", I32),
        *_each(U32, "ended", "read_end", "pending", "asked", "asked_bytes", "info_argument", "given"),
        ("accepted", U64 * 9),
        ("granted", U64 * 2 * 9),
        *_each(U64, "inferences", "accesses", "transfers"),
        ("violated", ViolatedState),
        ("doubted", ViolatedState),
        ("regions", OwnedRegion * OWNED_REGIONS),
    )


class UartState(ctypes.Structure):
    """struct ferrule_uart."""

    _fields_ = (
        ("guest", ctypes.POINTER(GuestState)),
        ("input", POINTER),
        *_each(U64, "input_bytes", "input_taken", "output_wanted", "output_bytes", "output_lost", "last_poll"),
        *_each(U32, "polls", "control", "state", "interrupts", "baud_divider"),
        *_each(I32, "transmit_line", "receive_line"),
        ("receives", U32),
        ("words", U32 * UART_WORDS),
        ("output", U8 * UART_OUTPUT_BYTES),
    )
