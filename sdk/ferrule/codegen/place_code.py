# SPDX-License-Identifier: Apache-2.0
"""Generates the places of tensors: in the caller's memory, in the workspace and in the memories of devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from ferrule.backends.firmware import SCALARS, scratch_offset
from ferrule.codegen.cache_code import written_by_devices
from ferrule.codegen.executor_part import member
from ferrule.codegen.lowered import LoweredLayer, scratches
from ferrule.codegen.state_code import StateCode
from ferrule.codegen.storage import StoragePlan
from ferrule.dom import (
    AddressOf,
    Cast,
    Const,
    Declare,
    Enumeration,
    Enumerator,
    Expression,
    Identifier,
    Index,
    Pointer,
    Scalar,
    Type,
)
from ferrule.graph import TensorInfo
from ferrule.graph.names import UniqueNames

Members = Sequence[tuple[str, TensorInfo]]


class PlaceCode(StateCode):
    """The part of the builder for the places of tensors."""

    def __init__(self, storage: StoragePlan) -> None:
        super().__init__(storage)
        self.members = {"input": self._members(self.graph.inputs), "output": self._members(self.graph.outputs)}
        """The members of the structs of inputs and outputs: names and tensors."""
        self.ends = tuple((kind, name, info) for kind, members in self.members.items() for name, info in members)
        """All inputs and outputs: "input" or "output", the member and the tensor."""
        self._from_devices = written_by_devices(storage)

    def _members(self, infos: Sequence[TensorInfo]) -> Members:
        names = UniqueNames()
        return tuple((names.take(self.lowered.variables.get(info.name, "constant")), info) for info in infos)

    def own_line(self, kind: str, tensor: str) -> int:
        """Return the bytes per line of the core's data cache of a tensor whose lines may hold nothing else, else 1.

        They belong to an output that a device writes, unless the core copies it to the caller's memory.
        """
        own = kind == "output" and not self.storage.is_tied(tensor) and self.storage.root(tensor) in self._from_devices
        return max(self.storage.region(tensor).line_bytes, 1) if own else 1

    def alignment(self, kind: str, info: TensorInfo) -> int:
        """Return the alignment, in bytes, that the caller's memory for an input or output needs."""
        if self.storage.is_tied(info.name):
            return info.dtype.size_bytes
        line = self.own_line(kind, info.name)
        return max(info.dtype.size_bytes, self.storage.device_alignment(info.name), line)

    def constant_output(self, tensor: str) -> str:
        """Return the name of the array for a constant result of the graph."""
        results = dict.fromkeys(info.name for info in self.graph.results)
        names = [name for name in results if self.graph.tensor(name).is_constant]
        return f"{self.prefix}_constant_{names.index(tensor)}"

    def is_placed(self, tensor: str) -> bool:
        """Whether a tensor of the caller has its place in the workspace, wherever the caller has it."""
        return self.storage.is_tied(tensor) and not self.storage.is_state(tensor)

    def offsets(self) -> Iterator[Enumeration]:
        """Yield the offsets of tensors and scratch in the workspace and in the memories of devices."""
        core = [name for name in self._core_tensors() if not self.storage.is_state(name)]
        yield Enumeration(
            tuple(self._offset_rows(core, (item for item in self.lowered.layers if not item.is_apart)))
            or (Enumerator("NOTHING_IN_THE_WORKSPACE", 0),),
            doc="Offsets of tensors and scratch in the workspace, in bytes.",
        )
        yield from self.state_offsets(name for name in self._core_tensors() if self.storage.is_state(name))
        for use in self.lowered.devices:
            tensors = [name for name, home in self.lowered.memories.items() if home is use]
            layers = (item for item in self.lowered.layers if item.use is use and item.is_apart)
            rows = tuple(self._offset_rows(tensors, layers))
            if rows:
                yield Enumeration(
                    rows,
                    doc=f"Offsets of tensors and scratch in the memory of device {use.device.name}, in bytes.",
                )

    def declare_arenas(self) -> Iterator[Declare]:
        """Yield the declarations of the blocks of the caller's memory that hold a tensor or scratch."""
        for region in self.storage.blocks:
            if region.name in self._blocks_in_use():
                yield Declare(region.name, Const(Pointer(Scalar.UINT8)), member("memory", region.name))

    def declare(self, tensor: str) -> Declare:
        """Return the declaration of a tensor's pointer variable."""
        info = self.graph.info(tensor)
        given = self._given.get(self.storage.root(tensor))
        is_input = given is not None and given[0] == "input"
        type_: Type = Pointer(Const(SCALARS[info.dtype]) if is_input else SCALARS[info.dtype])
        return Declare(self.lowered.variables[tensor], Const(type_), self._home(tensor, type_))

    def _home(self, tensor: str, type_: Type) -> Expression:
        """Return the expression for the address of a tensor's bytes."""
        given = self._given.get(self.storage.root(tensor))
        if given is not None:
            kind, name, info = given
            own = member(f"{kind}s", name)
            return own if info.dtype == self.graph.info(tensor).dtype else Cast(type_, own)
        arena = Identifier(self.storage.region(tensor).name)
        return Cast(type_, AddressOf(Index(arena, Identifier(self.offset_name(tensor)))))

    @cached_property
    def _given(self) -> dict[str, tuple[str, str, TensorInfo]]:
        """By root: the kind, the member and the tensor through which the caller supplies storage, inputs first.

        An output that is a state's old value is copied from there.
        """
        found: dict[str, tuple[str, str, TensorInfo]] = {}
        for kind, name, info in self.ends:
            if info.name not in self.olds and not self.storage.is_tied(info.name):
                found.setdefault(self.storage.root(info.name), (kind, name, info))
        return found

    def _core_tensors(self) -> Iterator[str]:
        """Yield the tensors that are stored in the workspace, or with the state."""
        for tensor in self.lowered.variables:
            if tensor not in self.lowered.memories and self.storage.root(tensor) not in self._given:
                yield tensor

    def _blocks_in_use(self) -> frozenset[str]:
        """Return the names of the caller's blocks of memory that hold a tensor or scratch."""
        scratch = (name for item in self.lowered.layers if not item.is_apart for name in scratches(item))
        return frozenset(self.storage.region(name).name for name in (*self._core_tensors(), *scratch))

    def _offset_rows(self, tensors: Iterable[str], layers: Iterable[LoweredLayer]) -> Iterator[Enumerator]:
        for name in tensors:
            yield Enumerator(self.offset_name(name), self.storage.offset(name))
        for item in layers:
            for name, each in scratches(item).items():
                yield Enumerator(scratch_offset(item.symbol, each.name), self.storage.offset(name))
