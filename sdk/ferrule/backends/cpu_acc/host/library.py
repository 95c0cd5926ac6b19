# SPDX-License-Identifier: Apache-2.0
"""The C kernels as a shared library of this host, and their declarations in the form that cffi reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ferrule._frozen import frozen
from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.contribution import HEADERS, KERNELS, Contribution
from ferrule.backends.cpu_acc.host.units import units
from ferrule.errors import FerruleError
from ferrule.nativelib import RUN_REMEDY, NativeLibrary
from ferrule.reading import files_below, is_file, read_text

FLAGS = ("-std=c11", "-O3", "-ffp-contract=off")
"""Without contraction, float32 results are those of firmware and of the reference."""
OWN_FOLDER = Path(__file__).parents[1] / "src_c"
HOST = Contribution(
    name="backends/cpu_acc",
    folder=OWN_FOLDER,
    sources=tuple(sorted(path.relative_to(OWN_FOLDER).as_posix() for path in files_below(OWN_FOLDER, "*.c"))),
    include_dirs=("include",),
    licence="Apache-2.0",
)
"""C for the host only; it is never part of a firmware."""
_PARTS = (KERNELS, HOST)
_INCLUDE_DIRS = tuple(path for part in (*_PARTS, HEADERS) for path in part.include_paths)


@frozen(eq=False)
class HostLibrary:
    """The loaded kernels."""

    ffi: Any
    """A cffi.FFI with the declarations of the parameter tables of all kernels."""
    functions: Any
    """The loaded library; the kernels are its attributes."""


def native_library(extra_flags: Sequence[str] = ()) -> NativeLibrary:
    """Return the library to build: the portable kernels and the kernels for vector instructions."""
    return NativeLibrary(
        name="cpu_acc",
        title="kernels of CpuAcc",
        purpose="CpuAcc on the host",
        sources=tuple(path for part in _PARTS for path in part.source_paths),
        headers=tuple(part.folder / name for part in (*_PARTS, HEADERS) for name in part.files if name.endswith(".h")),
        include_dirs=(*_INCLUDE_DIRS, *(part.folder for part in _PARTS)),
        flags=(*FLAGS, *extra_flags),
        # the kernels for vector instructions are the last of the sources and take longest to compile
        units=lambda: [*(f'#include "{source}"\n' for source in reversed(HOST.sources)), *units(KERNELS)],
    )


def load(path: Path) -> HostLibrary:
    """Load a compiled library and return it with the declarations of its functions."""
    from cffi import FFI

    folders = [path for part in _PARTS for path in part.include_paths]
    found = [path.relative_to(folder) for folder in folders for path in files_below(folder, "*.h")]
    headers = [path.as_posix() for path in found if not path.name.endswith(".inc.h")]  # .inc.h: bodies, for sources
    ffi = FFI()
    ffi.cdef(declarations(headers, _INCLUDE_DIRS))
    return HostLibrary(ffi=ffi, functions=ffi.dlopen(str(path)))


@cache
def host_library() -> HostLibrary:
    """Return the loaded kernels; they are compiled first unless the cache has them.

    Raises:
        BackendUnavailableError: cffi or a compiler is missing, or the compilation failed.
    """
    if find_spec("cffi") is None:
        raise BackendUnavailableError("the Python package cffi is missing", hint=RUN_REMEDY)
    try:
        path = native_library().file()
        return load(path)
    except OSError as error:
        raise BackendUnavailableError(f"the compiled kernels can't be loaded: {error}") from error
    except FerruleError as error:
        raise BackendUnavailableError(str(error), hint=error.hint) from error


_INCLUDE = re.compile(r'#include "(.*)"')
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INLINE_FUNCTION = re.compile(
    r"^static (?:inline|__attribute__\(\(noinline\)\)) [^{;]*\{.*?^\}$", re.DOTALL | re.MULTILINE
)
_NUMBER = re.compile(r"^#define[ ]+(\w+)[ ]+([\w()+\- *]+)$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^#(?:.*\\\n)*.*$", re.MULTILINE)


def declarations(headers: Iterable[str], include_dirs: Sequence[Path]) -> str:
    """Return the declarations in `headers` and in the headers that they include, without inline functions.

    `headers` are named as in an #include. Numeric macros become enumerators. Code under a condition other than the
    include guard is left out, and so are headers of the compiler and the C library, whose types cffi knows.
    """
    seen: set[str] = set()
    text = "\n".join(_with_includes(header, include_dirs, seen) for header in headers)
    for pattern, replacement in (
        (_COMMENT, ""),
        (_INLINE_FUNCTION, ""),
        (_NUMBER, r"enum { \1 = \2 };"),
        (_DIRECTIVE, ""),
    ):
        text = pattern.sub(replacement, text)
    return "\n".join(line for line in text.splitlines() if line.strip())


def _with_includes(header: str, include_dirs: Sequence[Path], seen: set[str]) -> str:
    if header in seen:
        return ""
    seen.add(header)
    path = next(folder / header for folder in include_dirs if is_file(folder / header))
    lines = []
    depth = 0
    for line in read_text(path).splitlines():
        depth += line.startswith("#if")
        own = _INCLUDE.match(line)
        if depth <= 1:
            lines.append(_with_includes(own[1], include_dirs, seen) if own else line)
        depth -= line.startswith("#endif")
    return "\n".join(lines)
