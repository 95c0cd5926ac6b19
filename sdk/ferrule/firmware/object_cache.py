# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled objects and linked firmwares, which saves running the same command on the same files again.

The key of an object is the command, the compiler's program and the names of all headers in the include folders. An
object is valid while every file that the compiler read has unchanged contents. Paths are taken relative to the
project's folder, so that a project with the same files elsewhere has the same objects. An object that contains the path
of that folder, through debug information or `__FILE__`, is not kept. The key of a firmware is the linker's command, its
program and the contents of its inputs.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ferrule.cache import Store
from ferrule.firmware.plan import BuildPlan, CompileStep
from ferrule.nativelib import compiler_identity

_VERSION = "2"
_PLACE = "{project}/"
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH", "CCC_OVERRIDE_OPTIONS")
"""Environment variables that affect the output of GCC and clang."""


class ObjectCache:
    """The objects and firmwares in the cache folder, for one build; its methods may be called from several threads."""

    def __init__(self, plan: BuildPlan) -> None:
        self._store = Store("objects")
        self._place = f"{plan.folder.parent}{os.sep}"
        self._digest = cache(_file_digest)
        self._names = cache(_names_below)
        self._identity = cache(compiler_identity)
        self._started_ns = time.time_ns()

    def restore(self, step: CompileStep) -> bool:
        """Write a step's object from the cache to its place, and return whether the cache has it."""
        try:
            head, data = (self._store.get(self._key_of_object(step)) or b"").split(b"\n", 1)
            if any(self._digest(self._absolute(name)) != known for name, known in json.loads(head).items()):
                return False
            step.output.write_bytes(data)
        except (OSError, ValueError):  # missing, or made from a file that no longer exists
            return False
        return True

    def keep(self, step: CompileStep) -> None:
        """Add the object that a step has just compiled to the cache."""
        try:
            data = step.output.read_bytes()
            if self._place.encode() in data:
                return
            read = _prerequisites(step.dependencies.read_text(encoding="utf-8"))
            if any(Path(name).stat().st_mtime_ns > self._started_ns for name in read):
                return  # the compiler may have read earlier contents
            head = json.dumps({self._relative(name): self._digest(Path(name)) for name in read}).encode()
            self._store.keep(self._key_of_object(step), head + b"\n" + data)
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

    def _key_of_object(self, step: CompileStep) -> str:
        folders = [step.source.parent]
        for option in ("-I", "-isystem"):
            folders += [Path(each.removeprefix(option)) for each in step.argv if each.startswith(option)]
        return self._key(step.argv, [name for folder in folders for name in self._names(folder)])

    def _key_of_firmware(self, argv: Sequence[str], inputs: Sequence[Path]) -> str:
        return self._key(argv, [_file_digest(path) for path in inputs])

    def _key(self, argv: Sequence[str], facts: Sequence[str]) -> str:
        every = (
            _VERSION,
            self._identity(tuple(argv[:1])),
            *(f"{name}={os.environ.get(name, '')}" for name in _ENVIRONMENT),
            *(self._relative(each) for each in argv),
            *facts,
        )
        return hashlib.sha256("\0".join(every).encode()).hexdigest()

    def _relative(self, text: str) -> str:
        return text.replace(self._place, _PLACE)

    def _absolute(self, name: str) -> Path:
        return Path(name.replace(_PLACE, self._place))


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _names_below(folder: Path) -> tuple[str, ...]:
    """Return the paths of all headers in a folder; a new header may precede another on the compiler's search path."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.h"))
    return (str(len(names)), *names)


def _prerequisites(rule: str) -> list[str]:
    """Return the files that a compiler read, as listed in the make rule that it wrote."""
    words = rule.replace("\\\n", " ").partition(": ")[2].replace("\\ ", "\0").split()
    return [word.replace("\0", " ").replace("$$", "$").replace("\\#", "#") for word in words]
