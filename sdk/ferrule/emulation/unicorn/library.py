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
from ferrule.nativelib import NativeLibrary

PURPOSE = "the unicorn engine"
SOURCE_FOLDER = Path(__file__).parent / "src"
FLAGS = ("-std=c11", "-O2")
HEADERS = (
    *("alignment", "guest", "nvic", "core", "systick", "system_control", "exceptions", "cycle_counter"),
    *("ownership", "owned_layers", "uart", "uart_nrf", "uart_stm32", "uart_stm32f7"),
)
SOURCES = (*HEADERS, "run")


def compiled_hooks() -> Path:
    """Return the path of the shared library, which is compiled unless it is cached; see `NativeLibrary.file`."""
    return NativeLibrary(
        name="unicorn_hooks",
        title="unicorn hooks",
        purpose=PURPOSE,
        sources=tuple(SOURCE_FOLDER / f"{name}.c" for name in SOURCES),
        headers=tuple(SOURCE_FOLDER / f"{name}.h" for name in HEADERS),
        flags=FLAGS,
        facts=(importlib.metadata.version("unicorn"),),
    ).file()


def _check_layout(library: ctypes.CDLL) -> None:
    for function, mirror in (
        ("ferrule_guest_bytes", layout.GuestState),
        ("ferrule_fault_bytes", layout.CoreFault),
        ("ferrule_core_config_bytes", layout.CoreConfig),
        ("ferrule_cycle_counter_bytes", layout.CycleCounterState),
        ("ferrule_uart_bytes", layout.UartState),
        ("ferrule_ownership_bytes", layout.OwnershipState),
    ):
        size = getattr(library, function)
        size.restype = ctypes.c_uint64
        if size() != ctypes.sizeof(mirror):
            raise EngineError(f"{mirror.__name__} differs from the C hooks: {ctypes.sizeof(mirror)} and {size()} B")


EXPIRE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""Type of the function that a timer calls."""
_PROTOTYPES: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("ferrule_guest_executed", ctypes.c_uint64, (ctypes.POINTER(layout.GuestState), ctypes.c_uint32)),
    ("ferrule_guest_allow_code", ctypes.c_bool, (ctypes.POINTER(layout.GuestState), ctypes.c_uint32)),
    ("ferrule_core_bytes", ctypes.c_uint64, ()),
    (
        "ferrule_core_reset",
        None,
        (ctypes.c_void_p, ctypes.POINTER(layout.GuestState), ctypes.POINTER(layout.CoreConfig)),
    ),
    ("ferrule_core_attach_trace", None, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
    ("ferrule_core_time", ctypes.c_uint64, (ctypes.c_void_p,)),
    ("ferrule_core_exact_time", ctypes.c_uint64, (ctypes.c_void_p,)),
    ("ferrule_core_next_event", ctypes.c_uint64, (ctypes.c_void_p,)),
    ("ferrule_core_set_line", None, (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)),
    ("ferrule_core_is_line_enabled", ctypes.c_uint32, (ctypes.c_void_p, ctypes.c_uint32)),
    ("ferrule_core_set_timer", None, (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, EXPIRE, ctypes.c_void_p)),
    ("ferrule_core_run", ctypes.c_uint32, (ctypes.c_void_p, ctypes.c_uint64)),
    ("ferrule_core_step", ctypes.c_uint32, (ctypes.c_void_p,)),
    ("ferrule_core_fault", ctypes.POINTER(layout.CoreFault), (ctypes.c_void_p,)),
    (
        "ferrule_system_control_read",
        ctypes.c_uint64,
        (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_void_p),
    ),
    (
        "ferrule_system_control_write",
        None,
        (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_uint64, ctypes.c_void_p),
    ),
    (
        "ferrule_ownership_start",
        None,
        (ctypes.POINTER(layout.OwnershipState), ctypes.POINTER(layout.GuestState)),
    ),
    (
        "ferrule_ownership_transfer",
        ctypes.c_uint32,
        (ctypes.POINTER(layout.OwnershipState), ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32),
    ),
    ("ferrule_ownership_models_cache", ctypes.c_uint32, (ctypes.POINTER(layout.OwnershipState),)),
    ("ferrule_uart_update", None, (ctypes.POINTER(layout.UartState),)),
    ("ferrule_uart_nrf_reset", None, (ctypes.POINTER(layout.UartState),)),
    ("ferrule_uart_nrf_update", None, (ctypes.POINTER(layout.UartState),)),
    ("ferrule_uart_stm32_reset", None, (ctypes.POINTER(layout.UartState),)),
    ("ferrule_uart_stm32_update", None, (ctypes.POINTER(layout.UartState),)),
    ("ferrule_uart_stm32f7_reset", None, (ctypes.POINTER(layout.UartState),)),
    ("ferrule_uart_stm32f7_update", None, (ctypes.POINTER(layout.UartState),)),
)


@cache
def load_hooks() -> ctypes.CDLL:
    """Load the C hooks, once per process."""
    path = compiled_hooks()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise EngineError(f"can't load the compiled unicorn hooks: {error}", hint=f"remove {path.parent}") from error
    _check_layout(library)
    for function, result, arguments in _PROTOTYPES:
        entry = getattr(library, function)
        entry.restype, entry.argtypes = result, arguments
    return library
