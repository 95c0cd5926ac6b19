# SPDX-License-Identifier: Apache-2.0
"""Memory between the backend under test and a processor, a GPU and an NPU: imported at both ends, or copied."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from ferrule._typing import override
from ferrule.backends.backend import Backend
from ferrule.backends.context import CustomAllocator
from ferrule.backends.shared.allocators import DmaBufAllocator, MallocAllocator
from ferrule.backends.tensor_handle import HandleCapability, MemoryRef, MemorySource, TensorHandleFactory
from ferrule.errors import FerruleError
from ferrule.graph import DataType, Graph, LayerType
from ferrule.network import Network
from ferrule.optimizer import EdgeStrategy, OptimizedNetwork, OptimizerOptions, optimize
from ferrule.testing.backends.comparison import graph_difference, random_inputs
from ferrule.testing.backends.family import Family
from ferrule.testing.backends.layer_cases import LAYER_TYPES, add_case, renamed
from ferrule.testing.backends.layers import answer, refusal_of_reference, shared_case
from ferrule.testing.backends.networks import check_network
from ferrule.testing.backends.partners import (
    PARTNERS,
    PartnerCpu,
    PartnerExporter,
    PartnerGpu,
    PartnerHandle,
    PartnerMapper,
    PartnerNpu,
)
from ferrule.testing.backends.random_networks import shared_network
from ferrule.testing.backends.subject import Subject, SubjectRuntime

ROADS = ("SP", "PS", "SPS", "PSP")
"""Who computes each layer of a chain: S is the backend under test, and P its partner."""
PAIRS: tuple[tuple[type[Backend], str], ...] = (
    (PartnerCpu, "malloc"),
    (PartnerCpu, "dma-buf"),
    (PartnerExporter, "malloc"),
    (PartnerGpu, "malloc"),
    (PartnerGpu, "dma-buf"),
    (PartnerNpu, "dma-buf"),
)
"""Partners, and the memory between them and the backend under test."""
_OBSTACLES = {HandleCapability.PADDING_REQUIRED, HandleCapability.FALLBACK_IMPORT_DISABLED}
_DTYPES = (DataType.INT8, DataType.FLOAT32, DataType.INT16)


class CountingAllocator(CustomAllocator):
    """Counts the blocks of another allocator, and can refuse to allocate one."""

    def __init__(self, inner: CustomAllocator) -> None:
        self._inner = inner
        self.source = inner.source
        self.name = inner.name
        self.held = 0
        self.total = 0
        self.fails_at: int | None = None
        """The number of the block that is not allocated, counted from the first of all."""

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        if self.total == self.fails_at:
            self.fails_at = None
            raise MemoryError("the test lets no memory be left")
        memory = self._inner.allocate(size_bytes, alignment_bytes)
        self.total += 1
        self.held += 1
        return memory

    @override
    def free(self, memory: MemoryRef) -> None:
        self._inner.free(memory)
        self.held -= 1


def shared_memory() -> tuple[int, int]:
    """Return how many descriptors of dma-bufs and files in memory this process has, and how many mappings of them.

    Both are 0 on a system without /proc. Garbage does not count: a mapping ends with its last array.
    """
    found = _shared_memory()
    if not any(found):
        return found
    gc.collect()
    return _shared_memory()


def _shared_memory() -> tuple[int, int]:
    open_files, maps = Path("/proc/self/fd"), Path("/proc/self/maps")
    names = []
    for each in open_files.iterdir() if open_files.is_dir() else ():
        with suppress(OSError):  # closed by now
            names.append(str(each.readlink()))
    mapped = maps.read_text(encoding="utf-8").splitlines() if maps.is_file() else []
    files, mappings = (sum("/memfd:ferrule" in line or "dmabuf" in line for line in each) for each in (names, mapped))
    return files, mappings


def held_by(allocators: Mapping[str, CountingAllocator]) -> tuple[list[int], tuple[int, int]]:
    """Return the number of blocks that each allocator holds, and `shared_memory`."""
    return [each.held for each in allocators.values()], shared_memory()


class FallbackFamily(Family):
    """Tests of the connections between the backend and others, whose handles import, are mapped, or both."""

    @pytest.fixture(scope="class")
    @classmethod
    def allocators(cls) -> dict[str, CountingAllocator]:
        """Return the allocators of the memory between backends; their names say which is a stand-in."""
        return {"malloc": CountingAllocator(MallocAllocator()), "dma-buf": CountingAllocator(DmaBufAllocator())}

    @pytest.fixture(scope="class")
    @classmethod
    @override
    def runtime(cls, subject: Subject, allocators: dict[str, CountingAllocator]) -> Iterator[SubjectRuntime]:
        """Yield one runtime with all partners for all tests of the class; at its end, all memory was freed."""
        before = shared_memory()
        with subject.runtime(partners=PARTNERS, fallback_allocators=tuple(allocators.values())) as made:
            yield made
        assert not any(allocator.held for allocator in allocators.values()), "memory between backends was not freed"
        assert shared_memory() == before, "shared memory, which the process held before, differs"

    @pytest.mark.parametrize(("partner", "memory"), PAIRS, ids=lambda part: getattr(part, "id", part))
    @pytest.mark.parametrize("road", ROADS)
    def test_roads(
        self,
        runtime: SubjectRuntime,
        allocators: dict[str, CountingAllocator],
        road: str,
        partner: type[Backend],
        memory: str,
    ) -> None:
        """Data passes in both directions, without a copy if both ends import, and by copies if the user wants them."""
        kinds = allocators[memory].source
        network = chain(some_link(runtime), road)
        options = divided(runtime, network, partner, kinds)
        if not reaches(runtime.backend(), kinds):
            with pytest.raises(FerruleError, match="neither"):
                optimize(network, [PartnerCpu.id], runtime.registry, options)
            return
        imported = check_network(runtime, network, [PartnerCpu.id], options)
        owners = "".join(
            "S" if imported.assignment[x.name].backend == runtime.subject.id else "P" for x in network.layers
        )
        assert owners == road, f"the layers run on {owners}, expected {road}"
        copies = [crossing for crossing in imported.crossings if crossing.strategy is EdgeStrategy.COPY]
        if imports_everything(runtime.backend(), partner(), kinds):
            assert not copies, f"copies where both ends import: {copies}"
        chosen = replace(options, fallback_transfers={runtime.subject.id: "copy"})
        copied = check_network(runtime, network, [PartnerCpu.id], chosen)
        count = sum(layer.type is LayerType.MEM_COPY for layer in copied.graph.layers)
        assert count == len(road) - 1, f"{count} copies at {len(road) - 1} crossings"

    def test_several_tensors_and_readers(self, runtime: SubjectRuntime) -> None:
        """Several tensors cross at one place, each to several backends, and are outputs of the network, too."""
        network, hints = fan(some_link(runtime), runtime.subject.id)
        for export in (False, True):
            options = runtime.subject.optimizer_options(
                hints=hints, simplify=False, import_enabled=True, export_enabled=export
            )
            check_network(runtime, network, [PartnerCpu.id], options)

    @pytest.mark.parametrize("seed", range(6))
    def test_random_networks_divided_at_random(self, runtime: SubjectRuntime, seed: int) -> None:
        """Networks whose layers are on random backends give the reference's results, imported, lent and copied.

        They are drawn from fixed seeds, since `ferrule[testing]` does not install hypothesis.
        """
        dice = random.Random(seed)  # noqa: S311 - no secret
        network = shared_network(2000 + seed, 7, dice.choice([DataType.INT8, DataType.INT16]))
        owners = [*[runtime.subject.id] * 2, *(partner.id for partner in PARTNERS)]
        options = runtime.subject.optimizer_options(
            hints={layer.name: str(dice.choice(owners)) for layer in network.layers},
            import_enabled=True,
            export_enabled=seed % 2 == 0,
            simplify=False,
            fallback_transfers={str(dice.choice(owners)): dice.choice(["copy", "import"])},
        )
        check_network(runtime, network, [PartnerCpu.id], options)

    def test_failures_leave_nothing_behind(
        self, runtime: SubjectRuntime, allocators: dict[str, CountingAllocator]
    ) -> None:
        """A load that finds no memory between backends holds none, and the next load works."""
        network, options, optimized = between_partners(runtime)
        for allocator in allocators.values():
            held, total, shared = allocator.held, allocator.total, shared_memory()
            runtime.unload_network(runtime.load_network(optimized))
            if allocator.total == total:
                continue  # the network needs no memory of this allocator
            allocator.fails_at = allocator.total
            with pytest.raises(FerruleError, match="the test lets no memory be left"):
                runtime.load_network(optimized)
            assert allocator.held == held, f"{allocator.held - held} blocks were not freed"
            assert shared_memory() == shared, "shared memory, which the process held before, differs"
        check_network(runtime, network, [PartnerCpu.id], options)

    def test_failed_imports_and_waits_leave_nothing_behind(
        self,
        runtime: SubjectRuntime,
        allocators: dict[str, CountingAllocator],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A partner that refuses to import, or whose work fails, ends the load or the run, and the next one works."""
        network, _, optimized = between_partners(runtime)
        before = held_by(allocators)
        imports = RefusingImports(monkeypatch)
        runtime.unload_network(runtime.load_network(optimized))
        count = imports.count
        assert count, "the partners import nothing"
        for number in range(count):
            imports.refuse(number)
            with pytest.raises(FerruleError, match="does not import"):
                runtime.load_network(optimized)
            after = held_by(allocators)
            assert after == before, f"after import {number} was refused: blocks and mappings {after}, expected {before}"
        loaded = runtime.load_network(optimized)
        inputs = random_inputs(network, 1)
        with monkeypatch.context() as patch:
            patch.setattr(PartnerGpu, "failure", ValueError("the test lets the work fail"))
            with pytest.raises(FerruleError, match="the test lets the work fail"):
                runtime.enqueue_workload(loaded, inputs)
        wrong = graph_difference(network, inputs, runtime.enqueue_workload(loaded, inputs))
        assert not wrong, f"after a run that failed: {wrong}"
        runtime.unload_network(loaded)
        after = held_by(allocators)
        assert after == before, f"after the unload: blocks and mappings {after}, expected {before}"


