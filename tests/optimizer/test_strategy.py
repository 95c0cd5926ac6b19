# SPDX-License-Identifier: Apache-2.0
"""The handle factory of each tensor, the readers' access to it, and the layers inserted for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from optimizer_mocks import FlagFactory, backend, floats, registry, takes_names

from ferrule.backends import Backend
from ferrule.backends.tensor_handle import FactoryId, HandleCapability, MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import Graph, LayerType
from ferrule.network import Network
from ferrule.optimizer import Assignment, EdgeStrategy, OptimizedNetwork, OptimizerOptions, optimize
from ferrule.optimizer.access import handle_factories
from ferrule.optimizer.strategy import Handles, Selector

HOST = MemorySource.MALLOC
COPYING = OptimizerOptions(simplify=False)
BOTH = OptimizerOptions(simplify=False, import_enabled=True, export_enabled=True)


def chain(*names: str) -> Network:
    network = Network("chain")
    tensor = network.add_input(floats("in"))
    for name in names:
        tensor = network.add_relu_layer(tensor, name=name)
    network.set_outputs([tensor])
    return network


def optimised(
    graph: Graph, backends: Mapping[str, type[Backend]], options: OptimizerOptions = COPYING
) -> OptimizedNetwork:
    """Return the optimized network with each layer on the backend given for it."""
    kinds = {kind.id: kind for kind in backends.values()}
    chosen = OptimizerOptions(
        simplify=False,
        import_enabled=options.import_enabled,
        export_enabled=options.export_enabled,
        allocators=options.allocators,
        hints={name: kind.id for name, kind in backends.items()},
    )
    return optimize(graph, list(kinds), registry(*kinds.values()), chosen)


def selected(graph: Graph, backends: Mapping[str, type[Backend]], options: OptimizerOptions) -> Handles:
    """Return the decisions before layers are inserted."""
    assignment = {name: Assignment(backend=kind.id, device=kind.id) for name, kind in backends.items()}
    return Selector(graph, assignment, handle_factories(kind() for kind in backends.values()), options).run()


def types(result: OptimizedNetwork) -> list[LayerType]:
    return [layer.type for layer in result.graph.layers if layer.type is not LayerType.RELU]


def exporter(name: str) -> FlagFactory:
    return FlagFactory(name, exports=HOST)


class TestUpstreamVector:
    """Arm NN's TensorHandleSelectionStrategy: in(A) -> s1(A) -> s2(B) -> s3(C) -> s4(D) -> out(A)."""

    BACKENDS: Mapping[str, type[Backend]] = {
        "s1": backend("A", factories=[exporter("A1"), exporter("A2")], preferences=["A1", "A2", "B1", "D1"]),
        "s2": backend("B", factories=[exporter("B1")]),
        "s3": backend("C", factories=[exporter("C1")]),
        "s4": backend("D", factories=[FlagFactory("D1", imports=HOST)]),
    }

    def test_factories_and_edges(self) -> None:
        handles = selected(chain("s1", "s2", "s3", "s4"), self.BACKENDS, BOTH)
        assert handles.factories == {"in": "D1", "s1": "B1", "s2": "B1", "s3": "C1", "s4": "D1"}
        assert {edge: access.strategy for edge, access in handles.accesses.items()} == {
            ("in", "s1"): EdgeStrategy.DIRECT,
            ("s1", "s2"): EdgeStrategy.DIRECT,
            ("s2", "s3"): EdgeStrategy.COPY,
            ("s3", "s4"): EdgeStrategy.EXPORT,
        }

    def test_one_copy_and_one_import_are_put_in(self) -> None:
        result = optimised(chain("s1", "s2", "s3", "s4"), self.BACKENDS, BOTH)
        assert [layer.name for layer in result.graph.layers] == [
            "s1",
            "s2",
            "[ s2 (0) -> s3 (0) ]",
            "s3",
            "[ s3 (0) -> s4 (0) ]",
            "s4",
        ]
        assert types(result) == [LayerType.MEM_COPY, LayerType.MEM_IMPORT]
        assert result.factories["[ s2 (0) -> s3 (0) ]"] == "C1"
        assert result.factories["[ s3 (0) -> s4 (0) ]"] == "D1"
        assert result.assignment["[ s2 (0) -> s3 (0) ]"].backend == "C"
        assert result.assignment["[ s3 (0) -> s4 (0) ]"].backend == "D"

    def test_without_import_everything_is_copied(self) -> None:
        result = optimised(chain("s1", "s2", "s3", "s4"), self.BACKENDS)
        assert types(result) == [LayerType.MEM_COPY, LayerType.MEM_COPY]
        assert result.factories["in"] == "A1"


