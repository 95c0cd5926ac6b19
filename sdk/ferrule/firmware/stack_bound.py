# SPDX-License-Identifier: Apache-2.0
"""An upper bound of the stack that a bare-metal firmware uses, from its call graph."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from ferrule.firmware.frames import Code
from ferrule.firmware.image import StackBound
from ferrule.firmware.pointer_calls import Pointers

_OWN_STACK = "ferrule_fault_entry"
"""Changes to a stack of its own and does not return."""
_VECTOR_TABLES = ("ferrule_vectors", "ferrule_interrupt_vectors")
_SYSTEM_EXCEPTIONS, _INTERRUPT_LINES = 16, 128
_RESET = 1
_FRAME, _FLOAT_FRAME, _ALIGNMENT = 32, 104, 4
"""Bytes that the core saves at an exception, without and with floating-point registers, and the padding (Armv8-M ARM,
B3.19)."""


class _NoBoundError(Exception):
    """Why there is no bound."""


def stack_bound(elf: Path, objects: Iterable[Path], *, fpu: bool) -> StackBound:
    """Return the bound of a linked firmware whose pointers the object files describe.

    It is the deepest path of calls from the reset handler, and once the deepest exception handler with the registers
    that the core saves. The bound is valid if all interrupts keep the same priority, as after reset, so that none
    preempts another, and if functions in assembly and in libraries call only what their code names.
    """
    try:
        return _Graph(Code(elf), objects).bound(_FLOAT_FRAME if fpu else _FRAME)
    except _NoBoundError as error:
        return StackBound(reason=str(error))
    except RecursionError:
        return StackBound(reason="the calls are nested too deeply to follow them")
    except (OSError, struct.error, IndexError, ValueError) as error:
        return StackBound(reason=f"{elf.name} or its objects cannot be read: {error}")


class _Graph:
    """The depth of each function with all that it calls."""

    def __init__(self, code: Code, objects: Iterable[Path]) -> None:
        self._code = code
        self._pointers = Pointers(objects)
        kinds = self._pointers.kinds
        self._taken = [
            (address, kinds[key]) for address, keys in sorted(code.keys.items()) for key in keys if key in kinds
        ]
        self._depths: dict[int, tuple[int, int | None]] = {}
        """The depth of each function, and the next one on its deepest path."""
        self._open: list[int] = []

    def bound(self, frame_bytes: int) -> StackBound:
        """Return the bound, with this number of bytes that the core saves at an exception."""
        reset, *handlers = self._vectors()
        depth = self.depth(reset)
        handler = max(handlers, key=self.depth)
        exception = frame_bytes + _ALIGNMENT + self.depth(handler)
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

    def _vectors(self) -> list[int]:
        """Return the reset handler, and then every other handler of the vector table once."""
        if _VECTOR_TABLES[0] not in self._code.symbols:
            raise _NoBoundError(f"the firmware has no vector table {_VECTOR_TABLES[0]}")
        words: list[int] = []
        for table, count in zip(_VECTOR_TABLES, (_SYSTEM_EXCEPTIONS, _INTERRUPT_LINES), strict=True):
            start = self._code.symbols.get(table)
            words += [self._code.word(start + 4 * each) or 0 for each in range(count)] if start is not None else []
        handlers = {word & ~1: None for word in words[_RESET + 1 :] if word}
        return [words[_RESET] & ~1, *handlers]