class RefusingImports:
    """Counts the imports of partners' handles, and lets one of them be refused."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._refused: int | None = None
        original = PartnerHandle.import_memory

        def import_memory(handle: PartnerHandle, memory: MemoryRef) -> bool:
            self.count += 1
            return self.count - 1 != self._refused and original(handle, memory)

        monkeypatch.setattr(PartnerHandle, "import_memory", import_memory)

    def refuse(self, number: int) -> None:
        """Refuse the import of a number, counted from the next one."""
        self.count, self._refused = 0, number


def between_partners(runtime: SubjectRuntime) -> tuple[Network, OptimizerOptions, OptimizedNetwork]:
    """Return a chain with the subject between a processor and an NPU, and a GPU at its end; also how it is divided."""
    network = chain(some_link(runtime), "PSPP")
    hints = {"P0": PartnerCpu.id, "S1": runtime.subject.id, "P2": PartnerNpu.id, "P3": PartnerGpu.id}
    options = runtime.subject.optimizer_options(hints=hints, simplify=False, import_enabled=True)
    return network, options, optimize(network, [PartnerCpu.id], runtime.registry, options)


def some_link(runtime: SubjectRuntime) -> Graph:
    """Return a supported layer whose output can be its input, from a `layer_case`; AssertionError if there is none."""
    for dtype, type_, seed in product(_DTYPES, LAYER_TYPES, range(6)):
        case, _ = shared_case(type_, dtype, seed)
        source, output = case.inputs[0], case.outputs[0]
        if len(case.outputs) > 1 or not output.shape or (source.shape, source.dtype) != (output.shape, output.dtype):
            continue
        link = Graph(case.name)  # with the quantisation of its first input at its output
        link.set_outputs(add_case(link, case, {output.name: replace(source, name=output.name)}))
        if not refusal_of_reference(link) and answer(runtime.backend(), link):
            return link
    raise AssertionError(f"{runtime.subject.id} supports no layer whose output has the shape and type of its input")


def add_link(network: Network, case: Graph, source: str, name: str) -> str:
    """Add the layer of a case, which reads `source`, under a name; return the tensor that it writes."""
    (written,) = add_case(network, case, renamed(case, name) | {case.inputs[0].name: network.info(source)}, name)
    return written


def chain(case: Graph, road: str) -> Network:
    """Return a chain of the case's layer, named S0, S1..., and MAXIMUMs of equal operands, named P0, P1..."""
    network = Network(f"chain_{road}")
    tensor = network.add_input(replace(case.inputs[0], name="x"))
    for index, letter in enumerate(road):
        name = f"{letter}{index}"
        tensor = (
            add_link(network, case, tensor, name)
            if letter == "S"
            else network.add_maximum_layer(tensor, tensor, name=name)
        )
    network.set_outputs([tensor])
    return network


