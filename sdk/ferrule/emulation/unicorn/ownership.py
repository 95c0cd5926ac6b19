# SPDX-License-Identifier: Apache-2.0
"""Checks the ownership of the workspace: the C hooks judge each access of the core and each transfer of a device."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ferrule._typing import override
from ferrule.boards import Board, Memory, MemoryKind
from ferrule.devices import Bytes, DeviceFaultError, Range
from ferrule.devices.memory import Judge
from ferrule.devices.model import Bus, PassingBus
from ferrule.emulation.crash import EngineError
from ferrule.emulation.ownership import (
    OwnershipCounts,
    OwnershipError,
    OwnershipPlan,
    Violated,
    Violation,
    ownership_error,
)
from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.attachment import TimedModel
from ferrule.emulation.unicorn.guest import Guest

_T = TypeVar("_T")
OUTSIDE, FIRST_BUFFER = 1, 3
"""Holders of a byte, as in enum ferrule_holder."""
READS, WRITES, REPLACES = 1, 2, 4
KEPT = 2
NO_DEVICE = -1
MOST_BUFFERS = 0xFFFF - FIRST_BUFFER
"""The C hooks note the holder of a byte in 16 bits."""
MOST_DEVICES = 32
"""They keep the devices at work as the bits of one word."""
PADDING = 8
"""Marks after the last byte, since the hooks read those of four bytes at once."""


class Ownership:
    """The check of one guest's workspace."""

    def __init__(
        self, guest: Guest, board: Board, plan: OwnershipPlan, devices: Sequence[tuple[str, Sequence[Range]]]
    ) -> None:
        """Map the workspace, and the memory that devices may access if the core may cache it, to the checking hooks.

        Raises:
            EngineError: the plan is not one of this board, or too large.
        """
        if len(plan.buffers) > MOST_BUFFERS or len(devices) > MOST_DEVICES:
            raise EngineError(
                f"ownership cannot be checked for {len(plan.buffers)} buffers and {len(devices)} devices",
                hint=f"at most {MOST_BUFFERS} and {MOST_DEVICES}",
            )
        guest.allow_code()  # since parts of memories become peripherals, which then cannot change
        self._guest = guest
        self._plan = plan
        self._names = [name for name, _ in devices]
        self._kept: list[object] = []
        self.state = layout.OwnershipState(
            buffer_count=FIRST_BUFFER + len(plan.buffers),
            step_count=len(plan.steps),
            run=plan.run,
            until=plan.until,
            info_argument=plan.info_argument,
            next=plan.next,
            ran=plan.ran,
            finish=plan.finish,
            exact=plan.exact,
        )
        self._fill()
        watched = self._watched(board, [each for _, ranges in devices for each in ranges])
        for start, end in _pages(watched, _borders(board), guest.model.unicorn.page_bytes):
            self._watch(start, end, memory_at(board, start))
        guest.hooks.ferrule_ownership_start(ctypes.byref(self.state), ctypes.byref(guest.state))

    # ---- the tables

    def _fill(self) -> None:
        plan = self._plan
        buffers = [
            layout.OwnedBufferState(
                address=each.address,
                bytes=each.size_bytes,
                last=each.last,
                input=KEPT if each.is_kept else each.is_input,
                becomes=0 if each.becomes is None else FIRST_BUFFER + each.becomes,
            )
            for each in plan.buffers
        ]
        uses: list[layout.OwnedUseState] = []
        first = [0]
        for step in plan.steps:
            roles: dict[int, int] = {}
            for numbers, role in ((step.reads, READS), (step.writes, WRITES), (step.replaces, REPLACES)):
                for number in numbers:
                    roles[number] = roles.get(number, 0) | role
            uses += (layout.OwnedUseState(buffer=FIRST_BUFFER + number, roles=bits) for number, bits in roles.items())
            first.append(len(uses))
        numbers_of = {name: number for number, name in enumerate(self._names)}
        devices = [NO_DEVICE if step.device is None else numbers_of.get(step.device, NO_DEVICE) for step in plan.steps]
        no_roles = [0] * self.state.buffer_count
        self._keep("buffers", layout.OwnedBufferState, buffers)
        self._keep("uses", layout.OwnedUseState, uses)
        self._keep("first_use", layout.U32, first)
        self._keep("device", layout.I32, devices)
        self._keep("begun", layout.U8, [step.begun for step in plan.steps])
        self._keep("flying", layout.U32, [0] * len(plan.steps))
        self._keep("flying_roles", layout.U8, no_roles)
        self._keep("roles", layout.U8, no_roles)

    def _keep(self, field: str, kind: Any, rows: Sequence[Any]) -> None:  # noqa: ANN401 a type of ctypes
        table = (kind * max(len(rows), 1))(*rows)
        self._kept.append(table)
        setattr(self.state, field, ctypes.addressof(table))

    def _watched(self, board: Board, ranges: Iterable[Range]) -> list[tuple[int, int]]:
        """Return the ranges to watch: the workspace, and what devices share with the core behind its data cache."""
        borders = _borders(board)
        found = [part for each in self._plan.workspace for part in _parts(each, borders)]
        for start, end in (part for each in ranges for part in _parts(each, borders)):
            memory = memory_at(board, start)
            if memory is not None and memory.cacheable and memory.kind is not MemoryKind.FLASH:
                found.append((start, end))
        return found

    def _watch(self, start: int, end: int, memory: Memory | None) -> None:
        state = self.state
        if memory is None or memory.kind is MemoryKind.FLASH or state.region_count == layout.OWNED_REGIONS:
            raise EngineError(f"ownership cannot be checked for the memory at {start:#010x}")
        size = end - start
        holder = np.full(size + PADDING, OUTSIDE, np.uint16)
        for each in self._plan.workspace:
            low, high = each.address - start, each.address + each.size_bytes - start
            holder[max(low, 0) : max(min(high, size), 0)] = 0
        target = np.where(holder == OUTSIDE, OUTSIDE, 0).astype(np.uint16)
        cached = np.zeros(size + PADDING, np.uint8) if memory.cacheable else None
        self._kept += [holder, target, cached]
        region = state.regions[state.region_count]
        state.region_count += 1
        region.address, region.bytes = start, size
        region.holder, region.target = holder.ctypes.data, target.ctypes.data
        region.cached = 0 if cached is None else cached.ctypes.data
        region.line_bytes = memory.line_bytes
        region.ownership = ctypes.addressof(state)
        region.data = self._guest.map_watched(
            start, size, "ferrule_ownership_read", "ferrule_ownership_write", region, protected=self._plan.exact
        )

    # ---- the devices

    def bus(self, bus: Bus, device: str, cause: Callable[[], str], then: Judge | None) -> Bus:
        """Return a bus that checks a device's transfers; `cause` describes the register access behind them.

        `then` judges those that this check allows.
        """
        number = self._names.index(device)

        def judge(address: int, size_bytes: int, *, write: bool) -> DeviceFaultError | None:
            state = ctypes.byref(self.state)
            if self._guest.hooks.ferrule_ownership_transfer(state, number, address, size_bytes, write):
                raise self.error(cause())
            return None if then is None else then(address, size_bytes, write=write)

        return _CheckedBus(bus, judge)

    def model(self, model: TimedModel, device: str) -> TimedModel:
        """Return a device's model, which notes whether the device is at work."""
        return _WatchedModel(model, self.state, 1 << self._names.index(device))

    # ---- the result

    def error(self, cause: str = "") -> OwnershipError:
        """Return the error for the first access that broke the rules."""
        found = self.state.violated
        violated = Violated(
            violation=Violation(found.violation),
            device=None if found.actor < 0 else self._names[found.actor],
            write=bool(found.write),
            address=found.address,
            size_bytes=found.bytes,
            step=found.step,
            holder=_buffer(found.holder),
            target=_buffer(found.target),
            busy=tuple(name for number, name in enumerate(self._names) if found.busy >> number & 1),
            pc=found.program_counter,
            exact=bool(found.exact) or found.actor >= 0,
            cause=cause,
        )
        return ownership_error(self._plan, violated)

    def constant_error(
        self, constant: str, address: int, size_bytes: int, *, device: str | None = None, pc: int = 0, cause: str = ""
    ) -> OwnershipError:
        """Return the error for a write to a constant."""
        violated = Violated(
            violation=Violation.WRITES_CONSTANT,
            device=device,
            write=True,
            address=address,
            size_bytes=size_bytes,
            step=self.state.step,
            pc=pc,
            exact=True,
            cause=cause,
            constant=constant,
        )
        return ownership_error(self._plan, violated)

    @property
    def counts(self) -> OwnershipCounts:
        """What the check has covered."""
        state = self.state
        return OwnershipCounts(
            inferences=state.inferences,
            accesses=state.accesses,
            transfers=state.transfers,
            cacheable=any(region.cached for region in state.regions[: state.region_count]),
            cache=bool(self._guest.hooks.ferrule_ownership_models_cache(ctypes.byref(state))),
        )


