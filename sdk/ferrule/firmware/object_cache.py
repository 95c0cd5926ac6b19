# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled objects and linked firmwares, which saves running the same command on the same files again.

The key of an object is the command, the compiler's program and the contents of the source. Its record has the contents
of each file that the compiler read, and the paths of all files in the include folders that are called like one of them,
since a new one may precede it on the compiler's search path. If a file uses `__has_include`, all headers count.

Paths are taken relative to the project's folder, so that a project with the same files elsewhere has the same objects.
An object that contains the path of that folder, through debug information or `__FILE__`, is not kept. The key of a
firmware is the linker's command, its program and the contents of its inputs, beside which nothing is recorded.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ferrule.cache import RecordedStore
from ferrule.firmware.plan import BuildPlan, CompileStep
from ferrule.nativelib import compiler_facts, prerequisites
from ferrule.reading import read_bytes, read_text
from ferrule.record import BELOW, CONTENTS, Read, file_digest, spelled

_VERSION = "5"
_PROJECT = "{project}"
_HAS_INCLUDE = re.compile(rb"\b__has_include\b")


class ObjectCache:
    """The objects and firmwares in the cache folder, for one build; its methods may be called from several threads."""

    def __init__(self, plan: BuildPlan) -> None:
        self._places = {_PROJECT: str(plan.folder.parent)}
        self._place = f"{plan.folder.parent}{os.sep}"
        self._store = RecordedStore("objects", self._places)
        self._facts = cache(compiler_facts)
        self._started_ns = time.time_ns()

    def restore(self, step: CompileStep) -> bool:
        """Write a step's object from the cache to its place, and return whether the cache has it."""
        try:
            data = self._store.get(self._key_of_step(step))
            if data is None:
                return False
            step.output.write_bytes(data)
        except OSError:
            return False
        return True

    def keep(self, step: CompileStep) -> None:
        """Add the object that a step has just compiled to the cache."""
        try:
            data = read_bytes(step.output)
            if self._place.encode() in data:
                return
            read = prerequisites(read_text(step.dependencies))
            if any(Path(name).stat().st_mtime_ns > self._started_ns for name in read):
                return  # the compiler may have read earlier contents
            self._store.keep(self._key_of_step(step), tuple(self._reads(step, read)), data)
        except OSError:
            return

    def firmware(self, argv: Sequence[str], inputs: Sequence[Path]) -> bytes | None:
        """Return the firmware that a linker's command made earlier from the same inputs, or None."""
        return self._store.get(self._key_of_firmware(argv, inputs))

    def keep_firmware(self, argv: Sequence[str], inputs: Sequence[Path], data: bytes) -> None:
        """Add the firmware that a linker's command has just made to the cache."""
        self._store.keep(self._key_of_firmware(argv, inputs), (), data)

    def prune(self) -> None:
        """Delete the least recently used entries if the cache has grown above its limit."""
        self._store.prune()

    def _key_of_step(self, step: CompileStep) -> str:
        return self._key(step.argv, [file_digest(str(step.source))])

    def _reads(self, step: CompileStep, names: Sequence[str]) -> Iterator[Read]:
        """Yield what a step's object depends on, with the present answers; OSError if a file is missing."""
        called = sorted({Path(name).name for name in names})
        asks = any(_HAS_INCLUDE.search(read_bytes(Path(name))) for name in names)
        folders = [step.source.parent]
        for option in ("-I", "-isystem"):
            folders += [Path(each.removeprefix(option)) for each in step.argv if each.startswith(option)]
        wanted = BELOW + ("*.h" if asks else "/".join(called))
        questions = [(name, CONTENTS) for name in dict.fromkeys(names)]
        questions += [(str(folder), wanted) for folder in dict.fromkeys(folders)]
        for path, question in questions:
            yield Read(spelled(path, self._places), question, self._store.answer(path, question))

    def _key_of_firmware(self, argv: Sequence[str], inputs: Sequence[Path]) -> str:
        return self._key(argv, [hashlib.sha256(read_bytes(path)).hexdigest() for path in inputs])

    def _key(self, argv: Sequence[str], facts: Sequence[str]) -> str:
        every = (
            _VERSION,
            *self._facts(tuple(argv[:1])),
            *(self._relative(each) for each in argv),
            *facts,
        )
        return hashlib.sha256("\0".join(every).encode()).hexdigest()

    def _relative(self, text: str) -> str:
        whole = f"{text}{os.sep}"  # it may end with the folder itself
        return whole.replace(self._place, f"{_PROJECT}{os.sep}").removesuffix(os.sep)