def fan(case: Graph, subject: str) -> tuple[Network, dict[str, str]]:
    """Return a network in which two tensors cross from and to the subject, and the backends of its layers."""
    network = Network("fan")
    x = network.add_input(replace(case.inputs[0], name="x"))
    a, b = add_link(network, case, x, "a"), add_link(network, case, x, "b")
    partners = (PartnerCpu, PartnerGpu, PartnerNpu, PartnerMapper)
    written = [network.add_maximum_layer(a, b, name=f"on_{partner.id}") for partner in partners]
    ends = [add_link(network, case, tensor, f"back_{index}") for index, tensor in enumerate(written)]
    network.set_outputs([*ends, a, written[1], written[2], x])
    return network, dict.fromkeys((layer.name for layer in network.layers), subject) | {
        f"on_{partner.id}": str(partner.id) for partner in partners
    }


def divided(runtime: SubjectRuntime, network: Network, partner: type[Backend], kinds: MemorySource) -> OptimizerOptions:
    """Return the options that assign a chain's layers, with one kind of memory between the backends."""
    hints = {layer.name: runtime.subject.id if layer.name[0] == "S" else str(partner.id) for layer in network.layers}
    return runtime.subject.optimizer_options(
        hints=hints, simplify=False, import_enabled=True, export_enabled=True, allocators=(kinds,)
    )


def reaches(backend: Backend, kinds: MemorySource) -> bool:
    """Return whether a backend has handles that are mapped, or that import one of these kinds of memory."""
    return any(each.supports_map_unmap or each.import_flags & kinds for each in backend.tensor_handle_factories(None))


def imports_everything(subject: Backend, partner: Backend, kinds: MemorySource) -> bool:
    """Return whether two backends can exchange tensors in both directions without a copy, as their factories say."""
    return all(
        any(_passes(source, target, kinds) for source in _factories(one) for target in _factories(other))
        for one, other in ((subject, partner), (partner, subject))
    )


def _factories(backend: Backend) -> Sequence[TensorHandleFactory]:
    return [each for each in backend.tensor_handle_factories(None) if not _OBSTACLES & each.capabilities()]


def _passes(source: TensorHandleFactory, target: TensorHandleFactory, kinds: MemorySource) -> bool:
    required = HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED in source.capabilities()
    together = bool(source.import_flags & kinds) and bool(target.import_flags & kinds)
    exported = source.supports_map_unmap and bool(source.export_flags & target.import_flags)
    return exported or (together and (required or not source.supports_map_unmap or not target.supports_map_unmap))
