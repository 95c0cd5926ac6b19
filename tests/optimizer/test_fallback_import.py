# SPDX-License-Identifier: Apache-2.0
"""Fallback imports: when two backends import memory of the runtime, and the layers inserted for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from optimizer_mocks import FlagFactory, backend, floats, registry

from ferrule.backends import Backend
from ferrule.backends.tensor_handle import HandleCapability, MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import Layer, LayerType
from ferrule.network import Network
from ferrule.operators.transfer import FallbackImportDescriptor
from ferrule.optimizer import EdgeStrategy, OptimizedNetwork, OptimizerOptions, optimize

MALLOC, DMA_BUF = MemorySource.MALLOC, MemorySource.DMA_BUF
PROTECTED = MemorySource.DMA_BUF_PROTECTED
REQUIRED = HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED
IMPORTING = OptimizerOptions(simplify=False, import_enabled=True)
INSERTED = {LayerType.MEM_COPY, LayerType.MEM_IMPORT, LayerType.FALLBACK_IMPORT}


def requiring(
    name: str = "S", imports: MemorySource = MALLOC, *, maps: bool = False, alignment: int = 1
) -> FlagFactory:
    return FlagFactory(name, imports=imports, maps=maps, capabilities=[REQUIRED], alignment=alignment)


def divided(
    network: Network, backends: Mapping[str, type[Backend]], options: OptimizerOptions = IMPORTING
) -> OptimizedNetwork:
    kinds = {kind.id: kind for kind in backends.values()}
    hints = {name: str(kind.id) for name, kind in backends.items()}
    return optimize(network, list(kinds), registry(*kinds.values()), replace(options, hints=hints))


def line(*names: str) -> Network:
    network = Network("line")
    tensor = network.add_input(floats("in"))
    for name in names:
        tensor = network.add_relu_layer(tensor, name=name)
    network.set_outputs([tensor])
    return network


def pair(
    source: Sequence[FlagFactory], target: Sequence[FlagFactory], options: OptimizerOptions = IMPORTING
) -> OptimizedNetwork:
    """Return a chain of one layer on Source and one on Target, between layers on a backend that maps and imports."""
    ends = backend("Ends", factories=[FlagFactory("E", imports=MALLOC | DMA_BUF)])
    backends = {
        "first": ends,
        "a": backend("Source", factories=source),
        "b": backend("Target", factories=target),
        "last": ends,
    }
    return divided(line("first", "a", "b", "last"), backends, options)


def between(result: OptimizedNetwork, writer: str = "a", reader: str = "b") -> list[LayerType]:
    """Return the types of the inserted layers from a writer to a reader, in order."""
    found: list[LayerType] = []
    producer = result.graph.producer(result.graph.layer(reader).present_inputs[0])
    while producer is not None and producer.type in INSERTED:
        found.insert(0, producer.type)
        producer = result.graph.producer(producer.present_inputs[0])
    assert producer is not None
    assert producer.name == writer
    return found


IMPORT, COPY, EXPORT = [LayerType.FALLBACK_IMPORT], [LayerType.MEM_COPY], [LayerType.MEM_IMPORT]
TO_MEMORY = [LayerType.MEM_COPY, LayerType.FALLBACK_IMPORT]
FROM_MEMORY = [LayerType.FALLBACK_IMPORT, LayerType.MEM_COPY]

TABLE = {
    "map without import, to both": ([FlagFactory("S")], [FlagFactory("T", imports=MALLOC)], COPY),
    "import without map, to both": ([requiring()], [FlagFactory("T", imports=MALLOC)], IMPORT),
    "import without map, to import without map": ([requiring()], [requiring("T")], IMPORT),
    "import without map, to map without import": ([requiring()], [FlagFactory("T")], FROM_MEMORY),
    "map without import, to import without map": ([FlagFactory("S")], [requiring("T")], TO_MEMORY),
    "both, to import without map": ([FlagFactory("S", imports=MALLOC)], [requiring("T")], IMPORT),
    "both, to map without import": ([requiring(maps=True)], [FlagFactory("T")], COPY),
    "both, to both": ([requiring(maps=True)], [FlagFactory("T", imports=MALLOC)], IMPORT),
    "none requires it, none exports": ([FlagFactory("S", imports=MALLOC)], [FlagFactory("T", imports=MALLOC)], COPY),
    "the source exports": (
        [FlagFactory("S", imports=MALLOC, exports=MALLOC)],
        [FlagFactory("T", imports=MALLOC)],
        EXPORT,
    ),
    "two factories, to both": ([FlagFactory("S1"), requiring("S2")], [FlagFactory("T", imports=MALLOC)], IMPORT),
    "two factories, to map without import": ([FlagFactory("S1"), requiring("S2")], [FlagFactory("T")], COPY),
}


@pytest.mark.parametrize("row", TABLE)
def test_rows_of_the_support_table(row: str) -> None:
    source, target, expected = TABLE[row]
    assert between(pair(source, target)) == expected


@pytest.mark.parametrize(
    "row",
    [
        row
        for row, (source, target, _) in TABLE.items()
        if source[0].supports_map_unmap and target[0].supports_map_unmap
    ],
)
def test_without_import_everything_is_copied(row: str) -> None:
    source, target, _ = TABLE[row]
    assert between(pair(source, target, OptimizerOptions(simplify=False))) == COPY


def test_the_layer_describes_both_ends() -> None:
    source, target = requiring(imports=MALLOC, alignment=64), FlagFactory("T", imports=MALLOC, alignment=4096)
    result = pair([source], [target])
    name = "[ a (0) -> b (0) ]"
    assert result.graph.layer(name).descriptor == FallbackImportDescriptor(
        source_backend="Source", source_factory="S", target_factory="T", memory=MALLOC.value, alignment_bytes=4096
    )
    assert result.assignment[name].backend == "Target"
    assert (result.factories["a"], result.factories[name]) == ("S", "T")


def test_crossings_have_strategy_reason_bytes_and_alignment() -> None:
    source, target = requiring(), FlagFactory("T", imports=MALLOC, alignment=128)
    first, second, third = pair([source], [target]).crossings
    assert (first.tensor, first.strategy) == ("first", EdgeStrategy.FALLBACK_IMPORT)
    assert (second.layer, second.size_bytes, second.alignment_bytes) == ("[ a (0) -> b (0) ]", 16, 128)
    assert second.reason == "'S' requires fallback memory: both ends import MALLOC"
    assert (third.strategy, third.reason) == (EdgeStrategy.COPY, "'T' exports nothing, 'E' imports MALLOC and DMA_BUF")


@pytest.mark.parametrize(
    ("source", "target", "memory"),
    [
        (MALLOC, MALLOC, MALLOC),
        (MALLOC | DMA_BUF, MALLOC | DMA_BUF, MALLOC),
        (DMA_BUF, MALLOC | DMA_BUF, DMA_BUF),
        (DMA_BUF, MALLOC, MALLOC | DMA_BUF),
    ],
    ids=str,
)
def test_a_mapped_dma_buf_is_both_kinds_of_memory(
    source: MemorySource, target: MemorySource, memory: MemorySource
) -> None:
    options = replace(IMPORTING, allocators=(MALLOC, MALLOC | DMA_BUF))
    result = pair([requiring(imports=source)], [FlagFactory("T", imports=target)], options)
    assert result.crossings[1].memory == memory
    own = "both ends import" if len(memory) == 1 else "it imports DMA_BUF, and 'T' imports the same as MALLOC"
    assert own in result.crossings[1].reason


@pytest.mark.parametrize(("allocators", "expected"), [((MALLOC,), COPY), ((DMA_BUF,), IMPORT), ((), COPY)])
def test_an_allocator_must_have_memory_for_both(
    allocators: tuple[MemorySource, ...], expected: list[LayerType]
) -> None:
    source = requiring(imports=DMA_BUF, maps=True)
    result = pair([source], [FlagFactory("T", imports=DMA_BUF)], replace(IMPORTING, allocators=allocators))
    assert between(result) == expected


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("obstacle", [HandleCapability.PADDING_REQUIRED, HandleCapability.FALLBACK_IMPORT_DISABLED])
def test_padding_and_disabled_imports_keep_copying(side: str, obstacle: HandleCapability) -> None:
    extra = {side: [obstacle]}
    source = FlagFactory("S", imports=MALLOC, capabilities=[REQUIRED, *extra.get("source", [])])
    result = pair([source], [FlagFactory("T", imports=MALLOC, capabilities=extra.get("target", []))])
    assert between(result) == COPY
    assert f"'{side[0].upper()}' " in result.crossings[1].reason


@pytest.mark.parametrize("backend_id", ["Source", "Target"])
def test_a_backend_may_be_told_to_copy(backend_id: str) -> None:
    options = replace(IMPORTING, fallback_transfers={backend_id: "copy"})
    result = pair([requiring(maps=True)], [FlagFactory("T", imports=MALLOC)], options)
    assert between(result) == COPY
    assert result.crossings[1].reason == f"the fallback of {backend_id} is 'copy'"
    exported = pair([FlagFactory("S", exports=MALLOC)], [FlagFactory("T", imports=MALLOC)], options)
    assert between(exported) == COPY


def test_ends_that_cannot_be_mapped_are_copied_between_two_memories_if_the_user_wants_a_copy() -> None:
    options = replace(IMPORTING, fallback_transfers={"Target": "copy"})
    result = pair([requiring()], [requiring("T")], options)
    assert between(result) == [LayerType.FALLBACK_IMPORT, LayerType.MEM_COPY, LayerType.FALLBACK_IMPORT]
    reason = result.crossings[1].reason
    assert "'S' cannot be mapped, so the copy is from fallback memory" in reason
    assert "'T' cannot be mapped, so the copy is to fallback memory" in reason


def test_what_cannot_be_mapped_is_copied_from_fallback_memory_if_the_user_wants_a_copy() -> None:
    options = replace(IMPORTING, fallback_transfers={"Target": "copy"})
    result = pair([requiring()], [FlagFactory("T", imports=MALLOC)], options)
    assert between(result) == FROM_MEMORY
    assert result.factories["[ a (0) -> b (0) ]"] is None
    assert "cannot be mapped, so the copy is from fallback memory" in result.crossings[1].reason


@pytest.mark.parametrize(
    ("transfers", "message"),
    [({"Nobody": "copy"}, "Nobody"), ({"Source": "move"}, "the fallback of backend Source is 'move', expected import")],
)
def test_a_wrong_transfer_is_an_error(transfers: dict[str, str], message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        pair([requiring()], [FlagFactory("T")], replace(IMPORTING, fallback_transfers=transfers))


def fan(*readers: str) -> Network:
    network = Network("fan")
    a = network.add_relu_layer(network.add_input(floats("in")), name="a")
    network.set_outputs([network.add_relu_layer(a, name=name) for name in readers])
    return network


def test_readers_of_one_backend_share_the_import_and_copies_share_the_view() -> None:
    source = backend("Source", factories=[FlagFactory("In"), requiring()], preferences=["S", "In"])
    importer = backend("Importer", factories=[FlagFactory("I", imports=MALLOC)])
    copiers = [backend(name, factories=[FlagFactory(name)]) for name in ("CopierA", "CopierB")]
    plain = backend("Plain")
    owners = {"a": source, "b": importer, "c": importer, "d": copiers[0], "e": copiers[1], "f": plain}
    result = divided(fan("b", "c", "d", "e", "f"), owners)
    assert result.factories["a"] == "S"
    assert result.graph.layer("b").inputs == result.graph.layer("c").inputs
    kinds = [layer.type for layer in result.graph.layers if layer.type in INSERTED]
    assert kinds.count(LayerType.MEM_COPY) == 2
    views = [layer for layer in result.graph.layers if layer.type is LayerType.FALLBACK_IMPORT]
    assert [result.factories[layer.name] for layer in views].count(None) == 2, "one for the copies, one for Plain"
    assert len(views) == 3
    assert {layer.inputs for layer in views} == {("a",)}


def test_all_readers_use_one_kind_of_memory() -> None:
    """With these allocators, one kind of memory suits B and C, and none suits all three; D copies."""
    source = backend("Source", factories=[FlagFactory("S", imports=MALLOC | PROTECTED, capabilities=[REQUIRED])])
    readers = {name: backend(name, factories=[FlagFactory(name, imports=kind)]) for name, kind in WANTED.items()}
    options = replace(IMPORTING, allocators=(MALLOC, PROTECTED))
    result = divided(
        fan("b", "c", "d"), {"a": source} | {name.lower(): kind for name, kind in readers.items()}, options
    )
    strategies = {crossing.target_backend: crossing.strategy for crossing in result.crossings}
    assert strategies == {
        "B": EdgeStrategy.FALLBACK_IMPORT,
        "C": EdgeStrategy.FALLBACK_IMPORT,
        "D": EdgeStrategy.COPY,
    }


WANTED = {"B": PROTECTED, "C": PROTECTED, "D": MALLOC}


class TestTheNetworksBorders:
    def test_an_input_that_crosses_has_no_source_backend(self) -> None:
        network = Network("input")
        x = network.add_input(floats("x"))
        network.set_outputs([network.add_relu_layer(x, name="a"), network.add_relu_layer(x, name="b")])
        one = backend("One", factories=[requiring("O", maps=True)])
        two = backend("Two", factories=[requiring("T", maps=True)])
        result = divided(network, {"a": one, "b": two})
        (crossing,) = result.crossings
        assert (crossing.strategy, crossing.source_backend) == (EdgeStrategy.FALLBACK_IMPORT, None)

    def test_unmapped_inputs_and_outputs_are_reached_in_fallback_memory(self) -> None:
        result = divided(line("a"), {"a": backend("A", factories=[requiring("A", imports=DMA_BUF)])})
        assert result.factories == {"in": "A", "a": "A"}

    @pytest.mark.parametrize("allocators", [(DMA_BUF,), ()])
    def test_unless_the_process_cannot_map_that_memory(self, allocators: tuple[MemorySource, ...]) -> None:
        options = replace(IMPORTING, allocators=allocators)
        with pytest.raises(FerruleError, match="input 'in' of the network can be neither mapped nor imported"):
            divided(line("a"), {"a": backend("A", factories=[requiring("A", imports=DMA_BUF)])}, options)

    def test_the_error_names_the_option(self) -> None:
        hidden = [FlagFactory("T", maps=False, imports=MALLOC)]
        with pytest.raises(FerruleError, match="Could not find valid strategy") as error:
            pair([FlagFactory("S")], hidden, OptimizerOptions(simplify=False))
        assert "import_enabled" in (error.value.hint or "")


def test_debug_layers_get_tensors_that_they_can_map() -> None:
    options = replace(IMPORTING, debug=True)
    factories = [requiring("A1"), FlagFactory("A2")]
    kinds = {"a": backend("A", factories=factories), "b": backend("B", factories=[FlagFactory("B1", imports=MALLOC)])}
    result = divided(line("a", "b"), kinds, options)
    for layer in result.graph.layers:
        if layer.type is LayerType.DEBUG:
            assert {result.factories[name] for name in (*layer.present_inputs, *layer.outputs)} <= {"A2", "B1"}


class Picky(FlagFactory):
    """A factory that requires fallback memory only for connections to one layer."""

    def capabilities(self, layer: Layer | None = None, connected: Layer | None = None) -> frozenset[HandleCapability]:
        return frozenset({REQUIRED}) if connected is not None and connected.name == "c" else frozenset()


def test_a_factory_may_require_it_for_some_connections() -> None:
    source = backend("Source", factories=[Picky("S", imports=MALLOC)])
    target = backend("Target", factories=[FlagFactory("T", imports=MALLOC)])
    result = divided(fan("b", "c"), {"a": source, "b": target, "c": target})
    assert [crossing.strategy for crossing in result.crossings] == [EdgeStrategy.COPY, EdgeStrategy.FALLBACK_IMPORT]
    assert [crossing.layer for crossing in result.crossings] == ["[ a (0) -> b (0) ]", "[ a (0) -> c (0) ]"]
