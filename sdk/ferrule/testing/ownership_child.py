# SPDX-License-Identifier: Apache-2.0
"""The child process of `check_ownership`."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec
import numpy as np

from ferrule._typing import override
from ferrule.backends.context import CreationOptions
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.tensor_handle import Event, MemoryRef
from ferrule.errors import FerruleError
from ferrule.graph import Array, GraphEditor, LayerType, TensorInfo
from ferrule.optimizer.optimized import OptimizedNetwork
from ferrule.runtime import Runtime
from ferrule.runtime.fallback_memory import APPLICATION
from ferrule.runtime.loaded_network import LoadedNetwork, Parts
from ferrule.runtime.profiler import Profiler
from ferrule.runtime.step import Step
from ferrule.testing.ownership import OwnershipError, OwnershipReport, Reply
from ferrule.testing.page_watch import READ, WRITE, Pages, PageWatch

POISONS = (0xA5, 0x5A)
_IMPORTS = frozenset({LayerType.MEM_IMPORT, LayerType.FALLBACK_IMPORT})
Allowed = dict[int, int]
"""Protections by the index of a region; the other regions cannot be accessed."""


class Arena:
    """The pages of a loaded network's tensors, and of the application's arrays."""

    def __init__(self, parts: Parts, pages: Pages) -> None:
        """Let all handles that import memory of the process use pages of their own."""
        self.graph = graph = parts.graph
        self.pages = pages
        self.memory: dict[str, MemoryRef] = {}
        """The pages of each tensor that a handle has moved to, by the tensor that was not imported from another."""
        self.regions: dict[str, set[int]] = {}
        """The regions in which the handle of each tensor works."""
        self.roots = parts.tensors.roots()
        alignments = self._alignments(parts)
        self.inputs = [pages.of_tensor(info, alignments[info.name]) for info in graph.inputs]
        self.outputs = [pages.of_tensor(info, alignments.get(info.name, 1)) for info in graph.outputs]
        for tensor in graph.tensors:
            if not tensor.is_constant:
                self._move(tensor.info, parts, alignments[tensor.info.name])
        for layer in graph.layers:
            if layer.type is LayerType.MEM_IMPORT:
                self.regions[layer.outputs[0]] = self.regions[layer.present_inputs[0]]
        # the handles of lent tensors may use the application's memory
        held = {name for name, regions in self.regions.items() if regions or parts.tensors[name].lent}
        self.report = OwnershipReport(
            checked=tuple(name for name in self.regions if name in held),
            unchecked=tuple(name for name in self.regions if name not in held),
        )
        self._add_callers_memory()

    def _alignments(self, parts: Parts) -> dict[str, int]:
        """Return, by tensor, the alignment that suits all handles which may use its memory."""
        found: dict[str, int] = {}
        for name, root in self.roots.items():
            placed = parts.tensors[name]
            wanted = [placed.factory.memory_alignment(kind) for kind in self.pages.source & placed.factory.import_flags]
            if placed.fallback is not None:
                wanted.append(placed.fallback.alignment_bytes(self.pages.source))
            elements = placed.handle.info.dtype.size_bytes
            found[root] = max(found.get(root, 1), placed.alignment_bytes, elements, *wanted)
        return {name: found[root] for name, root in self.roots.items()}

    def _move(self, info: TensorInfo, parts: Parts, alignment_bytes: int) -> None:
        placed, root, user = parts.tensors[info.name], self.roots[info.name], parts.tensors.user(info.name)
        regions = self.regions[info.name] = set()
        if placed.fallback is not None:
            if root not in self.memory:
                self.memory[root] = self.pages.of_tensor(self.graph.info(root), alignment_bytes)
                placed.fallback.give(self.pages, self.memory[root])
            regions.add(self.pages.region(self.memory[root], user))
        elif placed.managed and placed.factory.import_flags & self.pages.source:
            memory = self.pages.of_tensor(info, alignment_bytes)
            if placed.handle.import_memory(self.pages.view(memory, user)):
                self.memory[info.name] = memory
                regions.add(self.pages.region(memory, user))

    def _add_callers_memory(self) -> None:
        """Add the application's arrays, which the handles of an input or output may use instead of their own."""
        ports = (*zip(self.graph.inputs, self.inputs, strict=True), *zip(self.graph.outputs, self.outputs, strict=True))
        for info, memory in ports:
            region = self.pages.region(memory, APPLICATION)
            for name, root in self.roots.items():
                if root == self.roots.get(info.name):
                    self.regions[name] = self.regions[name] | {region}

    def callers(self, memories: Iterable[MemoryRef], protection: int) -> Allowed:
        """Return the protection of arrays of the application."""
        return {self.pages.region(memory, APPLICATION): protection for memory in memories}

    def tensors(self, names: Iterable[str], protection: int) -> Allowed:
        """Return the protection of tensors."""
        return {region: protection for name in names for region in self.regions.get(name, ())}

    def poison(self, value: int) -> None:
        """Fill all tensors and output arrays with a value."""
        for memory in (*self.memory.values(), *self.outputs):
            _bytes_of(memory)[:] = value


