# SPDX-License-Identifier: Apache-2.0
"""A layer is lowered once per firmware: rules, not a trial lowering, decide whether a backend supports it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest
import small_networks
from bands import Program, Sketch, chained
from composed_networks import composed_network
from mobilenet_v2 import mobilenet_v2

from ferrule import DataType, Quantization, TensorInfo
from ferrule.backends import BackendId, Face, default_target
from ferrule.backends.cpu_acc.backend import CpuAccSupport, CpuAccTarget
from ferrule.backends.cpu_acc.lowering import table
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.soft_npu.firmware import SoftNpuTarget
from ferrule.backends.target import CoreFeatures
from ferrule.backends.uart_woofles.firmware import UartWooflesTarget
from ferrule.backends.woofles.firmware import WooflesTarget
from ferrule.boards import load_board
from ferrule.dom import Identifier
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.firmware import Job, emit
from ferrule.firmware.job import GOALS
from ferrule.graph import Graph, Layer, LayerType
from ferrule.memory import ArenaOverflowError
from ferrule.network.validation import check_layer
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.table import OPERATORS
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case, placed, placements

Calls = list[tuple[str, LoweringContext]]
TARGET = default_target(BackendId("CpuAcc"), Face.FIRMWARE)


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Return all calls of the firmware faces' `lower`, as they are made: the face's name and the context."""
    calls: Calls = []

    def recording(original: Callable[..., LoweredOp]) -> Callable[..., LoweredOp]:
        def lower(face: object, context: LoweringContext) -> LoweredOp:
            calls.append((type(face).__name__, context))
            return original(face, context)

        return lower

    for face in (CpuAccTarget, SoftNpuTarget, WooflesTarget, UartWooflesTarget):
        monkeypatch.setattr(face, "lower", recording(face.lower))
    return calls


def prefixes(calls: Calls) -> Counter[str]:
    """Count the lowerings by the prefix of their C names."""
    return Counter(context.prefix for _, context in calls)


def bands(calls: Calls) -> Counter[tuple[object, ...]]:
    """Count the lowerings by the layer, the rows of its tensors, and its descriptor, which has the padding."""
    return Counter(
        (
            context.layer.name,
            context.layer.descriptor,
            *(context.graph.info(name).shape for name in (*context.layer.present_inputs, *context.layer.outputs)),
        )
        for _, context in calls
    )


@pytest.mark.parametrize("goal", GOALS)
def test_a_layer_is_lowered_once_even_if_overlaps_change_the_order(lowered: Calls, goal: str) -> None:
    """The networks are others when an operator is added, so some of them are tried."""
    reordered: set[bool] = set()
    for index in range(20):
        network = composed_network(1, index)
        if any(layer.descriptor.graphs for layer in network.layers):
            continue  # the layers of called graphs are lowered, too
        lowered.clear()
        artifact = emit(network, Job(goal=goal))
        order = [context.layer.name for _, context in lowered]
        assert sorted(order) == sorted(layer.name for layer in artifact.graph.layers)
        assert set(prefixes(lowered).values()) == {1}
        reordered.add(order != [record.layer for record in artifact.operators])
        if len(reordered) == 2:
            return
    pytest.fail(f"all networks are reordered, or none: {reordered}")


@pytest.mark.parametrize("input_rows", [False, True])
def test_a_layer_is_lowered_once_for_each_kind_of_its_bands(lowered: Calls, input_rows: bool) -> None:
    network = mobilenet_v2(64, 0.35, classes=10, blocks=4)
    artifact = emit(network, Job(goal="memory", input_rows=input_rows))
    whole = {record.layer for record in artifact.operators}
    counts = Counter(context.layer.name for _, context in lowered)
    assert any(record.kernel == "stream" for record in artifact.operators)
    assert {counts[name] for name in whole} == {1}
    assert max(counts.values()) == 3, "the first band, those in the middle and the last one"
    assert set(prefixes(lowered).values()) == set(bands(lowered).values()) == {1}


def test_equal_bands_are_lowered_once_wherever_they_are(lowered: Calls) -> None:
    sketch = Sketch.of(1, 6, 3, 4)
    network = sketch.finish(sketch.conv("x", 4, padding=Padding(top=5, bottom=5, left=1, right=1)))
    Program(chained(network, network.layers, 1), CoreFeatures(name="cortex-m4", dsp=True))
    chain, padding, above, inside, below = 1, 1, 2, 1, 2
    assert len(lowered) == chain + padding + above + inside + below, "three bands above and three below are padding"
    assert set(bands(lowered).values()) == {1}


@pytest.mark.parametrize("backends", [("CpuAcc",), ("SoftNpu", "CpuAcc"), ("Woofles", "CpuAcc")])
def test_each_layer_is_lowered_once(lowered: Calls, backends: tuple[str, ...]) -> None:
    artifact = emit(small_networks.dense(), Job(backends=backends))
    faces = Counter((face, context.layer.name) for face, context in lowered)
    names = {layer.name for layer in artifact.graph.layers if layer.type is not LayerType.MEM_COPY}
    assert {name for _, name in faces} == names
    assert set(faces.values()) == {1}, "a device's face may ask CpuAcc's, once"


