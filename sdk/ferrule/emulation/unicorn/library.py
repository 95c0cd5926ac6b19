# SPDX-License-Identifier: Apache-2.0
"""The C hooks: compiled on first use, kept in the user's cache, loaded into this process."""

from __future__ import annotations

import ctypes
import importlib.metadata
from functools import cache
from pathlib import Path

from ferrule import resources
from ferrule.emulation.crash import EngineError
from ferrule.emulation.unicorn import layout
from ferrule.nativelib import NativeLibrary

PURPOSE = "the unicorn engine"
FLAGS = ("-std=c11", "-O2")


def compiled_hooks() -> Path:
    """Return the shared library, compiled anew unless the cache has it whole; see `NativeLibrary.file`."""
    folder = resources.root() / "src_c" / "emulation"
    return NativeLibrary(
        name="unicorn_hooks",
        title="unicorn hooks",
        purpose=PURPOSE,
        sources=(folder / "unicorn_hooks.c",),
        headers=(folder / "unicorn_hooks.h",),
        flags=FLAGS,
        facts=(importlib.metadata.version("unicorn"),),
    ).file()


def _check_layout(library: ctypes.CDLL) -> None:
    for function, mirror in (
        ("ferrule_guest_bytes", layout.GuestState),
        ("ferrule_cycle_counter_bytes", layout.CycleCounterState),
        ("ferrule_uart_bytes", layout.UartState),
    ):
        size = getattr(library, function)
        size.restype = ctypes.c_uint64
        if size() != ctypes.sizeof(mirror):
            raise EngineError(f"{mirror.__name__} differs from the C hooks: {ctypes.sizeof(mirror)} and {size()} B")


@cache
def load_hooks() -> ctypes.CDLL:
    """Return the loaded hooks."""
    path = compiled_hooks()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise EngineError(f"can't load the compiled unicorn hooks: {error}", hint=f"remove {path.parent}") from error
    _check_layout(library)
    library.ferrule_guest_executed.restype = ctypes.c_uint64
    library.ferrule_guest_executed.argtypes = (ctypes.POINTER(layout.GuestState), ctypes.c_uint32)
    library.ferrule_cycle_counter_enable.restype = None
    library.ferrule_cycle_counter_enable.argtypes = (ctypes.POINTER(layout.CycleCounterState), ctypes.c_uint32)
    return library
