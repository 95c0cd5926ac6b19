# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled objects, which saves running the same command on the same files again.

The key of an entry is the command, the compiler's program and the names of all headers in the include folders. An entry
is valid while every file that the compiler read has unchanged contents. Paths are taken relative to the project's
folder, so that a project with the same files elsewhere has the same objects. An object that contains the path of that
folder, through debug information or `__FILE__`, is not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from functools import cache
from pathlib import Path

from ferrule.firmware.plan import BuildPlan, CompileStep
from ferrule.nativelib import cache_folder, compiler_identity, write_atomically

LIMIT_BYTES = 256 << 20
"""Size of the cache above which its oldest entries are deleted, down to half this size."""

_VERSION = "1"
_PLACE = "{project}/"
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "CCC_OVERRIDE_OPTIONS")
"""Environment variables that affect the output of GCC and clang."""


class ObjectCache:
    """The objects in the user's cache folder, for one build; its methods may be called from several threads.

    If the cache cannot be read or written, everything is compiled, without an error.
    """

    def __init__(self, plan: BuildPlan) -> None:
        self._folder = cache_folder() / "objects"
        self._place = f"{plan.folder.parent}{os.sep}"
        self._digest = cache(_file_digest)
        self._names = cache(_names_below)
        self._identity = cache(compiler_identity)
        self._started_ns = time.time_ns()
        self._grew = False

    def restore(self, step: CompileStep) -> bool:
        """Write a step's object from the cache to its place, and return whether the cache has it."""
        try:
            stored = self._entry(step).read_bytes()
            checksum, head, data = stored.split(b"\n", 2)
            if hashlib.sha256(head + data).hexdigest().encode() != checksum:
                return False
            if any(self._digest(self._absolute(name)) != known for name, known in json.loads(head).items()):
                return False
            step.output.write_bytes(data)
        except (OSError, ValueError):  # missing, damaged, or made from a file that no longer exists
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
            self._folder.mkdir(parents=True, exist_ok=True)
            checksum = hashlib.sha256(head + data).hexdigest().encode()
            write_atomically(self._entry(step), b"\n".join((checksum, head, data)))
            self._grew = True
        except OSError:
            return

    def prune(self) -> None:
        """Delete the oldest entries, down to half the limit, if the cache has grown above it."""
        if not self._grew:
            return
        try:
            found = sorted((path.stat().st_mtime_ns, path.stat().st_size, path) for path in self._folder.iterdir())
            size_bytes = sum(size for _, size, _ in found)
            for _, size, path in found if size_bytes > LIMIT_BYTES else ():
                if size_bytes <= LIMIT_BYTES // 2:
                    break
                path.unlink(missing_ok=True)
                size_bytes -= size
        except OSError:  # another build is pruning at the same time
            return

    def _entry(self, step: CompileStep) -> Path:
        folders = [step.source.parent]
        for option in ("-I", "-isystem"):
            folders += [Path(each.removeprefix(option)) for each in step.argv if each.startswith(option)]
        facts = (
            _VERSION,
            self._identity(step.argv[:1]),
            *(f"{name}={os.environ.get(name, '')}" for name in _ENVIRONMENT),
            *(self._relative(each) for each in step.argv),
            *(name for folder in folders for name in self._names(folder)),
        )
        return self._folder / hashlib.sha256("\0".join(facts).encode()).hexdigest()

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
