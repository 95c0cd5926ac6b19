# SPDX-License-Identifier: Apache-2.0
"""The C hooks, which are compiled on first use, kept in the user's cache and loaded into this process."""

from __future__ import annotations

import ctypes
import importlib.metadata
from functools import cache
from pathlib import Path
from typing import Any

from ferrule.emulation.crash import EngineError
from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.layout import I32, POINTER, U32, U64
from ferrule.nativelib import NativeLibrary

PURPOSE = "the unicorn engine"
SOURCE_FOLDER = Path(__file__).parent / "src"
FLAGS = ("-std=c11", "-O2")
HEADERS = (
    *("alignment", "guest", "checks", "nvic", "core", "systick", "system_control", "exceptions", "cycle_counter"),
    *("ownership", "owned_layers", "operation", "pipeline", "waits", "timing"),
    *("uart", "uart_nrf", "uart_stm32", "uart_stm32f7"),
)
SOURCES = (*HEADERS, "narrow", "wide", "floating", "run")


def compiled_hooks() -> Path:
    """Return the path of the shared library, which is compiled unless it is cached; see `NativeLibrary.file`."""
    return NativeLibrary(
        name="unicorn_hooks",
        title="unicorn hooks",
        purpose=PURPOSE,
        sources=tuple(SOURCE_FOLDER / f"{name}.c" for name in SOURCES),
        headers=tuple(SOURCE_FOLDER / f"{name}.h" for name in (*HEADERS, "decoding")),
        flags=FLAGS,
        facts=(importlib.metadata.version("unicorn"),),
    ).file()


_MIRRORS = (
    ("ferrule_guest_bytes", layout.GuestState),
    ("ferrule_fault_bytes", layout.CoreFault),
    ("ferrule_core_config_bytes", layout.CoreConfig),
    ("ferrule_cycle_counter_bytes", layout.CycleCounterState),
    ("ferrule_uart_bytes", layout.UartState),
    ("ferrule_ownership_bytes", layout.OwnershipState),
    ("ferrule_memory_timing_bytes", layout.TimedMemory),
)
"""The functions that return the sizes of structs, and the structs as they are here."""
EXPIRE = ctypes.CFUNCTYPE(None, POINTER)
"""Type of the function that a timer calls."""
_GUEST, _CONFIG, _FAULT, _OWNERSHIP, _UART, _TIMED_MEMORY = map(
    ctypes.POINTER,
    (
        *(layout.GuestState, layout.CoreConfig, layout.CoreFault, layout.OwnershipState, layout.UartState),
        layout.TimedMemory,
    ),
)
_UART_FUNCTIONS = (
    "update",
    "nrf_reset",
    "nrf_update",
    *(f"stm32{kind}_{each}" for kind in ("", "f7") for each in ("reset", "update")),
)
_PROTOTYPES: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("ferrule_guest_executed", U64, (_GUEST, U32)),
    ("ferrule_guest_elapsed", U64, (_GUEST, U32)),
    ("ferrule_timing_bytes", U64, ()),
    ("ferrule_core_timing_name", ctypes.c_char_p, (U32,)),
    ("ferrule_timing_set_core", None, (POINTER, POINTER)),
    ("ferrule_timing_set_cache", None, (POINTER, U32, U32, U32, U32)),
    ("ferrule_timing_add_memory", None, (POINTER, _TIMED_MEMORY)),
    ("ferrule_timing_start", None, (POINTER, _GUEST)),
    ("ferrule_timing_forget", None, (POINTER, _GUEST)),
    ("ferrule_timing_repeat", None, (POINTER,)),
    ("ferrule_timing_begin", None, (POINTER,)),
    ("ferrule_timing_end", U32, (POINTER, _GUEST)),
    ("ferrule_timing_watches", U32, (POINTER,)),
    ("ferrule_guest_allow_code", ctypes.c_bool, (_GUEST, U32)),
    ("ferrule_core_bytes", U64, ()),
    ("ferrule_core_reset", None, (POINTER, _GUEST, _CONFIG)),
    ("ferrule_core_attach_trace", None, (POINTER, POINTER, POINTER)),
    ("ferrule_core_time", U64, (POINTER,)),
    ("ferrule_core_exact_time", U64, (POINTER,)),
    ("ferrule_core_next_event", U64, (POINTER,)),
    ("ferrule_core_contend", None, (POINTER, U64)),
    ("ferrule_core_set_line", None, (POINTER, U32, U32)),
    ("ferrule_core_is_line_enabled", U32, (POINTER, U32)),
    ("ferrule_core_set_timer", None, (POINTER, U32, U64, EXPIRE, POINTER)),
    ("ferrule_core_run", U32, (POINTER, U64)),
    ("ferrule_core_step", U32, (POINTER,)),
    ("ferrule_core_fault", _FAULT, (POINTER,)),
    ("ferrule_system_control_read", U64, (POINTER, U64, U32, POINTER)),
    ("ferrule_system_control_write", None, (POINTER, U64, U32, U64, POINTER)),
    ("ferrule_ownership_start", None, (_OWNERSHIP, _GUEST)),
    ("ferrule_ownership_transfer", U32, (_OWNERSHIP, I32, U32, U32, U32)),
    ("ferrule_ownership_models_cache", U32, (_OWNERSHIP,)),
    *((f"ferrule_uart_{each}", None, (_UART,)) for each in _UART_FUNCTIONS),
)


@cache
def load_hooks() -> ctypes.CDLL:
    """Load the C hooks, once per process."""
    path = compiled_hooks()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise EngineError(f"can't load the compiled unicorn hooks: {error}", hint=f"remove {path.parent}") from error
    for function, result, arguments in (*_PROTOTYPES, *((name, U64, ()) for name, _ in _MIRRORS)):
        entry = getattr(library, function)
        entry.restype, entry.argtypes = result, arguments
    for function, mirror in _MIRRORS:
        own, other = ctypes.sizeof(mirror), getattr(library, function)()
        if own != other:
            raise EngineError(f"{mirror.__name__} differs from the C hooks: {own} and {other} B")
    return library
