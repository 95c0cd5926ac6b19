# SPDX-License-Identifier: Apache-2.0
"""Every operator and type that CpuAcc supports on the host, compared with the numpy kernels."""

from __future__ import annotations

import pytest
from elementwise_cases import ELEMENTWISE
from host_face import LoadedGraph
from host_library import library
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from movement_cases import MOVEMENTS
from needs import lacking
from oracle import edge_inputs
from sample_networks import samples, stateless
from unary_cases import (
    QUANTIZE_PAIRS,
    SIGMOIDAL,
    SOFTMAX_OUTPUTS,
    Case,
    dequantize_cases,
    hard_swish_cases,
    quantize_cases,
    quantize_float_cases,
    reduce_cases,
    sigmoidal_cases,
    softmax_cases,
)
from weighted_cases import FAMILY, WITH_ZERO_POINT, weights_with_a_zero_point

from ferrule.backends.cpu_acc.backend import CpuAccSupport
from ferrule.backends.cpu_acc.host.instruction_set import AUTOMATIC, PORTABLE, SETS, available
from ferrule.backends.cpu_acc.host.options import HostOptions
from ferrule.backends.cpu_acc.host.workloads import CpuAccWorkloadFactory
from ferrule.backends.device import BackendId
from ferrule.backends.target import default_target
from ferrule.graph import Array, DataType, Graph, LayerType
from ferrule.testing.backends.comparison import graph_difference, random_inputs

TARGET = default_target(BackendId("CpuAcc"))

pytestmark = pytest.mark.cc
TYPES = (DataType.INT8, DataType.INT16, DataType.FLOAT32)
WEIGHTED = {LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D, LayerType.FULLY_CONNECTED, LayerType.AVERAGE_POOL_2D}
INTEGERS = (DataType.INT8, DataType.INT16)
WITHOUT_LIMITS = {"suppress_health_check": list(HealthCheck)}


def check(graph: Graph, *inputs: list[Array], instructions: str = AUTOMATIC) -> None:
    loaded = LoadedGraph(graph, CpuAccWorkloadFactory(HostOptions(instructions=instructions), library=library()))
    for given_inputs in inputs:
        assert not graph_difference(graph, given_inputs, loaded.run(given_inputs))


def check_case(case: Case) -> None:
    network, values = case
    check(network, [values])


@pytest.fixture(params=[PORTABLE, *(item.name for item in SETS)])
def instructions(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name not in {PORTABLE, *(item.name for item in available(library()))}:
        lacking(f"a processor with {name}", "run the tests on one", rare=True)
    return name


@pytest.mark.parametrize("operator", WITH_ZERO_POINT)
@settings(max_examples=10, **WITHOUT_LIMITS)
@given(data=st.data())
def test_weights_with_a_zero_point(operator: str, data: st.DataObject) -> None:
    network = data.draw(weights_with_a_zero_point(operator))
    check(network, random_inputs(network), *edge_inputs(network).values())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("family", FAMILY)
@settings(max_examples=8, **WITHOUT_LIMITS)
@given(data=st.data())
def test_weighted(family: str, dtype: DataType, instructions: str, data: st.DataObject) -> None:
    network = data.draw(FAMILY[family](dtype))
    check(network, random_inputs(network), *edge_inputs(network).values(), instructions=instructions)


@pytest.mark.parametrize("type_", ELEMENTWISE)
@settings(max_examples=12, **WITHOUT_LIMITS)
@given(data=st.data())
def test_elementwise(type_: LayerType, data: st.DataObject) -> None:
    network = data.draw(ELEMENTWISE[type_])
    check(network, random_inputs(network), *edge_inputs(network).values())


@pytest.mark.parametrize("type_", MOVEMENTS)
@settings(max_examples=15, **WITHOUT_LIMITS)
@given(data=st.data())
def test_movement(type_: LayerType, data: st.DataObject) -> None:
    network = data.draw(MOVEMENTS[type_])
    check(network, random_inputs(network))


@pytest.mark.parametrize("types", SOFTMAX_OUTPUTS, ids=lambda types: f"{types[0]}-{types[1]}")
@settings(max_examples=30, **WITHOUT_LIMITS)
@given(data=st.data())
def test_softmax(types: tuple[DataType, DataType], data: st.DataObject) -> None:
    check_case(data.draw(softmax_cases(types)))


@pytest.mark.parametrize("cell", SIGMOIDAL, ids=lambda cell: f"{cell[0]}-{cell[1]}")
@settings(max_examples=12, **WITHOUT_LIMITS)
@given(data=st.data())
def test_sigmoidal(cell: tuple[LayerType, DataType], data: st.DataObject) -> None:
    check_case(data.draw(sigmoidal_cases(*cell)))


@settings(max_examples=12, **WITHOUT_LIMITS)
@given(data=st.data())
def test_hard_swish(data: st.DataObject) -> None:
    check_case(data.draw(hard_swish_cases()))


@pytest.mark.parametrize("types", QUANTIZE_PAIRS, ids=lambda types: f"{types[0]}-{types[1]}")
@settings(max_examples=15, **WITHOUT_LIMITS)
@given(data=st.data())
def test_quantize(types: tuple[DataType, DataType], data: st.DataObject) -> None:
    check_case(data.draw(quantize_cases(types)))


@pytest.mark.parametrize("dtype", INTEGERS)
@settings(max_examples=12, **WITHOUT_LIMITS)
@given(data=st.data())
def test_from_and_to_float(dtype: DataType, data: st.DataObject) -> None:
    check_case(data.draw(quantize_float_cases(dtype)))
    check_case(data.draw(dequantize_cases(dtype)))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("type_", [LayerType.MEAN, LayerType.SUM])
@settings(max_examples=30, **WITHOUT_LIMITS)
@given(data=st.data())
def test_reductions(type_: LayerType, dtype: DataType, data: st.DataObject) -> None:
    check_case(data.draw(reduce_cases(type_, dtype)))


def taken() -> list[Graph]:
    graphs = map(stateless, samples())
    return [graph for graph in graphs if CpuAccSupport().supports(graph, graph.layers[0], TARGET)]


@pytest.mark.parametrize("graph", taken(), ids=lambda graph: graph.name)
def test_samples_of_all_operators_and_types(graph: Graph) -> None:
    check(graph, random_inputs(graph))
