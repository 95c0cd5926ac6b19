# SPDX-License-Identifier: Apache-2.0
"""C for microcontrollers, compiled for this host as a shared library that a test loads."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from ferrule.cache import Store
from ferrule.errors import FerruleError
from ferrule.nativelib import compiler_facts, host_compiler, run_compiler
from ferrule.reading import is_file
from ferrule.scratch import ScratchFolder
from ferrule.testing.cdata import CData
from ferrule.testing.declarations import declare, include_flags, preprocess

SANITIZERS = ("address", "undefined", "thread")
PRELOADED = {"address": "libasan", "thread": "libtsan"}
"""Libraries that a process must load before Python."""
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
FAKES = Path(__file__).parent / "fakes"
_TESTED = ("-std=c11", "-g", *WARNINGS)
_FAKED = ("-std=gnu11", "-g", "-O1")
_FAKE = re.compile(r"\bstruct fake_call fake_begin\(")
"""A declaration of `fake.h`."""


def check_sanitizers(names: Collection[str]) -> None:
    """Raise FerruleError if one of the sanitizers is unknown."""
    unknown = set(names) - set(SANITIZERS)
    if unknown:
        raise FerruleError(
            f"there is no sanitizer {', '.join(sorted(unknown))}", hint=f"known: {', '.join(SANITIZERS)}"
        )


@dataclass(frozen=True, kw_only=True)
class HostBuild:
    """Builds a library from sources under test and the fakes that they call."""

    title: str
    """Name in messages."""
    sources: tuple[Path, ...]
    """The sources under test and the user's own fakes, which include `fake.h`.

    Warnings are errors in the sources under test, and only they are sanitized and measured for coverage.
    """
    fakes: tuple[Path, ...]
    headers: tuple[str, ...]
    """Headers declared to Python, named as in an `#include`."""
    include_dirs: tuple[Path, ...]
    defines: tuple[tuple[str, str], ...] = ()
    flags: tuple[tuple[Path, str], ...] = ()
    """More options for single sources under test, each after its source."""
    sanitizers: tuple[str, ...] = ()
    coverage: bool = False

    def declare(self, ffi: CData) -> None:
        """Declare the headers to a cffi interface.

        Raises:
            FerruleError: a header cannot be read; the message names its file and line.
        """
        declare(ffi, [*self._command, *self._tested], self.headers, title=f"the headers of {self.title}")

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
            objects = list(pool.map(self.object_of, (*self.sources, *self.fakes)))
        command = [*self._command, "-shared", *self._watching, *map(str, objects)]
        return self._made(Path(f"lib{objects[0].stem}.so"), "\0".join(command), [*command, "-pthread"])

    @property
    def tested(self) -> tuple[Path, ...]:
        """The sources under test: those that are no fakes."""
        command = [*self._command, *self._tested]
        return tuple(path for path in self.sources if _FAKE.search(_preprocessed(command, path)) is None)

    @property
    def _command(self) -> tuple[str, ...]:
        return host_compiler("the host kit")

    @property
    def _tested(self) -> list[str]:
        return [*_TESTED, *self._defines, *include_flags(self.include_dirs)]

    @property
    def _defines(self) -> list[str]:
        return [f"-D{name}={value}" if value else f"-D{name}" for name, value in self.defines]

    @property
    def _watching(self) -> list[str]:
        flags = ["-fPIC", "-pthread"]
        if self.sanitizers:
            flags += [f"-fsanitize={','.join(self.sanitizers)}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
        return [*flags, *(["--coverage"] if self.coverage else [])]

    def object_of(self, source: Path) -> Path:
        """Return the object file of a source."""
        if not is_file(source):
            raise FerruleError(f"{self.title}: there is no source {source}")
        command = [*self._command, *self._options(source)]
        seen = _preprocessed(command, source)
        if source in self.sources and _FAKE.search(seen) is not None:
            command = [*self._command, *self._options_of_fakes, *self._defines]
            seen = _preprocessed(command, source)
        target = Path(f"{source.stem}.o")
        return self._made(target, "\0".join([*command, seen]), [*command, "-c", str(source.resolve())])

    def _options(self, source: Path) -> list[str]:
        if source in self.sources:
            own = [flag for path, flag in self.flags if path == source]
            return [*self._tested, *own, *self._watching, "-O0" if self.coverage else "-O1"]
        return [*self._options_of_fakes, *(["-DFERRULE_FAKE_COVERAGE"] if self.coverage else [])]

    @property
    def _options_of_fakes(self) -> list[str]:
        return [*_FAKED, *include_flags(self.include_dirs), "-fPIC", "-pthread"]

    def _made(self, name: Path, read: str, argv: Sequence[str]) -> Path:
        """Run a compiler command that makes a file, unless the cache has the result for the same input."""
        facts = (*compiler_facts(self._command), _compiler_version(self._command), platform.machine())
        key = hashlib.sha256("\0".join([read, *facts]).encode())
        cached = f"{name.stem}_{key.hexdigest()[:24]}{name.suffix}"

        def make(target: Path) -> None:
            run_compiler([*argv, "-o", str(target)], f"can't compile {self.title}")

        if not self.coverage:
            return Store("testing").file(cached, make)
        # gcc names the coverage data after the object, so the object must have its final name from the start
        target = self._counted.path / cached
        if not is_file(target):
            make(target)
        return target


def _preprocessed(command: Sequence[str], source: Path) -> str:
    return preprocess(command, f'#include "{source.resolve()}"\n', title=str(source))


@cache
def _compiler_version(command: tuple[str, ...]) -> str:
    return f"{sys.platform} {run_compiler([*command, '--version'], 'the compiler does not work')}"
