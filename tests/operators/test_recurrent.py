# SPDX-License-Identifier: Apache-2.0
"""Layers with a state and the signal library: numpy against TensorFlow Lite Micro over runs, and C against numpy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from lowered_call import lower, run_lowered, run_overlapping
from numpy.testing import assert_array_equal
from oracle import tflm_sequence

from ferrule.errors import FerruleError, UnsupportedError
from ferrule.formats.tflite.operators import OPERATORS as ROWS
from ferrule.graph import Array, DataType, Graph, LayerType, Quantization, TensorInfo, reset_value
from ferrule.network import Network
from ferrule.network.bounds import initial_bounded, outside, run_bounded
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.operators.operator import OWN_CODE, Operands, keeps_nothing
from ferrule.operators.recurrent.lstm import LstmDescriptor, LstmScaling
from ferrule.operators.signal.frames import SignalFramerDescriptor, SignalStackerDescriptor
from ferrule.operators.signal.spectrum import SignalEnergyDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import layer_case

STATEFUL = [
    type_
    for type_, row in ROWS.items()
    if row.state_inputs or OPERATORS[type_].states is not keeps_nothing or type_.startswith("SIGNAL_")
]
TYPES = [dtype for dtype in DataType if dtype is not DataType.FLOAT16]
RUNS = 5


def valid(graph: Graph) -> bool:
    (layer,) = graph.layers
    operands = Operands.of(graph, layer)
    try:
        OPERATORS[layer.type].check(layer.descriptor, operands)
    except FerruleError:
        return False
    return True


def stateful(graph: Graph) -> Network:
    """Return the graph's layer in a network that keeps the layer's states."""
    (layer,) = graph.layers
    row, count = ROWS[layer.type], len(layer.inputs)
    hidden = len(OPERATORS[layer.type].states(layer.descriptor, Operands.of(graph, layer)))
    positions = row.state_inputs or range(count - hidden, count)
    old = [layer.inputs[position] for position in positions]
    network = Network(graph.name)
    for tensor in graph.tensors:
        info = tensor.info
        if tensor.data is not None:
            network.add_constant(info, tensor.data)
        elif info.name in old:
            network.add_state(info, reset_value(info))
        elif info.name not in layer.outputs:
            network.add_input(info)
    network.add_layer(layer, graph.output_infos(layer))
    count = len(layer.outputs) - len(positions)
    for name, new in zip(old, layer.outputs[count:], strict=True):
        network.set_state(str(name), new)
    network.set_outputs(layer.outputs[:count])
    return network


def assert_same(got: Array, wanted: Bounded, given: Any = ...) -> None:  # noqa: ANN401 an index of any kind
    """Assert that integers are equal, and each float within its bound."""
    wrong = outside(got.reshape(wanted.values.shape), wanted)[given]
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.size} elements differ"


GATE_SEEDS = 2
cases = pytest.mark.parametrize(
    ("type_", "dtype", "seed"),
    [
        pytest.param(
            type_, dtype, seed, id=f"{type_}-{dtype}-{seed}", marks=[pytest.mark.nightly] if seed >= GATE_SEEDS else []
        )
        for type_ in STATEFUL
        for dtype in TYPES
        for seed in range(6)
        if valid(layer_case(type_, dtype, seed))
    ],
)


def test_every_operator_with_a_state_has_cases() -> None:
    assert all(any(valid(layer_case(type_, dtype, 0)) for dtype in TYPES) for type_ in STATEFUL)


@cases
def test_numpy_equals_tflm(type_: LayerType, dtype: DataType, seed: int) -> None:
    network = stateful(layer_case(type_, dtype, seed))
    samples = [defined_inputs(network, run) for run in range(RUNS)]
    state = initial_bounded(network)
    for sample, theirs in zip(samples, tflm_sequence(network, samples), strict=True):
        wanted = run_bounded(network, sample, state)
        defined = where_defined(network, [each.values for each in wanted])
        for index, (got, bounded) in enumerate(zip(theirs, wanted, strict=True)):
            assert_same(got, bounded, ... if index else defined)


def defined_inputs(network: Network, run: int) -> list[Array]:
    """Return random inputs for which TensorFlow Lite Micro's results are defined: shifts are smaller than a word."""
    inputs = random_inputs(network, run)
    if network.layers[0].type is LayerType.SIGNAL_FILTER_BANK_SQUARE_ROOT:
        inputs[1] = inputs[1] % 32
    return inputs


def where_defined(network: Network, outputs: list[Array]) -> slice:
    """Return where TensorFlow Lite Micro writes the first output; elsewhere it leaves the memory as it was."""
    (layer,) = network.layers
    descriptor = layer.descriptor
    if isinstance(descriptor, SignalEnergyDescriptor):
        return slice(descriptor.start_index, descriptor.end_index)
    if isinstance(descriptor, SignalFramerDescriptor | SignalStackerDescriptor):
        return slice(None) if outputs[1] else slice(0)
    return slice(None)


