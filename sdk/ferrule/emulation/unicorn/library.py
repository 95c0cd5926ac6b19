# SPDX-License-Identifier: Apache-2.0
"""The C hooks, which are compiled on first use, kept in the user's cache and loaded into this process."""

from __future__ import annotations

import ctypes
import importlib.metadata
from functools import cache
from pathlib import Path
from typing import Any

from ferrule.architectures.core_model import CoreModel
from ferrule.emulation.crash import EngineError
from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.layout import I32, POINTER, U32, U64
from ferrule.nativelib import NativeLibrary

PURPOSE = "the unicorn engine"
SOURCE_FOLDER = Path(__file__).parent / "src"
FLAGS = ("-std=c11", "-O2")
HEADERS = (
    *("alignment", "guest", "checks", "core", "operation", "pipeline", "ownership", "owned_layers", "waits", "timing"),
    *("uart", "uart_nrf", "uart_stm32", "uart_stm32f7"),
)
SOURCES = tuple(name for name in HEADERS if name not in {"alignment", "core"})
"""The engine's own C; the architecture has that of alignment.h and core.h."""


def compiled_hooks(model: CoreModel) -> Path:
    """Return the path of an architecture's shared library, compiled unless it is cached; see `NativeLibrary.file`."""
    own = model.hooks
    return NativeLibrary(
        name="unicorn_hooks",
        title="unicorn hooks",
        purpose=PURPOSE,
        sources=(
            *(SOURCE_FOLDER / f"{name}.c" for name in SOURCES),
            *(own.folder / f"{name}.c" for name in own.sources),
        ),
        headers=(
            *(SOURCE_FOLDER / f"{name}.h" for name in HEADERS),
            *(own.folder / f"{name}.h" for name in own.headers),
        ),
        include_dirs=(SOURCE_FOLDER, own.folder),
        flags=FLAGS,
        facts=(importlib.metadata.version("unicorn"),),
    ).file()


_MIRRORS = (
    ("ferrule_guest_bytes", layout.GuestState),
    ("ferrule_fault_bytes", layout.CoreFault),
    ("ferrule_uart_bytes", layout.UartState),
    ("ferrule_ownership_bytes", layout.OwnershipState),
    ("ferrule_memory_timing_bytes", layout.TimedMemory),
)
"""The functions that return the sizes of structs, and the structs as they are here."""
EXPIRE = ctypes.CFUNCTYPE(None, POINTER)
"""Type of the function that a timer calls."""
_GUEST, _FAULT, _OWNERSHIP, _UART, _TIMED_MEMORY = map(
    ctypes.POINTER,
    (layout.GuestState, layout.CoreFault, layout.OwnershipState, layout.UartState, layout.TimedMemory),
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
    ("ferrule_core_reset", None, (POINTER, _GUEST, POINTER)),
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
    ("ferrule_ownership_start", None, (_OWNERSHIP, _GUEST)),
    ("ferrule_ownership_transfer", U32, (_OWNERSHIP, I32, U32, U32, U32)),
    ("ferrule_ownership_models_cache", U32, (_OWNERSHIP,)),
    *((f"ferrule_uart_{each}", None, (_UART,)) for each in _UART_FUNCTIONS),
)


@cache
def load_hooks(model: CoreModel) -> ctypes.CDLL:
    """Load the C hooks for an architecture, once per process."""
    path = compiled_hooks(model)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise EngineError(f"can't load the compiled unicorn hooks: {error}", hint=f"remove {path.parent}") from error
    mirrors: tuple[tuple[str, type[ctypes.Structure]], ...] = (*_MIRRORS, *model.mirrors)
    for function, result, arguments in (*_PROTOTYPES, *model.prototypes, *((name, U64, ()) for name, _ in mirrors)):
        entry = getattr(library, function)
        entry.restype, entry.argtypes = result, arguments
    for function, mirror in mirrors:
        own, other = ctypes.sizeof(mirror), getattr(library, function)()
        if own != other:
            raise EngineError(f"{mirror.__name__} differs from the C hooks: {own} and {other} B")
    return library