def pair(
    source: Sequence[FlagFactory], target: Sequence[FlagFactory], options: OptimizerOptions = BOTH
) -> OptimizedNetwork:
    kinds = {"a": backend("Source", factories=source), "b": backend("Target", factories=target)}
    return optimised(chain("a", "b"), kinds, options)


def test_a_backend_whose_layers_are_gone_gives_no_factories() -> None:
    """B1, which A prefers, belongs to B; as B has no layer left, its factories would not exist at load time."""
    a = backend("A", factories=[FlagFactory("A1")], preferences=["B1", "A1"])
    b = backend("B", takes_names(()), factories=[FlagFactory("B1")])
    result = optimize(chain("a"), ["A", "B"], registry(a, b), COPYING)
    assert set(result.factories.values()) == {"A1"}


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("obstacle", [HandleCapability.PADDING_REQUIRED, HandleCapability.FALLBACK_IMPORT_DISABLED])
def test_padding_and_disabled_fallback_force_a_copy(side: str, obstacle: HandleCapability) -> None:
    def flags(own: str) -> list[HandleCapability]:
        return [obstacle] if own == side else []

    result = pair(
        [FlagFactory("S", exports=HOST, capabilities=flags("source"))],
        [FlagFactory("T", imports=HOST, capabilities=flags("target"))],
    )
    assert types(result) == [LayerType.MEM_COPY]


def test_an_import_goes_to_the_factory_that_can_import() -> None:
    """Arm NN chooses the first factory that maps, so the import gets a handle that cannot import."""
    result = pair([exporter("S")], [FlagFactory("T1"), FlagFactory("T2", imports=HOST)])
    assert types(result) == [LayerType.MEM_IMPORT]
    assert result.factories["[ a (0) -> b (0) ]"] == "T2"


def test_a_copy_goes_to_the_factory_that_maps() -> None:
    result = pair([FlagFactory("S")], [FlagFactory("T1", imports=MemorySource.DMA_BUF, maps=False), FlagFactory("T2")])
    assert types(result) == [LayerType.MEM_COPY]
    assert result.factories["[ a (0) -> b (0) ]"] == "T2"


def test_a_reader_with_a_second_factory_needs_no_copy() -> None:
    """Arm NN counts a copy if any of the reader's factories needs one, and would choose S1 here."""
    result = pair([FlagFactory("S1"), FlagFactory("S2")], [FlagFactory("T1"), FlagFactory("S2")], COPYING)
    assert types(result) == []
    assert result.factories["a"] == "S2"


@pytest.mark.parametrize(
    ("target", "named"), [([FlagFactory("T1", maps=False), FlagFactory("T2", maps=False)], "'T1', 'T2'"), ([], "plain")]
)
def test_without_a_common_way_the_error_names_tensor_and_layer(target: list[FlagFactory], named: str) -> None:
    apart = OptimizerOptions(import_enabled=True, export_enabled=True, allocators=())
    expected = rf"Tensor 'a' .* handles of 'S', and layer 'b' on Target \({named}"
    with pytest.raises(FerruleError, match=expected) as caught:
        pair([FlagFactory("S", maps=False, imports=HOST)], target, apart)
    assert caught.value.hint is None, "imports are enabled already"


def test_an_input_that_nobody_can_fill_is_an_error() -> None:
    with pytest.raises(FerruleError, match="input 'in' of the network can be neither mapped nor imported"):
        optimised(chain("a"), {"a": backend("A", factories=[FlagFactory("A1", maps=False)])})


def test_an_output_that_nobody_can_see_is_an_error() -> None:
    hidden = backend("A", factories=[FlagFactory("A1", maps=False, imports=HOST)])
    without = OptimizerOptions(import_enabled=True, allocators=())
    with pytest.raises(FerruleError, match="output 'a' of the network has handles of 'A1', which can be neither"):
        optimize(chain("a"), ["A"], registry(hidden), without)


def behind(source: FlagFactory, *factories: FlagFactory, options: OptimizerOptions = BOTH) -> OptimizedNetwork:
    """Return a layer `a` that reads another backend's tensor, and whose tensor is the network's output."""
    kinds = {"first": backend("First", factories=[source]), "a": backend("A", factories=factories)}
    return optimised(chain("first", "a"), kinds, options)