@pytest.mark.parametrize("workspace_bytes", [16, 1 << 20])
def test_a_layer_is_lowered_once_for_a_board_that_is_too_small(lowered: Calls, workspace_bytes: int) -> None:
    board = load_board("mps2-an386")
    memories = tuple(
        replace(each, size_bytes=workspace_bytes) if each.name == board.placement.workspace else each
        for each in board.memories
    )
    job = Job(board=replace(board, memories=memories))
    artifact = emit(small_networks.dense(), job, limited=False)
    assert (artifact.workspace_bytes > workspace_bytes) is (workspace_bytes == 16)
    assert set(prefixes(lowered).values()) == {1}
    if workspace_bytes == 16:
        with pytest.raises(ArenaOverflowError):
            emit(small_networks.dense(), job)


def cases(seeds: Iterable[int]) -> Iterator[Graph]:
    """Yield layers of each type and element type, with every choice of the inputs that are constants."""
    for type_ in LAYER_TYPES:
        for dtype in DataType:
            for seed in seeds:
                yield from placements(layer_case(type_, dtype, seed))


def conversions() -> list[Graph]:
    """Return a QUANTIZE between every pair of element types."""
    found = []
    for source in DataType:
        for target in DataType:
            graph = layer_case(LayerType.QUANTIZE, DataType.INT8, 0)
            layer, changed = graph.layers[0], Graph("conversion")
            changed.add_input(retyped(graph.inputs[0], source))
            changed.add_layer(layer, [retyped(graph.outputs[0], target)])
            found.append(changed)
    return found


def retyped(info: TensorInfo, dtype: DataType) -> TensorInfo:
    return replace(info, dtype=dtype, quantization=Quantization.of(0.1) if dtype.is_quantizable else None)


def lowering_fails(graph: Graph, name: str) -> bool:
    """Return whether the lowering of a valid layer raises FerruleError."""
    layer = graph.layer(name)
    pointers = {tensor: Identifier("tensor") for tensor in (*layer.present_inputs, *layer.outputs)}
    context = LoweringContext(graph=graph, layer=layer, target=TARGET, prefix="layer", pointers=pointers)
    try:
        CpuAccTarget().lower(context)
    except FerruleError:
        return True
    return False


def refusal_of_operator(graph: Graph, layer: Layer) -> str:
    """Return why the operator refuses a layer; "" if it accepts it."""
    try:
        OPERATORS[layer.type].accept_layer(graph, layer)
    except FerruleError as error:
        return str(error)
    return ""


def check_accepted(graphs: Iterable[Graph]) -> set[LayerType]:
    """Check that CpuAcc supports and lowers each layer that its operator accepts, and return the types of these."""
    taken = set()
    for graph in graphs:
        for layer in graph.layers:
            infos = (*graph.input_infos(layer), *graph.output_infos(layer))
            if layer.type not in table.LOWERINGS or any(i is not None and i.dtype is DataType.FLOAT16 for i in infos):
                continue
            refusal = refusal_of_operator(graph, layer)
            assert CpuAccSupport().supports(graph, layer, TARGET).reason == refusal, graph.name
            if refusal:
                continue
            assert not lowering_fails(graph, layer.name), f"{graph.name}: {layer}"
            taken.add(layer.type)
    return taken


def test_what_an_operator_accepts_is_lowered_wherever_its_constants_are() -> None:
    taken = check_accepted((*cases(range(1)), *conversions()))
    assert set(LAYER_TYPES) & set(table.LOWERINGS) <= taken


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 9))
def test_more_of_what_an_operator_accepts_is_lowered(seed: int) -> None:
    assert check_accepted(cases([seed]))


def with_computed(type_: LayerType, dtype: DataType, position: int) -> Graph:
    """Return a layer whose input at this position is computed, and the others are as in its sample."""
    case = next(
        graph
        for graph in (layer_case(type_, dtype, seed) for seed in range(20))
        if len(graph.layers[0].inputs) > position and graph.layers[0].inputs[position] is not None
    )
    layer = case.layers[0]
    return placed(
        case, {name for name in layer.present_inputs if case.tensor(name).is_constant} - {layer.inputs[position]}
    )


@pytest.mark.parametrize(
    "type_",
    [LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D, LayerType.FULLY_CONNECTED, LayerType.TRANSPOSE_CONV],
    ids=str,
)
@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16], ids=str)
def test_a_computed_bias_of_integers_is_refused(type_: LayerType, dtype: DataType) -> None:
    graph = with_computed(type_, dtype, 2)
    refusal = CpuAccSupport().supports(graph, graph.layers[0], TARGET).reason
    assert "'bias' is int" in refusal
    assert "computed at run time, expected a constant: with some values, a sum would overflow" in refusal
    with pytest.raises(UnsupportedError) as caught:
        check_layer(graph, graph.layers[0])
    assert refusal in str(caught.value)


@pytest.mark.parametrize(("type_", "position"), [(LayerType.SVDF, 1), (LayerType.SVDF, 2), (LayerType.SVDF, 3)])
def test_computed_weights_of_recurrent_layers_are_refused(type_: LayerType, position: int) -> None:
    graph = with_computed(type_, DataType.INT8, position)
    refusal = CpuAccSupport().supports(graph, graph.layers[0], TARGET).reason
    assert refusal.endswith("is computed at run time, expected a constant")
    with pytest.raises(UnsupportedError, match=re.escape(refusal)):
        check_layer(graph, graph.layers[0])
