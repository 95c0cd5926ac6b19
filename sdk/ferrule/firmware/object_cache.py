# SPDX-License-Identifier: Apache-2.0
"""Objects of earlier builds, so that the same command on the same files is not run again.

An entry is found by the command, the compiler's program and the names of all files in the include folders, and is valid
while every file that the compiler read has the contents that it had then. The project's folder counts as no part of
a path: a project elsewhere with the same files has the same objects. An object that holds that folder's path, as debug
information and `__FILE__` make it, is not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path

from ferrule.firmware.plan import BuildPlan, CompileStep
from ferrule.nativelib import cache_folder, compiler_identity, write_atomically

LIMIT_BYTES = 256 << 20
"""The cache's size above which its oldest half is deleted."""

_VERSION = "1"
_PLACE = "{project}/"
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "CCC_OVERRIDE_OPTIONS")
"""Variables that change what GCC and clang compile."""


class ObjectCache:
    """The objects kept in the user's cache folder, as one build sees them; its methods may run in several threads.

    A cache that cannot be read or written is no error: everything is compiled.
    """

    def __init__(self, plan: BuildPlan) -> None:
        self._folder = cache_folder() / "objects"
        self._place = f"{plan.folder.parent}{os.sep}"
        self._digest = cache(_file_digest)
        self._names = cache(_names_below)
        self._identity = cache(compiler_identity)
        self._grew = False

    def restore(self, step: CompileStep) -> bool:
        """Write the object of a step from the cache, and return whether the cache has it."""
        try:
            stored = self._entry(step).read_bytes()
            checksum, head, data = stored.split(b"\n", 2)
            if hashlib.sha256(head + data).hexdigest().encode() != checksum:
                return False
            if any(self._digest(self._absolute(name)) != known for name, known in json.loads(head).items()):
                return False
        except (OSError, ValueError):  # not there, damaged, or a file that it was made from is gone
            return False
        step.output.write_bytes(data)
        return True

    def keep(self, step: CompileStep) -> None:
        """Keep the object that a step has just made."""
        try:
            data = step.output.read_bytes()
            if self._place.encode() in data:
                return
            read = (self._relative(name) for name in _prerequisites(step.dependencies.read_text(encoding="utf-8")))
            head = json.dumps({name: self._digest(self._absolute(name)) for name in read}).encode()
            self._folder.mkdir(parents=True, exist_ok=True)
            checksum = hashlib.sha256(head + data).hexdigest().encode()
            write_atomically(self._entry(step), b"\n".join((checksum, head, data)))
            self._grew = True
        except OSError:
            return

    def prune(self) -> None:
        """Delete the oldest half of the cache if it has grown above the limit."""
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
        except OSError:  # another build prunes at the same time
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
    """Return the names of all headers below a folder: a new one may come before another on the compiler's path."""
    return (str(len(folder.parts)), *sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.h")))


def _prerequisites(rule: str) -> list[str]:
    """Return the files that a compiler read, from the rule for make that it wrote."""
    words = rule.replace("\\\n", " ").partition(": ")[2].replace("\\ ", "\0").split()
    return [word.replace("\0", " ").replace("$$", "$").replace("\\#", "#") for word in words]