def test_an_output_that_the_process_cannot_reach_is_in_the_callers_memory() -> None:
    """The caller's is memory of the process, which the handle must import; no allocator has such memory here."""
    first = FlagFactory("F", imports=HOST, exports=HOST | MemorySource.DMA_BUF)
    apart = OptimizerOptions(import_enabled=True, export_enabled=True, allocators=())
    assert behind(first, FlagFactory("A1", maps=False, imports=HOST), options=apart).factories["a"] == "A1"
    with pytest.raises(FerruleError, match="output 'a' of the network has handles of 'A1', which can be neither"):
        behind(first, FlagFactory("A1", maps=False, imports=MemorySource.DMA_BUF), options=apart)


@pytest.mark.parametrize(
    ("maps", "is_output", "strategy"),
    [
        (False, True, EdgeStrategy.COPY),
        (False, False, EdgeStrategy.FALLBACK_IMPORT),
        (True, True, EdgeStrategy.FALLBACK_IMPORT),
    ],
)
def test_a_tensor_that_the_caller_reads_is_in_memory_that_the_process_maps(
    *, maps: bool, is_output: bool, strategy: EdgeStrategy
) -> None:
    """The reader imports DMA-BUF only; of the allocators, that of DMA-BUF is the one without memory of the process."""
    network = chain("a", "b")
    network.set_outputs(["a", "b"] if is_output else ["b"])
    required = [HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED]
    source = FlagFactory("S", imports=HOST | MemorySource.DMA_BUF, maps=maps, capabilities=required)
    target = FlagFactory("T", imports=MemorySource.DMA_BUF)
    kinds = {"a": backend("Source", factories=[source]), "b": backend("Target", factories=[target])}
    options = OptimizerOptions(import_enabled=True, allocators=(MemorySource.DMA_BUF, HOST))
    assert selected(network, kinds, options).accesses["a", "b"].strategy is strategy


class TestTheWritersFactory:
    """Both factories serve the readers without a copy; the second gets the tensor only if the first is no candidate."""

    HIDDEN = FlagFactory("S1", maps=False)
    OPEN = FlagFactory("S2", exports=HOST)

    def test_without_export_it_must_map(self) -> None:
        kinds = dict.fromkeys(("a", "b"), backend("A", factories=[self.HIDDEN, self.OPEN]))
        assert optimised(chain("a", "b"), kinds).factories["a"] == "S2"
        assert optimised(chain("a", "b"), kinds, BOTH).factories["a"] == "S1"

    def test_an_output_must_be_exported_unless_its_layer_reads_what_another_backend_wrote(self) -> None:
        factories = [FlagFactory("S1", imports=HOST), self.OPEN]
        kinds = dict.fromkeys(("first", "a"), backend("A", factories=factories))
        alone = optimised(chain("first", "a"), kinds, BOTH)
        assert (alone.factories["first"], alone.factories["a"]) == ("S1", "S2")
        assert behind(exporter("F"), *factories).factories["a"] == "S1"

    @pytest.mark.parametrize("other_reads_it", [False, True])
    def test_a_constant_is_written_by_no_backend(self, *, other_reads_it: bool) -> None:
        network = chain()
        weights = network.add_constant_array("w", np.ones((1, 4), np.float32))
        names = []
        for name in ("other", "a") if other_reads_it else ("a",):
            network.add_add_layer("in", weights, name=name)
            names.append(name)
        network.set_outputs(names)
        factories = [FlagFactory("S1", imports=HOST), self.OPEN]
        kinds = {"other": backend("Other", factories=[FlagFactory("S1", imports=HOST)])}
        kinds = {name: kind for name, kind in kinds.items() if name in names} | {"a": backend("A", factories=factories)}
        assert optimised(network, kinds, BOTH).factories["a"] == ("S1" if other_reads_it else "S2")

    def test_it_must_not_disable_fallback_imports(self) -> None:
        closed = FlagFactory("S1", capabilities=[HandleCapability.FALLBACK_IMPORT_DISABLED])
        kinds = dict.fromkeys(("a", "b"), backend("A", factories=[closed, self.OPEN]))
        assert optimised(chain("a", "b"), kinds, BOTH).factories["a"] == "S2"
        assert optimised(chain("a", "b"), kinds).factories["a"] == "S1"

    def test_unless_the_others_leave_a_reader_unserved(self) -> None:
        closed = FlagFactory("S2", capabilities=[HandleCapability.FALLBACK_IMPORT_DISABLED])
        result = pair([self.HIDDEN, closed], [FlagFactory("T")], BOTH)
        assert result.factories["a"] == "S2"
        assert types(result) == [LayerType.MEM_COPY]

    def test_that_of_a_debug_layer_maps(self) -> None:
        closed = FlagFactory("S2", capabilities=[HandleCapability.FALLBACK_IMPORT_DISABLED])
        options = OptimizerOptions(simplify=False, export_enabled=True, debug=True)
        result = optimize(chain("a", "b"), ["A"], registry(backend("A", factories=[self.HIDDEN, closed])), options)
        assert types(result) == [LayerType.DEBUG, LayerType.DEBUG]
        assert set(result.factories.values()) == {"S2"}


