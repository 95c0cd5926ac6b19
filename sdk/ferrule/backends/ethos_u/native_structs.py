# SPDX-License-Identifier: Apache-2.0
"""The structs and the functions of native/execute.h, and the library that is compiled from it."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ferrule import nativelib
from ferrule.errors import FerruleError
from ferrule.nativelib import NativeLibrary
from ferrule.reading import read_text
from ferrule.record import building

_LOG = logging.getLogger(__name__)
_FOLDER = Path(__file__).with_name("native")
_HEADER = _FOLDER / "execute.h"


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
        headers=(_HEADER,),
        include_dirs=(_FOLDER,),
        flags=(*FLAGS, *(("-march=native",) if features else ()), *extra_flags),
        facts=(features,),
    )


FLAGS = ("-std=c11", "-O3", "-fwrapv", "-ffp-contract=off", "-fno-trapping-math", "-fno-signed-zeros", "-ffreestanding")
"""Sums wrap, and products are rounded before they are added, as in numpy. Traps and the sign of zero affect no result;
without them, more loops become vector instructions."""
Functions = Mapping[str, Callable[..., int | None]]
"""The functions of the loaded library, by name."""


@cache
def structs() -> Mapping[str, Any]:
    """Return the classes of the structs of the header, by tag."""
    with building():
        return nativelib.structs(_HEADER)


@cache
def functions() -> Functions | None:
    """Return the functions in C; None, with a note in the log, where they cannot be compiled."""
    try:
        with building():  # the processor and the compiler of this machine are no inputs of a firmware
            return library().functions()
    except (FerruleError, OSError) as error:
        _LOG.info("streams of Ethos-U are executed by numpy, about four times slower: %s", error)
        return None