@dataclass
class _CheckedBus(PassingBus):
    """The guest's memory as a bus on which each transfer is checked."""

    _judge: Judge

    @override
    def pass_on(self, transfer: Callable[[int, int], _T], address: int, size_bytes: int, *, write: bool) -> _T:
        self._bus.view(address, size_bytes, writable=write)  # raises BusError if the memory refuses the transfer
        error = self._judge(address, size_bytes, write=write)
        if error is not None:
            raise error
        return transfer(address, size_bytes)

    @override
    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        view = super().view(address, size_bytes, writable=writable)
        if not writable:
            view = view.view()
            view.flags.writeable = False
        return view


class _WatchedModel:
    """A model that is at work while it announces an event."""

    def __init__(self, model: TimedModel, state: layout.OwnershipState, bit: int) -> None:
        self._model = model
        self._state = state
        self._bit = bit
        self.read, self.write, self.advance = model.read, model.write, model.advance

    def next_event(self) -> int | None:
        """Return the model's next event, and note whether there is one."""
        event = self._model.next_event()
        if event is None:
            self._state.busy &= ~self._bit
        else:
            self._state.busy |= self._bit
        return event


def _buffer(holder: int) -> int | None:
    return holder - FIRST_BUFFER if holder >= FIRST_BUFFER else None


def memory_at(board: Board, address: int) -> Memory | None:
    """Return the memory that has an address; None if there is none."""
    return next((memory for memory in board.memories if address in memory), None)


def _borders(board: Board) -> set[int]:
    """Return the addresses at which a memory begins or ends."""
    return {border for each in board.memories for border in (each.address, each.end)}


def _parts(whole: Range, borders: set[int]) -> Iterator[tuple[int, int]]:
    """Return a range's part in each memory."""
    end = whole.address + whole.size_bytes
    return pairwise((whole.address, *sorted(each for each in borders if whole.address < each < end), end))


def _pages(ranges: Iterable[tuple[int, int]], borders: set[int], page: int) -> list[tuple[int, int]]:
    """Return the whole pages that contain the ranges; adjacent ones of the same memory are joined."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((low // page * page, -(-high // page) * page) for low, high in ranges):
        if found and start <= found[-1][1] and (start < found[-1][1] or start not in borders):
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