def test_what_cannot_be_mapped_is_not_exported() -> None:
    """The runtime exports memory by mapping it."""
    source, target = FlagFactory("S", maps=False, imports=HOST, exports=HOST), FlagFactory("T", imports=HOST)
    without = OptimizerOptions(import_enabled=True, export_enabled=True, allocators=())
    with pytest.raises(FerruleError, match=r"Tensor 'a' of Source has handles of 'S', and layer 'b' on T"):
        pair([source], [target], without)
    assert types(pair([source, FlagFactory("S2", exports=HOST)], [target], without)) == [LayerType.MEM_IMPORT]


def test_an_input_is_imported_as_memory_of_the_process_only() -> None:
    result = optimised(
        chain("a"),
        {"a": backend("A", factories=[FlagFactory("A1", imports=MemorySource.DMA_BUF, maps=False), FlagFactory("A2")])},
        BOTH,
    )
    assert result.factories["in"] == "A2"


class TestPlainMemory:
    def test_one_backend_without_factories_needs_nothing(self) -> None:
        result = optimised(chain("a", "b"), dict.fromkeys(("a", "b"), backend("A")))
        assert result.factories == {"in": None, "a": None, "b": None}
        assert types(result) == []

    def test_between_two_there_is_a_copy(self) -> None:
        result = optimised(chain("a", "b"), {"a": backend("A"), "b": backend("B", factories=[FlagFactory("B1")])})
        assert result.factories == {"in": None, "a": None, "b": "B1", "[ a (0) -> b (0) ]": "B1"}

    def test_an_input_of_both_is_made_for_those_that_choose(self) -> None:
        network = Network("two readers")
        x = network.add_input(floats("x"))
        network.set_outputs([network.add_relu_layer(x, name="a"), network.add_relu_layer(x, name="b")])
        result = optimised(network, {"a": backend("A"), "b": backend("B", factories=[FlagFactory("B1")])})
        assert result.factories["x"] == "B1"
        assert [layer.name for layer in result.graph.layers] == ["[ x (0) -> a (0) ]", "a", "b"]
        assert result.factories["[ x (0) -> a (0) ]"] is None


def test_readers_of_one_backend_share_the_copy() -> None:
    network = Network("shared")
    x = network.add_input(floats("x"))
    a = network.add_relu_layer(x, name="a")
    b, c = network.add_relu_layer(a, name="b"), network.add_add_layer(a, a, name="c")
    network.set_outputs([b, c, network.add_relu_layer(a, name="d")])
    kinds = {name: backend(name, factories=[FlagFactory(f"{name}1")]) for name in "ABD"}
    result = optimised(network, {"a": kinds["A"], "b": kinds["B"], "c": kinds["B"], "d": kinds["D"]})
    assert [layer.name for layer in result.graph.layers if layer.type is LayerType.MEM_COPY] == [
        "[ a (0) -> b (0) ]",
        "[ a (0) -> d (0) ]",
    ]
    assert result.graph.layer("c").inputs == ("[ a (0) -> b (0) ]",) * 2


def test_a_name_that_is_taken_gets_a_number() -> None:
    network = Network("taken")
    x = network.add_input(floats("x"))
    a = network.add_relu_layer(x, name="a")
    network.set_outputs([network.add_relu_layer(a, name="b"), network.add_relu_layer(x, name="[ a (0) -> b (0) ]")])
    one, two = (backend(name, factories=[FlagFactory(f"{name}1")]) for name in "AB")
    result = optimised(network, {"a": one, "[ a (0) -> b (0) ]": one, "b": two})
    assert result.graph.layer("b").inputs == ("[ a (0) -> b (0) ]_2",)


@pytest.mark.parametrize(("votes", "winner"), [("AAB", "A1"), ("ABB", "B1"), ("AB", "A1"), ("BA", "B1")])
def test_an_input_gets_the_factory_that_most_readers_prefer(votes: str, winner: str) -> None:
    kinds = {name: backend(name, factories=[FlagFactory(f"{name}1")]) for name in "AB"}
    network = Network("votes")
    x = network.add_input(floats("x"))
    names = [f"l{index}" for index in range(len(votes))]
    network.set_outputs([network.add_relu_layer(x, name=name) for name in names])
    result = optimised(network, {name: kinds[vote] for name, vote in zip(names, votes, strict=True)})
    assert result.factories["x"] == FactoryId(winner)
