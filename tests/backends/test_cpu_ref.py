# SPDX-License-Identifier: Apache-2.0
"""CpuRef: support and workloads of every operator in every type."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from mock_backends import assigned, registry_of
from numpy.testing import assert_array_equal
from sample_networks import samples, stateless

from ferrule.backends.backend import Support
from ferrule.backends.context import CustomAllocator
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.device import BackendId
from ferrule.backends.shared.host_memory import HOST_FACTORY, HostTensorHandle
from ferrule.backends.target import default_target
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.backends.workload import WorkloadInfo
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Array, Graph, Layer, LayerType
from ferrule.network.execution import check_inputs, operands_of
from ferrule.operators.interpreter import execute
from ferrule.operators.operator import Operands, Operator
from ferrule.operators.table import OPERATORS
from ferrule.runtime import Runtime

TARGET = default_target(BackendId("CpuRef"))

GRAPHS = [stateless(graph) for graph in samples()]
NAMES = [f"{graph.name}_{index}" for index, graph in enumerate(GRAPHS)]


def inputs_of(graph: Graph) -> list[Array]:
    generator = np.random.default_rng(5)
    return [
        generator.normal(size=info.shape).astype(info.dtype.numpy)
        if info.dtype.is_float
        else generator.integers(-100, 100, info.shape).astype(info.dtype.numpy)
        for info in graph.inputs
    ]


def ask(graph: Graph, layer: Layer) -> Support:
    return CpuRef().layer_support().supports(graph, layer, TARGET)


def refusal(operator: Operator, layer: Layer, operands: Operands) -> str:
    """Return the operator's own reason to refuse a layer; empty if it accepts the layer."""
    try:
        operator.check(layer.descriptor, operands)
    except FerruleError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("graph", GRAPHS, ids=NAMES)
def test_every_operator_runs_as_the_reference(graph: Graph) -> None:
    inputs = inputs_of(graph)
    layer = graph.layers[0]
    reason = refusal(OPERATORS[layer.type], layer, operands_of(graph, layer))
    assert ask(graph, layer).reason == reason
    if reason:
        return
    expected = execute(graph, check_inputs(graph, inputs))
    with Runtime(registry=registry_of(CpuRef)) as runtime:
        network = runtime.load_network(assigned(graph, {}, CpuRef))
        for _ in range(2):
            outputs = runtime.enqueue_workload(network, inputs)
            for output, wanted in zip(outputs, expected, strict=True):
                assert_array_equal(output, wanted)
                assert output.dtype == wanted.dtype


def test_the_samples_name_every_operator_of_files() -> None:
    added = {LayerType.MEM_COPY, LayerType.MEM_IMPORT, LayerType.DEBUG, LayerType.FALLBACK_IMPORT}
    added |= {LayerType.CONVERT_FP16_TO_FP32, LayerType.CONVERT_FP32_TO_FP16, LayerType.LOOKUP}
    added |= {LayerType.LAYER_NORMALIZATION}
    assert {layer.type for graph in GRAPHS for layer in graph.layers} >= set(OPERATORS) - added


@pytest.mark.parametrize("graph", GRAPHS, ids=NAMES)
def test_refusals_have_the_operators_reason_and_no_workload(graph: Graph) -> None:
    """Support and workload factory agree when a layer's type is changed to that of any other operator."""
    layer = graph.layers[0]
    operands = operands_of(graph, layer)
    for type_ in LayerType:
        other = replace(layer, type=type_)
        row = OPERATORS.get(type_)
        support = ask(graph, other)
        if row is None or not isinstance(layer.descriptor, row.descriptor):
            assert not support
            continue
        reason = refusal(row, layer, operands)
        assert support.reason == reason
        factory = CpuRef().workload_factory(None, {})
        if reason:
            with pytest.raises(FerruleError, match=re.escape(reason)):
                factory.create_workload(workload_info(graph, other))
        else:
            assert factory.create_workload(workload_info(graph, other))


def workload_info(graph: Graph, layer: Layer) -> WorkloadInfo:
    return WorkloadInfo.of(graph, layer, lambda name: HostTensorHandle(graph.info(name)), TARGET)


def test_pre_compiled_layers_are_refused() -> None:
    graph = GRAPHS[0]
    layer = replace(graph.layers[0], type=LayerType.PRE_COMPILED)
    assert "no numpy kernel for PRE_COMPILED" in ask(graph, layer).reason
    with pytest.raises(UnsupportedError, match="PRE_COMPILED"):
        CpuRef().workload_factory(None, {}).create_workload(workload_info(graph, layer))


class Allocator(CustomAllocator):
    def __init__(self, source: MemorySource) -> None:
        self.source = source

    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        raise MemoryError

    def free(self, memory: MemoryRef) -> None:
        raise AssertionError


def test_only_plain_memory_is_accepted() -> None:
    plain: CustomAllocator = Allocator(MemorySource.MALLOC)
    assert CpuRef().use_custom_memory_allocator(plain) == ""
    assert "returns DMA_BUF memory" in CpuRef().use_custom_memory_allocator(Allocator(MemorySource.DMA_BUF))


def test_its_factory_is_that_of_plain_host_memory() -> None:
    assert [factory.id for factory in CpuRef().tensor_handle_factories(None)] == [HOST_FACTORY]
    assert CpuRef().handle_factory_preferences() == (HOST_FACTORY,)
    assert CpuRef().firmware_target() is None
    assert CpuRef().has_host_face()
