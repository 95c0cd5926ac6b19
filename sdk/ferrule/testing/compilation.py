# SPDX-License-Identifier: Apache-2.0
"""C for microcontrollers, compiled for this host as a shared library that a test loads."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from ferrule.cache import Store
from ferrule.errors import FerruleError
from ferrule.nativelib import host_compiler, run_compiler
from ferrule.scratch import ScratchFolder
from ferrule.testing.declarations import declarations, include_flags, preprocess

SANITIZERS = ("address", "undefined", "thread")
PRELOADED = {"address": "libasan", "thread": "libtsan"}
"""Libraries that a process must load before Python."""
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
FAKES = Path(__file__).parent / "fakes"
_RECORDED = re.compile(r'^\w[\w *]*?(\w+)\([^;{]*\)\n\{\n    FAKE_CALL\(|FAKE_CALL_OF\(\w+, "(\w+)"', re.MULTILINE)
_TESTED = ("-std=c11", "-g", *WARNINGS)
_FAKED = ("-std=gnu11", "-g", "-O1")


@dataclass(frozen=True, kw_only=True)
class HostBuild:
    """Builds a library from sources under test and the fakes that they call."""

    title: str
    """Name in messages."""
    sources: tuple[Path, ...]
    """The sources under test: warnings are errors in them, and only they are sanitized and measured for coverage."""
    fakes: tuple[Path, ...]
    headers: tuple[str, ...]
    """Headers declared to Python, named as in an `#include`."""
    include_dirs: tuple[Path, ...]
    defines: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()
    """More options for the sources under test."""
    sanitizers: tuple[str, ...] = ()
    coverage: bool = False

    def declarations(self) -> str:
        """Return the declarations of the headers, for FFI.cdef."""
        return declarations([*self._command, *self._tested], self.headers, title=f"the headers of {self.title}")

    @cached_property
    def _counted(self) -> ScratchFolder:
        """Temporary folder for the objects and counters of coverage."""
        return ScratchFolder()

    def library(self) -> Path:
        """Return the path of the shared library; objects and libraries are cached by a hash of the compiler's input.

        Raises:
            MissingToolError: no compiler was found.
            CompilationError: the C does not compile without warnings.
        """
        if self.coverage and "Free Software Foundation" not in _compiler_version(self._command):
            raise FerruleError(
                f"{shlex.join(self._command)} is not gcc, which alone counts lines and branches for gcov",
                hint="set CC to gcc",
            )
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(self._object, (*self.sources, *self.fakes)))
        command = [*self._command, "-shared", *self._watching, *map(str, objects)]
        return self._made(Path(f"lib{objects[0].stem}.so"), "\0".join(command), [*command, "-pthread"])

    def fake_functions(self) -> frozenset[str]:
        """Return the names of the functions that are recorded and can be scripted."""
        texts = [path.read_text(encoding="utf-8") for path in (*self.fakes, *self.sources)]
        return frozenset(first or second for text in texts for first, second in _RECORDED.findall(text))

    def object_of(self, source: Path) -> Path:
        """Return the object file of a source under test."""
        return self._object(source)

    @property
    def _command(self) -> tuple[str, ...]:
        return host_compiler("the host kit")

    @property
    def _tested(self) -> list[str]:
        defines = [f"-D{name}={value}" if value else f"-D{name}" for name, value in self.defines]
        return [*_TESTED, *self.flags, *defines, *include_flags(self.include_dirs)]

    @property
    def _watching(self) -> list[str]:
        flags = ["-fPIC", "-pthread"]
        if self.sanitizers:
            flags += [f"-fsanitize={','.join(self.sanitizers)}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
        return [*flags, *(["--coverage"] if self.coverage else [])]

    def _object(self, source: Path) -> Path:
        if source in self.sources:
            options = [*self._tested, *self._watching, "-O0" if self.coverage else "-O1"]
        else:
            options = [*_FAKED, *include_flags(self.include_dirs), "-fPIC", "-pthread"]
            options += ["-DFERRULE_FAKE_COVERAGE"] if self.coverage else []
        command = [*self._command, *options]
        if not source.is_file():
            raise FerruleError(f"{self.title}: there is no source {source}")
        seen = preprocess(command, f'#include "{source.resolve()}"\n', title=str(source))
        target = Path(f"{source.stem}.o")
        return self._made(target, "\0".join([*command, seen]), [*command, "-c", str(source.resolve())])

    def _made(self, name: Path, read: str, argv: Sequence[str]) -> Path:
        """Run a compiler command that makes a file, unless the cache has the result for the same input."""
        key = hashlib.sha256("\0".join([read, _compiler_version(self._command), platform.machine()]).encode())
        cached = f"{name.stem}_{key.hexdigest()[:24]}{name.suffix}"

        def make(target: Path) -> None:
            run_compiler([*argv, "-o", str(target)], f"can't compile {self.title}")

        if not self.coverage:
            return Store("testing").file(cached, make)
        # gcc names the coverage data after the object, so the object must have its final name from the start
        target = self._counted.path / cached
        if not target.is_file():
            make(target)
        return target


@cache
def _compiler_version(command: tuple[str, ...]) -> str:
    return f"{sys.platform} {run_compiler([*command, '--version'], 'the compiler does not work')}"