@pytest.mark.cc
@cases
def test_c_equals_numpy(type_: LayerType, dtype: DataType, seed: int) -> None:
    graph = layer_case(type_, dtype, seed)
    inputs = random_inputs(graph, seed)
    for got, wanted in zip(run_lowered(graph, inputs), run_bounded(graph, inputs, arithmetic=OWN_CODE), strict=True):
        assert_same(got, wanted)


@pytest.mark.cc
@cases
def test_new_states_may_replace_the_old_ones(type_: LayerType, dtype: DataType, seed: int) -> None:
    graph = layer_case(type_, dtype, seed)
    inputs = random_inputs(graph, seed)
    wanted = dict(zip(graph.layers[0].outputs, run_bounded(graph, inputs, arithmetic=OWN_CODE), strict=True))
    for overlap in lower(graph).overlaps:
        step = graph.info(overlap.output).dtype.size_bytes
        for shift in (0, step):
            assert_same(run_overlapping(graph, inputs, overlap, shift), wanted[overlap.output])


@pytest.mark.cc
@pytest.mark.parametrize("length", [480, 1024])
def test_transforms_of_floats_are_within_the_documented_bound(length: int) -> None:
    samples = np.random.default_rng(length).normal(0, 100, (2, length)).astype(np.float32)
    for inverse in (False, True):
        network = Network("transform")
        network.add_input(TensorInfo("x", samples.shape, DataType.FLOAT32))
        add = network.add_signal_irfft_layer if inverse else network.add_signal_rfft_layer
        network.set_outputs([add("x", fft_length=length)])
        (wanted,) = network.run([samples])
        for found in (run_lowered(network, [samples])[0], tflm_sequence(network, [[samples]])[0][0]):
            assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max()
        samples = wanted


@pytest.mark.parametrize("scale", [1e-6, 2.5e-6])
def test_factors_of_gates_are_those_of_tflm(scale: float) -> None:
    """Biases at the ties of the first rounding tell factors computed in float64 from those in float32."""
    units = 96
    factor = np.float64(np.float32(scale)) ** 2 * 4096
    ties = [round((step + 0.5) / factor) for step in range(1, 13)]
    bias = np.array([tie + near for tie in ties for near in range(-4, 4)][:units]).clip(-(2**31), 2**31 - 1)
    large = np.full(units, 2**31 - 1, np.int32)
    network = Network("ties")
    network.add_input(TensorInfo("x", (1, 1, 1), DataType.INT8, quantization=Quantization.of(scale)))
    network.set_outputs(
        [
            network.add_lstm_layer(
                "x",
                [np.zeros((units, 1), np.int8)] * 4,
                [np.zeros((units, units), np.int8)] * 4,
                [large, -large, bias.astype(np.int32), large],
                weights_quantizations=[Quantization.of(scale)] * 4,
                recurrent_quantizations=[Quantization.of(scale)] * 4,
                cell_quantization=Quantization.of(2**-15),
                quantization=Quantization.of(2**-15),
            )
        ]
    )
    sample = [np.zeros((1, 1, 1), np.int8)]
    assert_array_equal(network.run(sample)[0], tflm_sequence(network, [sample])[0][0])


def test_what_tflm_lacks_is_refused() -> None:
    graph = layer_case(LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, DataType.INT8, 0)
    (layer,) = graph.layers
    inputs = list(graph.input_infos(layer))
    row = OPERATORS[layer.type]
    with pytest.raises(UnsupportedError, match="input 9 is 'x', expected no peephole"):
        row.infer(layer.descriptor, [*inputs[:9], TensorInfo("x", (1,), DataType.INT8), *inputs[10:]])
    cell = graph.info("cell")
    inputs[19] = replace(cell, quantization=Quantization.of(0.3))
    outputs = graph.output_infos(layer)
    outputs = (*outputs[:2], replace(outputs[2], quantization=Quantization.of(0.3)))
    with pytest.raises(UnsupportedError, match=r"scale 0\.3, expected a power of two"):
        row.check(layer.descriptor, Operands(tuple(inputs), outputs))


def test_the_clip_of_the_cell_is_truncated() -> None:
    graph = layer_case(LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, DataType.INT8, 0)
    (layer,) = graph.layers
    operands = Operands.of(graph, layer)
    scale = graph.info("cell").scale
    for clip, wanted in ((0.0, -1), (2.9 * scale, 2), (1e9, 32767)):
        assert LstmScaling.of(operands, LstmDescriptor(cell_clip=clip)).clip == wanted
