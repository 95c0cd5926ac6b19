# SPDX-License-Identifier: Apache-2.0
"""An upper bound of the stack that a bare-metal firmware uses, from its call graph."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from ferrule.architectures import Architecture, Cpu
from ferrule.firmware.frames import Code
from ferrule.firmware.image import StackBound
from ferrule.firmware.pointer_calls import Pointers

_OWN_STACK = "ferrule_fault_entry"
"""Changes to a stack of its own and does not return."""


class _NoBoundError(Exception):
    """Why there is no bound."""


def stack_bound(elf: Path, objects: Iterable[Path], architecture: Architecture, cpu: Cpu) -> StackBound:
    """Return the bound of a firmware that is linked for a core and whose pointers the object files describe.

    It is the deepest path of calls from the reset handler, and once the deepest exception handler with the registers
    that the core saves. The bound is valid if all interrupts keep the same priority, as after reset, so that none
    preempts another, and if functions in assembly and in libraries call only what their code names.
    """
    try:
        return _Graph(elf, objects, architecture).bound(architecture.exception_bytes(cpu))
    except _NoBoundError as error:
        return StackBound(reason=str(error))
    except RecursionError:
        return StackBound(reason="the calls are nested too deeply to follow them")
    except (OSError, struct.error, IndexError, ValueError) as error:
        return StackBound(reason=f"{elf.name} or its objects cannot be read: {error}")


class _Graph:
    """The depth of each function with all that it calls."""

    def __init__(self, elf: Path, objects: Iterable[Path], architecture: Architecture) -> None:
        self._architecture = architecture
        code = self._code = Code(elf, architecture.instructions)
        self._pointers = Pointers(objects, architecture.instructions)
        kinds = self._pointers.kinds
        self._taken = [
            (address, kinds[key]) for address, keys in sorted(code.keys.items()) for key in keys if key in kinds
        ]
        self._depths: dict[int, tuple[int, int | None]] = {}
        """The depth of each function, and the next one on its deepest path."""
        self._open: list[int] = []

    def bound(self, frame_bytes: int) -> StackBound:
        """Return the bound, with this number of bytes that the core saves at an exception."""
        try:
            reset, *handlers = self._architecture.handlers(self._code.symbols, self._code.word)
        except LookupError as error:
            raise _NoBoundError(f"the firmware {error}") from None
        depth = self.depth(reset)
        handler = max(handlers, key=self.depth)
        exception = frame_bytes + self.depth(handler)
        return StackBound(
            size_bytes=-(-(depth + exception) // 8) * 8,  # as `placement.stack_bytes` is
            exception_bytes=exception,
            path=tuple(self._code.name(each) for each in self._path(reset)),
        )

    def depth(self, function: int) -> int:
        """Return the greatest depth of a function and all that it calls."""
        if function in self._depths:
            return self._depths[function][0]
        if function in self._open:
            cycle = [*self._open[self._open.index(function) :], function]
            raise _NoBoundError(f"recursion: {' → '.join(self._code.name(each) for each in cycle)}")
        name = self._code.name(function)
        if name == _OWN_STACK:
            self._depths[function] = (0, None)
            return 0
        if function not in self._code.keys:
            raise _NoBoundError(f"{self._code.name(self._open[-1])} calls {name}, which is no function")
        frame = self._code.frame(function)
        if frame.problem:
            raise _NoBoundError(f"{name} {frame.problem}")
        self._open.append(function)
        deepest: tuple[int, int | None] = (frame.deepest, None)
        for target, depth in self._calls(function).items():
            whole = depth + self.depth(target)
            if whole > deepest[0]:
                deepest = (whole, target)
        self._open.pop()
        self._depths[function] = deepest
        return deepest[0]

    def _calls(self, function: int) -> dict[int, int]:
        frame = self._code.frame(function)
        calls = dict(frame.calls)
        if frame.pointer_depth is not None:
            kinds = self._pointers.called_by(self._code.keys[function])
            for address, kind in self._taken:
                if kind & kinds:
                    calls[address] = max(frame.pointer_depth, calls.get(address, 0))
        return calls

    def _path(self, function: int) -> list[int]:
        path: list[int] = []
        following: int | None = function
        while following is not None:
            path.append(following)
            following = self._depths[following][1]
        return path
