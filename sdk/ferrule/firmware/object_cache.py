# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled objects and linked firmwares, which saves running the same command on the same files again.

An object is found in two steps. The first key is the command, the compiler's program and the contents of the source;
under it are the lists of files that the compiler read, for each project that had such a command. The second key adds
the contents of the files of one list, and the names of all headers in the include folders that are called like one of
them, since a new one may precede it on the compiler's search path. If a file uses `__has_include`, all headers count.

Paths are taken relative to the project's folder, so that a project with the same files elsewhere has the same objects.
An object that contains the path of that folder, through debug information or `__FILE__`, is not kept. The key of a
firmware is the linker's command, its program and the contents of its inputs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ferrule.cache import Store
from ferrule.firmware.plan import BuildPlan, CompileStep
from ferrule.nativelib import compiler_identity
from ferrule.reading import files_below, read_bytes, read_text

_VERSION = "3"
_PLACE = f"{{project}}{os.sep}"
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH", "CCC_OVERRIDE_OPTIONS")
"""Environment variables that affect the output of GCC and clang."""
_MAX_LISTS = 16
"""Lists kept for one command and source."""
_HAS_INCLUDE = re.compile(rb"\b__has_include\b")


class ObjectCache:
    """The objects and firmwares in the cache folder, for one build; its methods may be called from several threads."""

    def __init__(self, plan: BuildPlan) -> None:
        self._store = Store("objects")
        self._place = f"{plan.folder.parent}{os.sep}"
        self._read = cache(_contents)
        self._names = cache(_names_below)
        self._identity = cache(compiler_identity)
        self._started_ns = time.time_ns()

    def restore(self, step: CompileStep) -> bool:
        """Write a step's object from the cache to its place, and return whether the cache has it."""
        try:
            key = self._key_of_step(step)
            for names in self._lists(key):
                known = self._key_of_object(key, step, names)
                data = None if known is None else self._store.get(known)
                if data is not None:
                    step.output.write_bytes(data)
                    return True
        except OSError:
            return False
        return False

    def keep(self, step: CompileStep) -> None:
        """Add the object that a step has just compiled to the cache."""
        try:
            data = read_bytes(step.output)
            if self._place.encode() in data:
                return
            read = _prerequisites(read_text(step.dependencies))
            if any(Path(name).stat().st_mtime_ns > self._started_ns for name in read):
                return  # the compiler may have read earlier contents
            key, names = self._key_of_step(step), [self._relative(name) for name in read]
            known = self._key_of_object(key, step, names)
            if known is not None:
                self._store.keep(known, data)
                lists = [names, *(other for other in self._lists(key) if other != names)]
                self._store.keep(key, json.dumps(lists[:_MAX_LISTS]).encode())
        except OSError:
            return

    def firmware(self, argv: Sequence[str], inputs: Sequence[Path]) -> bytes | None:
        """Return the firmware that a linker's command made earlier from the same inputs, or None."""
        return self._store.get(self._key_of_firmware(argv, inputs))

    def keep_firmware(self, argv: Sequence[str], inputs: Sequence[Path], data: bytes) -> None:
        """Add the firmware that a linker's command has just made to the cache."""
        self._store.keep(self._key_of_firmware(argv, inputs), data)

    def prune(self) -> None:
        """Delete the least recently used entries if the cache has grown above its limit."""
        self._store.prune()

    def _lists(self, key: str) -> list[list[str]]:
        """Return the lists of files that compilers read for a step with this key, the latest first."""
        return json.loads(self._store.get(key) or b"[]")  # type: ignore[no-any-return]

    def _key_of_step(self, step: CompileStep) -> str:
        return self._key(step.argv, [self._read(step.source).digest])

    def _key_of_object(self, key: str, step: CompileStep, names: Sequence[str]) -> str | None:
        """Return the key of a step's object for the present contents of these files; None if one is missing."""
        try:
            read = [self._read(self._absolute(name)) for name in names]
        except OSError:
            return None
        folders = [step.source.parent]
        for option in ("-I", "-isystem"):
            folders += [Path(each.removeprefix(option)) for each in step.argv if each.startswith(option)]
        called = None if any(each.asks for each in read) else {Path(name).name for name in names}
        facts = [fact for name, each in zip(names, read, strict=True) for fact in (name, each.digest)]
        for folder in folders:
            facts.append(self._relative(str(folder)))
            facts += [name for last, name in self._names(folder) if called is None or last in called]
        return _hash([key, *facts])

    def _key_of_firmware(self, argv: Sequence[str], inputs: Sequence[Path]) -> str:
        return self._key(argv, [_contents(path).digest for path in inputs])

    def _key(self, argv: Sequence[str], facts: Sequence[str]) -> str:
        every = (
            _VERSION,
            self._identity(tuple(argv[:1])),
            *(f"{name}={os.environ.get(name, '')}" for name in _ENVIRONMENT),
            *(self._relative(each) for each in argv),
            *facts,
        )
        return _hash(every)

    def _relative(self, text: str) -> str:
        return f"{text}{os.sep}".replace(self._place, _PLACE).removesuffix(os.sep)  # it may end with the folder itself

    def _absolute(self, name: str) -> Path:
        return Path(name.replace(_PLACE, self._place))


@dataclass(frozen=True, slots=True)
class _Contents:
    """A file that a compiler read."""

    digest: str
    asks: bool
    """Whether it may use `__has_include`, whose result depends on files that were not read."""


def _contents(path: Path) -> _Contents:
    data = read_bytes(path)
    return _Contents(hashlib.sha256(data).hexdigest(), _HAS_INCLUDE.search(data) is not None)


def _hash(facts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def _names_below(folder: Path) -> tuple[tuple[str, str], ...]:
    """Return the last part and the path of all headers in a folder, sorted."""
    return tuple(sorted((path.name, path.relative_to(folder).as_posix()) for path in files_below(folder, "*.h")))


def _prerequisites(rule: str) -> list[str]:
    """Return the files that a compiler read, as listed in the make rule that it wrote."""
    words = rule.replace("\\\n", " ").partition(": ")[2].replace("\\ ", "\0").split()
    return [word.replace("\0", " ").replace("$$", "$").replace("\\#", "#") for word in words]