class Guard:
    """Lets the steps of a network access the tensors of the layers that are at work, and nothing else."""

    def __init__(self, arena: Arena, output: int) -> None:
        self._arena = arena
        self._watch = PageWatch(arena.pages, output)
        self._open: list[tuple[Step, Event]] = []
        """Steps whose work may still be going on."""
        self._layers = {layer.name: layer for layer in arena.graph.layers}
        self.places: dict[str, str] = {}
        """The description of each layer in messages."""

    def begin(self) -> None:
        """Let the runtime write the inputs."""
        arena = self._arena
        given = arena.callers(arena.inputs, READ)
        inputs = arena.tensors((info.name for info in arena.graph.inputs), WRITE)
        self._watch.allow("the runtime, before the first layer,", inputs | given)

    def end(self) -> None:
        """Let the process access everything."""
        self._open.clear()
        self._watch.release()

    def step(self, step: Step, *, last: bool) -> Step:
        """Return a step that accesses only its own tensors."""
        if step.name in self._layers:
            self.places[step.name] = step.place

        def execute() -> Event | None:
            self._open = [each for each in self._open if not each[1].done()]
            self._allow([step, *(each for each, _ in self._open)])
            event = step.execute()
            if event is not None:
                self._open.append((step, event))
            self._look_beside()
            if last:
                self._collect()
            else:
                self._allow([each for each, _ in self._open])
            return event

        return replace(step, execute=execute)

    def _allow(
        self, steps: list[Step], otherwise: str = "code that runs between two layers", more: Iterable[Allowed] = ()
    ) -> None:
        note = " or ".join(step.place for step in steps) or otherwise
        self._watch.allow(note, _merged([*map(self._own, steps), *more]))

    def _look_beside(self) -> None:
        """Raise OwnershipError if a step has written the bytes beside a tensor."""
        damage = self._arena.pages.damage()
        if damage:
            self._watch.release()  # for what the runtime does after an error
            others = ", ".join(step.place for step, _ in self._open[:-1])
            raise OwnershipError(f"{damage}{f', perhaps by {others}' if others else ''}")

    def _collect(self) -> None:
        """Let the runtime read the outputs, and open work go on."""
        arena = self._arena
        outputs = arena.tensors((info.name for info in arena.graph.outputs), READ)
        more = (outputs, arena.callers(arena.outputs, WRITE))
        self._allow([step for step, _ in self._open], "the runtime, after the last layer,", more)

    def _own(self, step: Step) -> Allowed:
        layer = self._layers.get(step.name)
        if layer is None:
            return {}
        written = READ if layer.type in _IMPORTS else WRITE
        arena = self._arena
        return _merged([arena.tensors(layer.present_inputs, READ), arena.tensors(layer.outputs, written)])


class CheckingRuntime(Runtime):
    """A runtime for one network, whose tensors lie on guarded pages."""

    def __init__(self, options: CreationOptions, registry: BackendRegistry, pages: Pages, output: int) -> None:
        super().__init__(options, registry)
        self._pages = pages
        self._output = output
        self.arena: Arena
        self.guard: Guard

    @override
    def _made_ready(self, parts: Parts, profiler: Profiler) -> LoadedNetwork:
        self.arena = Arena(parts, self._pages)
        self.guard = Guard(self.arena, self._output)
        count = len(parts.steps)
        steps = tuple(self.guard.step(step, last=index == count - 1) for index, step in enumerate(parts.steps))
        return super()._made_ready(replace(parts, steps=steps, joined=steps), profiler)


