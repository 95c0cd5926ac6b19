# SPDX-License-Identifier: Apache-2.0
"""A layer is lowered once per firmware: rules, not a trial lowering, decide whether a backend supports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
import small_networks

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.backends import BackendId, Device, Face, default_target
from ferrule.backends.cpu_acc.backend import CpuAccSupport, CpuAccTarget
from ferrule.backends.cpu_acc.lowering import table
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.soft_npu.firmware import SoftNpuTarget
from ferrule.backends.uart_woofles.firmware import UartWooflesTarget
from ferrule.backends.woofles.firmware import WooflesTarget
from ferrule.dom import Identifier
from ferrule.errors import FerruleError
from ferrule.firmware import Job, emit
from ferrule.graph import Graph, LayerType
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.testing.backends.layer_cases import LAYER_TYPES, computed_weights, layer_case

TARGET = default_target(BackendId("CpuAcc"), Face.FIRMWARE)
NPU = Device(name="npu0", backend=BackendId("SoftNpu"))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count, by layer, the lowerings of CpuAcc's table and the calls of each firmware face's `lower`."""
    counts: Counter[str] = Counter()

    def counting(name: str, original: Callable[..., LoweredOp]) -> Callable[..., LoweredOp]:
        def lowering(*arguments: object) -> LoweredOp:
            context = arguments[-1]
            assert isinstance(context, LoweringContext)
            counts[f"{name} {context.layer.name}"] += 1
            return original(*arguments)

        return lowering

    for type_, original in table.LOWERINGS.items():
        monkeypatch.setitem(table.LOWERINGS, type_, counting("table", original))  # type: ignore[arg-type]
    for face in (CpuAccTarget, SoftNpuTarget, WooflesTarget, UartWooflesTarget):
        monkeypatch.setattr(face, "lower", counting(face.__name__, face.lower))
    return counts


@pytest.mark.parametrize("backends", [("CpuAcc",), ("SoftNpu", "CpuAcc"), ("Woofles", "CpuAcc")])
def test_each_layer_is_lowered_once(counted: Counter[str], backends: tuple[str, ...]) -> None:
    artifact = emit(small_networks.dense(), Job(backends=backends))
    lowered = {layer.name for layer in artifact.graph.layers if layer.type is not LayerType.MEM_COPY}
    faces = {key.split()[1]: key for key in counted if not key.startswith("table")}
    assert {name for key in counted for name in key.split()[1:]} == lowered
    assert set(faces) == lowered
    assert set(counted.values()) == {1}, counted


def cases() -> list[Graph]:
    """Return layers of each type and element type, and weighted layers whose weights are computed."""
    found = []
    for type_ in LAYER_TYPES:
        for dtype in DataType:
            found += [layer_case(type_, dtype, seed) for seed in range(3)]
    weighted = (LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D, LayerType.FULLY_CONNECTED)
    floats = (DataType.FLOAT32, DataType.INT8, DataType.INT16)
    return found + [computed_weights(layer_case(type_, dtype, 0)) for type_ in weighted for dtype in floats]


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
    return replace(info, dtype=dtype, quantization=Quantization.of(0.1, 0) if dtype.is_quantizable else None)


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


def test_the_rules_refuse_what_cannot_be_lowered_and_nothing_else() -> None:
    answers: Counter[tuple[LayerType, bool]] = Counter()
    for graph in (*cases(), *conversions()):
        for layer in graph.layers:
            infos = (*graph.input_infos(layer), *graph.output_infos(layer))
            if layer.type not in table.LOWERINGS or any(i is not None and i.dtype is DataType.FLOAT16 for i in infos):
                continue
            try:
                operands = Operands.of(graph, layer)
                OPERATORS[layer.type].check(layer.descriptor, operands)
            except FerruleError:
                continue
            taken = bool(CpuAccSupport().supports(graph, layer, TARGET))
            assert taken is not lowering_fails(graph, layer.name), f"{graph.name}: {layer}"
            answers[layer.type, taken] += 1
    assert set(LAYER_TYPES) & set(table.LOWERINGS) <= {type_ for type_, taken in answers if taken}
    assert (LayerType.CONV_2D, False) in answers


def test_a_computed_bias_is_refused() -> None:
    for type_ in (LayerType.FULLY_CONNECTED, LayerType.CONV_2D):
        for dtype in (DataType.FLOAT32, DataType.INT8):
            case = next(
                graph
                for graph in (layer_case(type_, dtype, seed) for seed in range(20))
                if len(graph.layers[0].inputs) > 2 and graph.layers[0].inputs[2] is not None
            )
            bias = case.layers[0].inputs[2]
            assert bias is not None
            graph = Network("computed_bias")
            for tensor in case.tensors:
                if tensor.data is not None and tensor.info.name != bias:
                    graph.add_constant(tensor.info, tensor.data)
            for info in (*case.inputs, case.info(bias)):
                graph.add_input(info)
            graph.add_layer(case.layers[0], list(case.outputs))
            refusal = CpuAccSupport().supports(graph, graph.layers[0], TARGET).reason
            assert "is computed at run time, expected a constant" in refusal
            assert lowering_fails(graph, graph.layers[0].name)
