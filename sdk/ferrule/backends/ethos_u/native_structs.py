# SPDX-License-Identifier: Apache-2.0
"""The structs of native/execute.h, and the functions of the library that is compiled from it."""

from __future__ import annotations

import ctypes
import logging
import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ferrule.errors import FerruleError
from ferrule.nativelib import NativeLibrary
from ferrule.reading import read_text

_LOG = logging.getLogger(__name__)
_FOLDER = Path(__file__).with_name("native")


def _features() -> str:
    """Return the line with the processor's instruction sets; "" where Linux does not state it."""
    try:
        lines = read_text(Path("/proc/cpuinfo"), errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("flags")), "")


def library(*extra_flags: str) -> NativeLibrary:
    """Return the library to build, for the instruction sets of this processor."""
    features = _features() if platform.machine() == "x86_64" else ""
    return NativeLibrary(
        name="ethos_u_execute",
        title="operations of Ethos-U",
        purpose="fast execution of Ethos-U streams",
        sources=(_FOLDER / "execute.c",),
        headers=(_FOLDER / "execute.h",),
        include_dirs=(_FOLDER,),
        flags=(*FLAGS, *(("-march=native",) if features else ()), *extra_flags),
        facts=(features,),
    )


TILES = 4
FLAGS = ("-std=c11", "-O3", "-fwrapv", "-ffp-contract=off", "-fno-trapping-math", "-fno-signed-zeros", "-ffreestanding")


class TileStruct(ctypes.Structure):
    """ferrule_ethos_u_tile."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("y0", "y1", "x0", "x1")),
        ("first", ctypes.c_void_p),
    )


class MapStruct(ctypes.Structure):
    """ferrule_ethos_u_map."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("height", "width", "depth", "type", "bricks", "tiles")),
        *((name, ctypes.c_int64) for name in ("stride_y", "stride_x", "stride_c")),
        ("zero_point", ctypes.c_int32),
        ("tile", TileStruct * TILES),
    )


class ScaleStruct(ctypes.Structure):
    """ferrule_ethos_u_scale."""

    _fields_ = (
        ("factor", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("shift", "natural", "headroom")),
    )


class OutputStruct(ctypes.Structure):
    """ferrule_ethos_u_output."""

    _fields_ = (
        ("map", MapStruct),
        ("clips", ctypes.c_int32),
        ("zero_point", ctypes.c_int32),
        ("low", ctypes.c_int64),
        ("high", ctypes.c_int64),
        ("table", ctypes.c_void_p),
    )


WINDOW_FIELDS = (
    *("taps_y", "taps_x", "dilation_y", "dilation_x", "stride_y", "stride_x"),
    *("top", "left", "height", "width"),
)


class WindowStruct(ctypes.Structure):
    """ferrule_ethos_u_window."""

    _fields_ = tuple((name, ctypes.c_int32) for name in WINDOW_FIELDS)


class ConvolutionStruct(ctypes.Structure):
    """ferrule_ethos_u_convolution."""

    _fields_ = (
        ("ifm", MapStruct),
        ("ofm", OutputStruct),
        ("window", WindowStruct),
        ("rows", ctypes.c_int32),
        ("columns", ctypes.c_int32),
        *((name, ctypes.c_void_p) for name in ("bias", "factor", "shift")),
        ("natural", ctypes.c_int32),
        *((f"real_{name}", ctypes.c_void_p) for name in ("bias", "factor", "above", "below")),
    )


class PoolingStruct(ctypes.Structure):
    """ferrule_ethos_u_pooling."""

    _fields_ = (
        ("ifm", MapStruct),
        ("ofm", OutputStruct),
        ("window", WindowStruct),
        ("scale", ScaleStruct),
        *((name, ctypes.c_int32) for name in ("mode", "divides", "scales")),
    )


class ElementwiseStruct(ctypes.Structure):
    """ferrule_ethos_u_elementwise."""

    _fields_ = (
        ("ifm", MapStruct),
        ("ifm2", MapStruct),
        ("ofm", OutputStruct),
        ("scale", ScaleStruct),
        ("first", ScaleStruct),
        ("second", ScaleStruct),
        ("scalar", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("mode", "swapped", "scales", "only_shifts")),
    )


_POINTER = ctypes.c_void_p
_ROWS = (_POINTER, _POINTER, ctypes.c_int32, ctypes.c_int32, _POINTER)
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "extend": (_POINTER,) * 3,
    "extend_short": (_POINTER,) * 3,
    "patches": _ROWS,
    "finish": _ROWS,
    "finish_wide": _ROWS,
    "depthwise": (_POINTER,) * 5,
    "pool": (_POINTER,) * 3,
    "elementwise": (_POINTER,) * 3,
}
Function = Callable[..., int | None]


class Functions:
    """The functions of the loaded library, by name without prefix."""

    extend: Function
    extend_short: Function
    patches: Function
    finish: Function
    finish_wide: Function
    depthwise: Function
    pool: Function
    elementwise: Function

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        for name, types in _FUNCTIONS.items():
            function = getattr(library, f"ferrule_ethos_u_{name}")
            function.argtypes = types
            function.restype = ctypes.c_int32 if name == "elementwise" else None
            setattr(self, name, function)


@cache
def functions() -> Functions | None:
    """Return the functions in C; None, with a note in the log, where they cannot be compiled."""
    try:
        return Functions(library().file())
    except (FerruleError, OSError) as error:
        _LOG.info("streams of Ethos-U are executed by numpy, about four times slower: %s", error)
        return None
