# SPDX-License-Identifier: Apache-2.0
"""Makes a guest count its time in cycles, by the model of its core and of the board's memories."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ferrule.backends.target import Memory
from ferrule.boards import Board
from ferrule.emulation.crash import EngineError
from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.guest import Guest
from ferrule.timing import CacheTiming, CoreTiming, DataWaits, MemoryTiming
from ferrule.timing.core_timing import PARAMETERS

_NAME_ENCODING = "ascii"


def _stated_names(hooks: ctypes.CDLL) -> Iterator[str]:
    """Return the names of a core's numbers in the order of the C hooks."""
    index = 0
    while (name := hooks.ferrule_core_timing_name(index)) is not None:
        yield name.decode(_NAME_ENCODING)
        index += 1


def core_numbers(hooks: ctypes.CDLL, core: CoreTiming) -> ctypes.Array[ctypes.c_uint32]:
    """Return a core's numbers as `struct ferrule_core_timing`.

    Raises:
        EngineError: the C hooks have other numbers.
    """
    if tuple(_stated_names(hooks)) != PARAMETERS:
        raise EngineError("the names of a core's cycles differ from those of the C hooks")
    return (ctypes.c_uint32 * len(PARAMETERS))(*(getattr(core, name) for name in PARAMETERS))


@dataclass
class Timing:
    """The model of a guest's time in cycles."""

    _guest: Guest
    _board: Board
    _core: CoreTiming
    _caches: int = 0
    _state: ctypes.Array[ctypes.c_char] = field(init=False)
    _shared: Sequence[tuple[Memory, MemoryTiming]] = field(init=False)
    """The memories for which the core waits while a device uses them."""

    def __post_init__(self) -> None:
        """Attach the model to the guest, which has executed nothing yet.

        Raises:
            EngineError: there are too many memories or caches, or the board has no memory of a timing's name.
        """
        hooks = self._guest.hooks
        self._state = (ctypes.c_char * hooks.ferrule_timing_bytes())()
        hooks.ferrule_timing_set_core(self._state, core_numbers(hooks, self._core))
        memories = {} if self._board.timing is None else self._board.timing.memories
        self._add_memories(memories)
        self._shared = [(self._board.memory(name), each) for name, each in memories.items() if each.dma_wait_states]
        hooks.ferrule_timing_start(self._state, ctypes.byref(self._guest.state))

    def repeat(self) -> None:
        """Let inferences repeat the waits for data of earlier ones, once two have agreed."""
        self._guest.hooks.ferrule_timing_repeat(self._state)

    def begin(self) -> None:
        """Note that the block that the core has entered is the first one of an inference."""
        self._guest.hooks.ferrule_timing_begin(self._state)

    def end(self) -> DataWaits:
        """Note that the block that the core has entered is the first one behind the inference; return what it is."""
        origin: int = self._guest.hooks.ferrule_timing_end(self._state, ctypes.byref(self._guest.state))
        return tuple(DataWaits)[origin]

    @property
    def watches(self) -> bool:
        """Whether accesses to memory have a hook, which makes them slow."""
        return bool(self._guest.hooks.ferrule_timing_watches(self._state))

    def contention(self, address: int, size_bytes: int) -> int:
        """Return the cycles for which a device's transfer of bytes at an address keeps an awake core from a memory."""
        for memory, timing in self._shared:
            for base in (memory.address, *memory.aliases):
                if base <= address < base + memory.size_bytes:
                    last = address + max(size_bytes, 1) - 1
                    accesses = last // timing.width_bytes - address // timing.width_bytes + 1
                    return accesses * timing.dma_wait_states
        return 0

    def _add_memories(self, timings: Mapping[str, MemoryTiming]) -> None:
        count = 0
        for name, timing in timings.items():
            memory = self._board.memory(name)
            if not timing.waits:
                continue
            code = self._add_cache(timing.instruction_cache)
            data = self._add_cache(timing.data_cache)
            for base in (memory.address, *memory.aliases):
                if count == layout.TIMED_MEMORIES:
                    raise EngineError(f"the unicorn engine times at most {count} memories, including aliases")
                count += 1
                found = layout.TimedMemory(
                    address=base,
                    bytes=memory.size_bytes,
                    wait_states=timing.wait_states,
                    write_wait_states=timing.write_wait_states,
                    width_bytes=timing.width_bytes,
                    prefetch=timing.prefetch,
                    code_cache=code,
                    data_cache=data,
                )
                self._guest.hooks.ferrule_timing_add_memory(self._state, ctypes.byref(found))

    def _add_cache(self, cache: CacheTiming | None) -> int:
        """Return the number of a new cache; that of none if there is none."""
        if cache is None:
            return layout.TIMED_CACHES
        if self._caches == layout.TIMED_CACHES:
            raise EngineError(f"the unicorn engine times at most {layout.TIMED_CACHES} caches")
        self._guest.hooks.ferrule_timing_set_cache(self._state, self._caches, cache.sets, cache.ways, cache.line_bytes)
        self._caches += 1
        return self._caches - 1