def check(
    optimized: OptimizedNetwork,
    arrays: Mapping[str, Array],
    registry: Callable[[], BackendRegistry],
    options: CreationOptions,
    output: int,
) -> OwnershipReport:
    """Run a network with two kinds of poison; OwnershipError if a layer's result depends on it."""
    pages = Pages()
    runtime = CheckingRuntime(options, registry(), pages, output)
    number = runtime.load_network(_with_constants(optimized, pages))
    arena, guard = runtime.arena, runtime.guard
    inputs, outputs = _applications(arena, arena.inputs), _applications(arena, arena.outputs)
    for info, array in zip(arena.graph.inputs, inputs, strict=True):
        np.copyto(array, arrays[info.name])
    results: list[dict[str, Array]] = []
    for poison in POISONS:
        arena.poison(poison)
        guard.begin()
        runtime.enqueue_workload(number, inputs, outputs)
        guard.end()
        results.append(dict(_results(arena)))
    _compare(arena, guard.places, *results)
    return arena.report


def _applications(arena: Arena, memories: Iterable[MemoryRef]) -> list[Array]:
    """Return the arrays by which the application accesses its memory."""
    views = (arena.pages.view(memory, APPLICATION).array for memory in memories)
    return [array for array in views if array is not None]


def _with_constants(optimized: OptimizedNetwork, pages: Pages) -> OptimizedNetwork:
    """Return a network with its constants on pages that can only be read."""
    editor = GraphEditor(optimized.graph)
    for tensor in optimized.graph.tensors:
        if tensor.is_constant:
            editor.set_tensor(pages.of_constant(tensor))
    return replace(optimized, graph=editor.finish())


def _results(arena: Arena) -> Iterator[tuple[str, Array]]:
    """Yield the bytes of all tensors that layers wrote, in order; those of outputs are in the application's arrays."""
    outputs = zip(arena.graph.outputs, arena.outputs, strict=True)
    roots = {arena.roots[info.name]: memory for info, memory in outputs if info.name in arena.roots}
    for layer in arena.graph.layers:
        for name in layer.outputs:
            memory = roots.get(name, arena.memory.get(name))
            if memory is not None and layer.type not in _IMPORTS:
                yield name, _bytes_of(memory).copy()


def _compare(arena: Arena, places: Mapping[str, str], first: Mapping[str, Array], second: Mapping[str, Array]) -> None:
    for name, values in first.items():
        different = np.flatnonzero(values != second[name])
        if not different.size:
            continue
        index = int(different[0])
        producer = arena.graph.producer(name)
        assert producer is not None
        place = places[producer.name]
        if (int(values[index]), int(second[name][index])) == POISONS:
            raise OwnershipError(f"{place} did not write byte {index} of tensor '{name}'")
        raise OwnershipError(
            f"{place} read bytes that were never written: byte {index} of its tensor '{name}' is "
            f"{values[index]:#04x} and {second[name][index]:#04x} in two runs with the same inputs",
            hint="a backend whose results differ from run to run for other reasons cannot be checked in this way",
        )


def _merged(parts: Iterable[Allowed]) -> Allowed:
    """Return the protections of all parts, and where they differ, the one that allows more."""
    merged: Allowed = {}
    for part in parts:
        for region, protection in part.items():
            merged[region] = merged.get(region, 0) | protection
    return merged


def _bytes_of(memory: MemoryRef) -> Array:
    """Return the bytes of a block in the mapping that is never protected."""
    assert memory.array is not None
    return memory.array.reshape(-1).view(np.uint8)


def main(output: int) -> None:
    """Answer the request on standard input, and end the process without the backends' own ends."""
    try:
        optimized, arrays, registry, options = pickle.load(sys.stdin.buffer)  # noqa: S301 from the parent
        reply = Reply(report=check(optimized, arrays, registry, options, output))
    except Exception as error:  # noqa: BLE001 it is raised in the parent
        hint = error.hint if isinstance(error, FerruleError) else None
        reply = Reply(kind=type(error).__name__, message=str(error), hint=hint)
    os.write(output, msgspec.json.encode(reply))
    sys.stdout.flush()
    os._exit(0)
