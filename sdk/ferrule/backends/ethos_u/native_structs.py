# SPDX-License-Identifier: Apache-2.0
"""The structs of native/execute.h, and the functions of the library that is compiled from it."""

from __future__ import annotations

import ctypes
import logging
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ferrule.errors import FerruleError
from ferrule.nativelib import NativeLibrary
from ferrule.reading import read_text
from ferrule.record import building

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


FLAGS = ("-std=c11", "-O3", "-fwrapv", "-ffp-contract=off", "-fno-trapping-math", "-fno-signed-zeros", "-ffreestanding")
_TILES = 4
_INT, _LONG, _POINTER = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
Members = Sequence[tuple[str, type[Any]]]


def _all(kind: type[Any], *names: str) -> Members:
    return [(name, kind) for name in names]


class TileStruct(ctypes.Structure):
    """ferrule_ethos_u_tile."""

    _fields_ = (*_all(_INT, "y0", "y1", "x0", "x1"), ("first", _POINTER))


class MapStruct(ctypes.Structure):
    """ferrule_ethos_u_map."""

    _fields_ = (
        *_all(_INT, "height", "width", "depth", "brick", "type", "tile_count"),
        *_all(_LONG, "stride_y", "stride_x", "stride_c"),
        *_all(_INT, "zero_point"),
        ("tile", TileStruct * _TILES),
    )


class ScaleStruct(ctypes.Structure):
    """ferrule_ethos_u_scale."""

    _fields_ = (*_all(_LONG, "factor"), *_all(_INT, "shift", "mode", "headroom"))


class ActivationStruct(ctypes.Structure):
    """ferrule_ethos_u_activation."""

    _fields_ = (*_all(_INT, "type", "clips", "zero_point"), *_all(_LONG, "low", "high"), ("entries", _POINTER))


class WindowStruct(ctypes.Structure):
    """ferrule_ethos_u_window."""

    _fields_ = (
        *_all(_INT, "taps_y", "taps_x", "dilation_y", "dilation_x", "stride_y", "stride_x"),
        *_all(_INT, "top", "left", "bottom", "right", "height", "width"),
    )


_COMMON: Members = (("ifm", MapStruct), ("ofm", MapStruct), ("activation", ActivationStruct), ("window", WindowStruct))


class ConvolutionStruct(ctypes.Structure):
    """ferrule_ethos_u_convolution."""

    _fields_ = (
        *_COMMON,
        *_all(_INT, "mode"),
        *_all(_POINTER, "bias", "factor", "shift", "real_bias", "real_factor", "real_above", "real_below"),
    )


class PoolingStruct(ctypes.Structure):
    """ferrule_ethos_u_pooling."""

    _fields_ = (*_COMMON, ("scale", ScaleStruct), *_all(_INT, "mode", "divides"))


class ElementwiseStruct(ctypes.Structure):
    """ferrule_ethos_u_elementwise."""

    _fields_ = (
        *_COMMON,
        ("ifm2", MapStruct),
        *_all(ScaleStruct, "scale", "first", "second"),
        *_all(_LONG, "scalar"),
        *_all(_INT, "mode", "swapped", "is_scaled"),
    )


_ROWS = (_POINTER, _POINTER, _INT, _INT, _POINTER)
_FUNCTIONS: dict[str, tuple[type[Any], ...]] = {
    "extend": (_POINTER,) * 3,
    "extend_short": (_POINTER,) * 3,
    "patches": _ROWS,
    "finish": _ROWS,
    "finish_wide": _ROWS,
    "depthwise": (_POINTER,) * 5,
    "pool": (_POINTER,) * 3,
    "elementwise": (_POINTER,) * 3,
}
Functions = Mapping[str, Callable[..., int | None]]
"""The functions of the loaded library, by name without prefix."""


def loaded(path: Path) -> Functions:
    """Return the functions of a library; OSError if the system refuses to load it."""
    opened = ctypes.CDLL(str(path))
    found = {name: getattr(opened, f"ferrule_ethos_u_{name}") for name in _FUNCTIONS}
    for name, function in found.items():
        function.argtypes, function.restype = _FUNCTIONS[name], _INT if name == "elementwise" else None
    return found


@cache
def functions() -> Functions | None:
    """Return the functions in C; None, with a note in the log, where they cannot be compiled."""
    try:
        with building():  # the processor and the compiler of this machine are no inputs of a firmware
            return loaded(library().file())
    except (FerruleError, OSError) as error:
        _LOG.info("streams of Ethos-U are executed by numpy, about four times slower: %s", error)
        return None
