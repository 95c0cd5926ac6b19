# SPDX-License-Identifier: Apache-2.0
"""Each simplification preserves every bit of the outputs and has its intended effect."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from compare import assert_arrays_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracle import edge_inputs

import ferrule
from ferrule.graph import Array, DataType, Graph, GraphEditor, Layer, LayerType, Quantization, Rounding, TensorInfo
from ferrule.network import Network, run_graph
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.movement.transpose import TransposeDescriptor
from ferrule.operators.operator import Operands, Operator
from ferrule.operators.table import OPERATORS, having
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.optimizer.simplify import PASSES, Pass, each_layer, simplify
from ferrule.optimizer.simplify.acceptance import accepts
from ferrule.optimizer.simplify.constants import fold_constants
from ferrule.optimizer.simplify.tables import find_tables
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import layer_case
from ferrule.testing.backends.layers import refusal_of_reference
from ferrule.testing.backends.random_networks import random_network


def assert_same_bits(network: Graph, simpler: Graph) -> None:
    assert simpler.inputs == network.inputs
    assert simpler.outputs == network.outputs
    for inputs in (random_inputs(network, seed=5), *edge_inputs(network).values()):
        assert_arrays_equal(run_graph(network, inputs), run_graph(simpler, inputs))


@settings(max_examples=120)
@given(seed=st.integers(0, 2**32), layers=st.integers(1, 14))
def test_all_passes_keep_the_bits(seed: int, layers: int) -> None:
    network = random_network(seed, layers)
    assert_same_bits(network, simplify(network))


@pytest.mark.parametrize("item", PASSES)
@settings(max_examples=16)
@given(seed=st.integers(0, 2**32))
def test_each_pass_keeps_the_bits(item: Pass, seed: int) -> None:
    network = random_network(seed, 10)
    assert_same_bits(network, item(network))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_all_passes_keep_the_bits_by_every_rule(seed: int) -> None:
    network = with_random_rules(random_network(seed, 10, DataType.INT8), seed)
    assert_same_bits(network, simplify(network))


def with_random_rules(network: Graph, seed: int) -> Graph:
    """Return a network with random rules of rounding, of those that each operator computes."""
    dice, editor = random.Random(seed), GraphEditor(network)
    for layer in network.layers:
        changed = replace(layer, rounding=dice.choice(sorted(OPERATORS[layer.type].rules)))
        if accepts(changed, network.input_infos(layer), network.output_infos(layer)):
            editor.replace_layer(changed)
    return editor.finish()


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_simplifying_twice_changes_nothing(seed: int) -> None:
    once = simplify(random_network(seed, 10))
    assert simplify(once).layers == once.layers


@pytest.mark.parametrize(
    "model",
    [
        "ad01_int8",
        "ad01_fp32",
        "kws_ref_model",
        "pretrainedResnet",
        "pretrainedResnet_quant",
        "vww_96_float",
        "vww_96_int8",
    ],
)
def test_trained_models_keep_their_bits(models: Path, model: str) -> None:
    network = ferrule.load(models / f"{model}.tflite")
    assert_same_bits(network, simplify(network))


def image(network: Network, name: str = "x", shape: tuple[int, ...] = (1, 4, 4, 2)) -> str:
    return network.add_input(TensorInfo(name, shape, DataType.INT8, quantization=Quantization.of(0.1, -3)))


def types(graph: Graph) -> list[LayerType]:
    return [layer.type for layer in graph.layers]


def assert_becomes(network: Network, expected: list[LayerType]) -> Graph:
    """Check the types of a network's layers after simplification, and its bits; return the simplified graph."""
    simpler = simplify(network)
    assert types(simpler) == expected
    assert_same_bits(network, simpler)
    return simpler


def conv(network: Network, source: str, **options: object) -> str:
    channels = network.info(source).shape[-1]
    weights = np.arange(2 * 9 * channels, dtype=np.int8).reshape(2, 3, 3, channels)
    return network.add_conv2d_layer(
        source, weights, weights_quantization=Quantization.of(0.02), quantization=Quantization.of(0.3, 5), **options
    )


def test_an_activation_joins_the_convolution() -> None:
    network = Network("n")
    network.set_outputs([network.add_relu_layer(conv(network, image(network)), name="y")])
    descriptor = assert_becomes(network, [LayerType.CONV_2D]).layers[0].descriptor
    assert isinstance(descriptor, Conv2dDescriptor)
    assert descriptor.activation is Activation.RELU


def test_an_activation_joins_the_transposed_convolution() -> None:
    network = Network("n")
    source = image(network)
    weights = np.arange(18 * network.info(source).shape[-1], dtype=np.int8).reshape(2, 3, 3, -1)
    quantized = Quantization.of(0.3, 5)
    output = network.add_transpose_conv_layer(
        source, weights, size=(11, 11), weights_quantization=Quantization.of(0.02), quantization=quantized
    )
    network.set_outputs([network.add_relu6_layer(output)])
    assert_becomes(network, [LayerType.TRANSPOSE_CONV])


def test_an_activation_that_rescales_stays() -> None:
    network = Network("n")
    convolved = conv(network, image(network))
    network.set_outputs([network.add_relu_layer(convolved, quantization=Quantization.of(0.2, -128))])
    assert_becomes(network, [LayerType.CONV_2D, LayerType.RELU])


def test_an_activation_stays_where_others_read_the_convolution_too() -> None:
    network = Network("n")
    convolved = conv(network, image(network))
    network.set_outputs([network.add_relu_layer(convolved), convolved])
    assert_becomes(network, [LayerType.CONV_2D, LayerType.RELU])


def test_a_pad_joins_the_convolution() -> None:
    network = Network("n")
    padded = network.add_pad_layer(image(network), [(0, 0), (1, 2), (0, 1), (0, 0)])
    network.set_outputs([conv(network, padded)])
    descriptor = assert_becomes(network, [LayerType.CONV_2D]).layers[0].descriptor
    assert isinstance(descriptor, Conv2dDescriptor)
    assert descriptor.padding == Padding(top=1, bottom=2, left=0, right=1)


def test_a_pad_of_channels_stays() -> None:
    network = Network("n")
    padded = network.add_pad_layer(image(network), [(0, 0), (1, 1), (1, 1), (0, 1)])
    network.set_outputs([conv(network, padded)])
    assert LayerType.PAD in types(simplify(network))


def test_a_pad_before_a_pool_stays() -> None:
    network = Network("n")
    padded = network.add_pad_layer(image(network), [(0, 0), (1, 1), (1, 1), (0, 0)])
    network.set_outputs([network.add_max_pool2d_layer(padded, (2, 2))])
    assert_becomes(network, [LayerType.PAD, LayerType.MAX_POOL_2D])


def test_inverse_transposes_vanish() -> None:
    network = Network("n")
    turned = network.add_transpose_layer(image(network), (0, 3, 1, 2))
    back = network.add_transpose_layer(turned, (0, 2, 3, 1))
    network.set_outputs([conv(network, back)])
    assert_becomes(network, [LayerType.CONV_2D])


def test_a_chain_of_views_becomes_one() -> None:
    network = Network("n")
    flat = network.add_reshape_layer(image(network), (1, 32))
    network.set_outputs([network.add_reshape_layer(network.add_expand_dims_layer(flat, 0), (2, 16), name="y")])
    assert_becomes(network, [LayerType.RESHAPE])


def test_transposes_join_across_elementwise_layers() -> None:
    network = Network("n")
    x, z = image(network), image(network, "z")
    turned, other = (network.add_transpose_layer(each, (0, 3, 1, 2)) for each in (x, z))
    total = network.add_add_layer(network.add_relu_layer(turned), other, quantization=Quantization.of(0.2, 1))
    column = np.arange(2, dtype=np.int8).reshape(2, 1, 1)
    scales = network.add_constant_array("scales", column, Quantization.of(0.5, 1))
    product = network.add_mul_layer(total, scales, quantization=Quantization.of(0.1, 2))
    network.set_outputs([conv(network, network.add_transpose_layer(product, (0, 2, 3, 1)))])
    assert_becomes(network, [LayerType.RELU, LayerType.ADD, LayerType.MUL, LayerType.CONV_2D])


@pytest.mark.parametrize("type_", sorted(having(elementwise=True)))
def test_transposes_join_across_every_elementwise_layer(type_: LayerType) -> None:
    """Each type of layer computes in the order of its inputs, and the transposes on both sides vanish."""
    cases = (layer_case(type_, dtype, seed) for dtype in DataType for seed in range(3))
    case = next(each for each in cases if is_accepted(each))
    (layer,) = case.layers
    turned, back = TransposeDescriptor(permutation=(0, 3, 1, 2)), TransposeDescriptor(permutation=(0, 2, 3, 1))
    network = Network("joined")
    for info in case.inputs:
        network.add_input(replace(info, shape=(1, 3, 4, 2)))
        moved = replace(info, name=f"{info.name}_moved", shape=(1, 2, 3, 4))
        network.add_layer(move(info.name, moved.name, turned), [moved])
    inputs = tuple(f"{name}_moved" for name in layer.present_inputs)
    (info,) = case.output_infos(layer)
    network.add_layer(replace(layer, inputs=inputs), [replace(info, shape=(1, 2, 3, 4))])
    network.add_layer(move(info.name, "result", back), [replace(info, name="result", shape=(1, 3, 4, 2))])
    network.set_outputs(["result"])
    assert_becomes(network, [type_])


def is_accepted(case: Graph) -> bool:
    """Return whether the layer's operator accepts it, and all of its inputs are computed."""
    (layer,) = case.layers
    computed = len(case.inputs) == len(layer.inputs)
    return computed and accepts(layer, case.input_infos(layer), case.output_infos(layer))


def move(source: str, target: str, descriptor: TransposeDescriptor) -> Layer:
    """Return a transpose."""
    return Layer(f"move_{source}", LayerType.TRANSPOSE, descriptor, inputs=(source,), outputs=(target,))


def test_reshapes_join_across_elementwise_layers() -> None:
    network = Network("n")
    flat = network.add_reshape_layer(image(network), (1, 32))
    half = network.add_constant_array("half", np.array([5], np.int8), Quantization.of(0.1))
    product = network.add_mul_layer(network.add_logistic_layer(flat), half, quantization=Quantization.of(0.1, 2))
    network.set_outputs([conv(network, network.add_reshape_layer(product, (1, 4, 4, 2)))])
    assert_becomes(network, [LayerType.LOGISTIC, LayerType.MUL, LayerType.CONV_2D])


@pytest.mark.parametrize("second", [(0, 3, 1, 2), (0, 1, 3, 2)])
def test_transposes_that_differ_stay(second: tuple[int, ...]) -> None:
    network = Network("n")
    one = network.add_transpose_layer(image(network, shape=(1, 4, 4, 4)), (0, 3, 1, 2))
    other = network.add_transpose_layer(image(network, "z", shape=(1, 4, 4, 4)), second)
    total = network.add_add_layer(one, other, quantization=Quantization.of(0.2, 1))
    back = network.add_transpose_layer(total, (0, 2, 3, 1))
    network.set_outputs([back, network.add_relu_layer(total)] if second == (0, 3, 1, 2) else [back])
    simpler = simplify(network)
    assert types(simpler).count(LayerType.TRANSPOSE) == 3
    assert_same_bits(network, simpler)


def test_clamp_within_the_limits_of_the_next_goes() -> None:
    network = Network("n")
    network.set_outputs([network.add_relu_layer(network.add_relu6_layer(network.add_relu_layer(image(network))))])
    assert_becomes(network, [LayerType.RELU, LayerType.RELU6])


def floats(network: Network) -> str:
    return network.add_input(TensorInfo("x", (1, 4, 4, 2), DataType.FLOAT32))


def keras_prelu(
    network: Network, source: str, mirrored: str, factors: list[float], mirror: LayerType = LayerType.NEG
) -> str:
    negated = network.add_elementwise_unary_layer(mirror, mirrored)
    constant = network.add_constant_array("factors", np.float32(factors))
    product = network.add_mul_layer(network.add_relu_layer(negated), constant)
    return network.add_add_layer(network.add_relu_layer(source), product)


def test_prelu_of_keras_is_found() -> None:
    network = Network("n")
    x = floats(network)
    network.set_outputs([keras_prelu(network, x, x, [-0.25, 3.0])])
    assert_becomes(network, [LayerType.PRELU])


@pytest.mark.parametrize(
    ("factors", "is_mirrored", "mirror"),
    [
        ([-0.25, 3.0], False, LayerType.NEG),
        ([np.inf, 1.0], True, LayerType.NEG),
        ([-0.25, 3.0], True, LayerType.FLOOR),
    ],
)
def test_other_sums_of_rectified_tensors_stay(factors: list[float], is_mirrored: bool, mirror: LayerType) -> None:
    network = Network("n")
    x = floats(network)
    mirrored = x if is_mirrored else network.add_elementwise_unary_layer(LayerType.FLOOR, x)
    network.set_outputs([keras_prelu(network, x, mirrored, factors, mirror)])
    assert LayerType.PRELU not in types(simplify(network))


def test_a_transpose_of_unit_axes_becomes_a_reshape() -> None:
    network = Network("n")
    network.set_outputs([network.add_transpose_layer(image(network), (1, 0, 2, 3))])
    assert_becomes(network, [LayerType.RESHAPE])


def test_a_bias_without_effect_cannot_overflow() -> None:
    network = Network("dead channel")
    quantization = Quantization(scales=(0.5,), zero_points=(3,))
    network.add_input(TensorInfo("x", (1, 2), DataType.INT8, quantization=quantization))
    output = network.add_fully_connected_layer(
        "x",
        weights=np.array([[127, -127], [127, -127]], np.int8),
        bias=np.array([-(2**31) + 1, 2**30], np.int32),
        weights_quantization=Quantization(scales=(1e-22, 1e-9), zero_points=(0, 0), axis=0),
        quantization=quantization,
    )
    network.set_outputs([output])
    network.validate()
    simpler = simplify(network)
    (layer,) = simpler.layers
    assert layer.inputs[2] is not None
    data = simpler.tensor(layer.inputs[2]).data
    assert data is not None
    assert data.tolist() == [0, 2**30]
    assert_same_bits(network, simpler)


WHOLE = Quantization.of(1.0)


def ruled(network: Network, rules: Mapping[str, Rounding]) -> Graph:
    """Return a network in which some layers have other rules."""
    editor = GraphEditor(network)
    for name, rule in rules.items():
        editor.replace_layer(replace(editor.layer(name), rounding=rule))
    return editor.finish()


@pytest.mark.parametrize(
    ("rule", "cleared"), [(Rounding.TFLM, False), (Rounding.SINGLE, True), (Rounding.ONNX, True)], ids=str
)
def test_a_bias_has_no_effect_by_the_rule_of_its_layer(rule: Rounding, cleared: bool) -> None:
    """The largest sum times 2**-32 is a half, which two roundings make 1, and one rounding 0."""
    network = Network("dead channel")
    x = network.add_input(TensorInfo("x", (1, 2), DataType.INT8, quantization=WHOLE))
    network.add_fully_connected_layer(
        x,
        weights=np.array([[127, -127]], np.int8),
        bias=np.zeros(1, np.int32),
        weights_quantization=Quantization.of(2.0**-32),
        quantization=WHOLE,
        name="y",
    )
    network.set_outputs(["y"])
    given = ruled(network, {"y": rule})
    bias = given.tensor(str(given.layers[0].inputs[2]))
    editor = GraphEditor(given)
    editor.set_tensor(replace(bias, data=np.array([-(2**31) + 1], np.int32)))
    given = editor.finish()
    assert (refusal_of_reference(given) == "") is cleared
    simpler = simplify(given)
    data = simpler.tensor(str(simpler.layers[0].inputs[2])).data
    assert data is not None
    assert data.tolist() == [0 if cleared else -(2**31) + 1]
    assert_same_bits(given, simpler)


def test_layers_that_round_by_other_rules_are_no_twins() -> None:
    network = Network("n")
    x = network.add_input(TensorInfo("x", (1, 2), DataType.INT8, quantization=WHOLE))
    for name in ("first", "second", "third"):
        network.add_mul_layer(x, x, quantization=Quantization.of(2.0), name=name)
    network.set_outputs([network.add_concatenation_layer(["first", "second", "third"], axis=1)])
    given = ruled(network, {"second": Rounding.ONNX, "third": Rounding.ONNX})
    simpler = simplify(given)
    assert types(simpler) == [LayerType.MUL, LayerType.MUL, LayerType.CONCATENATION]
    assert [layer.rounding for layer in simpler.layers[:2]] == [Rounding.TFLM, Rounding.ONNX]
    assert_same_bits(given, simpler)


@pytest.mark.parametrize(("rule", "half"), [(Rounding.TFLM, 1), (Rounding.ONNX, 0)], ids=str)
def test_constants_are_computed_by_the_rule_of_their_layer(rule: Rounding, half: int) -> None:
    network = Network("n")
    one = network.add_constant_array("one", np.ones((1, 2), np.int8), WHOLE)
    x = network.add_input(TensorInfo("x", (1, 2), DataType.INT8, quantization=Quantization.of(2.0)))
    network.add_mul_layer(one, one, quantization=Quantization.of(2.0), name="half")
    network.set_outputs([network.add_maximum_layer(x, "half")])
    simpler = simplify(ruled(network, {"half": rule}))
    assert types(simpler) == [LayerType.MAXIMUM]
    data = simpler.tensor(str(simpler.layers[0].inputs[1])).data
    assert data is not None
    assert data.tolist() == [[half, half]]


@pytest.mark.parametrize(("scale", "goes"), [(0.5, True), (3e38, False)])
def test_a_quantize_by_the_onnx_rule_goes_if_it_changes_nothing(scale: float, goes: bool) -> None:
    """With the larger scale, the real values of most stored ones are infinite."""
    network = Network("n")
    quantization = Quantization.of(scale, -3)
    for name in ("x", "y"):
        network.add_input(TensorInfo(name, (1, 256), DataType.INT8, quantization=quantization))
    network.add_quantize_layer("x", DataType.INT8, quantization, name="same")
    network.set_outputs([network.add_maximum_layer("y", "same")])
    given = ruled(network, {"same": Rounding.ONNX})
    simpler = simplify(given)
    assert types(simpler) == ([] if goes else [LayerType.QUANTIZE]) + [LayerType.MAXIMUM]
    every = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
    lowest = np.full_like(every, -128)
    assert_array_equal(run_graph(given, [every, lowest]), run_graph(simpler, [every, lowest]))


def test_a_clamp_by_another_rule_is_fused_only_if_its_limits_are_those_of_the_activation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With scale 12, the limit 6 is half a step, which the activation rounds to 1, and halves to even to 0."""

    def to_even(_: object, operands: Operands, arrays: Sequence[Array | None]) -> list[Array]:
        return [np.clip(np.asarray(arrays[0]), 0, round(6 / operands.output.scale))]

    rules = frozenset(Rounding)
    row = replace(OPERATORS[LayerType.RELU6], rules=rules, kernel=to_even)
    monkeypatch.setitem(cast(dict[LayerType, Operator], OPERATORS), LayerType.RELU6, row)
    for scale, fused in ((12.0, False), (10.0, True)):
        network = Network("n")
        x, y = (network.add_input(TensorInfo(name, (1, 256), DataType.INT8, quantization=WHOLE)) for name in ("x", "y"))
        product = network.add_mul_layer(x, y, quantization=Quantization.of(scale))
        network.set_outputs([network.add_relu6_layer(product, name="clamp")])
        given = ruled(network, {"clamp": Rounding.ONNX})
        simpler = simplify(given)
        assert types(simpler) == [LayerType.MUL] + ([] if fused else [LayerType.RELU6])
        assert_same_bits(given, simpler)


def test_a_constant_without_axes_stays_one() -> None:
    network = Network("scalar")
    number = network.add_constant_array("number", np.array(-2, np.float32))
    size = network.add_elementwise_unary_layer(LayerType.ABS, number)
    network.set_outputs([network.add_add_layer(network.add_input(TensorInfo("x", (3,), DataType.FLOAT32)), size)])
    simpler = simplify(network)
    assert [layer.type for layer in simpler.layers] == [LayerType.ADD]
    assert_same_bits(network, simpler)


def test_constants_are_computed() -> None:
    network = Network("n")
    x = image(network)
    fixed = network.add_constant_array("fixed", np.ones((1, 4, 4, 2), np.int8), Quantization.of(0.1, -3))
    doubled = network.add_add_layer(fixed, fixed, quantization=Quantization.of(0.1, -3))
    network.set_outputs([network.add_add_layer(x, doubled, quantization=Quantization.of(0.2))])
    assert_becomes(network, [LayerType.ADD])


@pytest.mark.parametrize(("growth", "folds"), [(2.0, True), (1.99, False), (4.0, True)])
def test_constants_grow_so_far_and_no_further(growth: float, folds: bool) -> None:
    network = Network("n")
    quantization = Quantization.of(0.1, -3)
    column = network.add_constant_array("column", np.ones((1, 4, 1, 1), np.int8), quantization)
    row = network.add_constant_array("row", np.ones((1, 1, 4, 1), np.int8), quantization)
    grown = network.add_add_layer(column, row, quantization=quantization)  # 16 bytes computed from 8
    data = network.add_input(TensorInfo("data", (1, 4, 4, 1), DataType.INT8, quantization=quantization))
    network.set_outputs([network.add_add_layer(data, grown, quantization=quantization)])
    folded = each_layer(partial(fold_constants, growth=growth))(network)
    assert types(folded) == [LayerType.ADD] * (1 if folds else 2)
    assert_same_bits(network, folded)


def test_twins_are_merged_and_dead_layers_removed() -> None:
    network = Network("n")
    x = image(network)
    one, other = network.add_logistic_layer(x), network.add_logistic_layer(x)
    network.add_tanh_layer(x)
    network.set_outputs([network.add_add_layer(one, other, quantization=Quantization.of(0.01, -128))])
    assert_becomes(network, [LayerType.LOGISTIC, LayerType.ADD])


def test_an_output_keeps_its_name_when_its_layer_vanishes() -> None:
    network = Network("n")
    convolved = conv(network, image(network))
    network.set_outputs([network.add_reshape_layer(convolved, network.info(convolved).shape, name="result")])
    simpler = simplify(network)
    assert types(simpler) == [LayerType.CONV_2D]
    assert simpler.outputs[0].name == "result"


QUARTER, HALF = Quantization.of(0.25, 3), Quantization.of(0.5, -100)


def swish(network: Network, source: str, factor: float | Array = 1.702) -> str:
    """Return x * sigmoid(factor * x), as which QuickGelu comes from ONNX."""
    scaled = network.add_mul_layer(source, network.add_constant_array("factor", np.float32(factor)))
    return network.add_mul_layer(source, network.add_logistic_layer(scaled))


def test_floats_between_integers_become_a_table() -> None:
    network = Network("n")
    x = network.add_input(TensorInfo("x", (1, 16, 16, 2), DataType.INT8, quantization=QUARTER))
    result = swish(network, network.add_dequantize_layer(x))
    network.set_outputs([network.add_quantize_layer(result, DataType.INT8, HALF)])
    assert_becomes(network, [LayerType.LOOKUP])


def test_a_table_leaves_the_floats_that_another_layer_reads() -> None:
    network = Network("n")
    x = network.add_input(TensorInfo("x", (3, 5), DataType.INT8, quantization=QUARTER))
    result = swish(network, network.add_dequantize_layer(x))
    network.set_outputs([network.add_quantize_layer(result, DataType.INT8, HALF), result])
    found = assert_becomes(
        network, [LayerType.DEQUANTIZE, LayerType.MUL, LayerType.LOGISTIC, LayerType.MUL, LayerType.LOOKUP]
    )
    assert found.layers[-1].inputs == ("x",)


@pytest.mark.parametrize("case", ["two tensors", "a factor per column", "int16", "a sum", "nothing", "a row"])
def test_other_floats_between_integers_stay(case: str) -> None:
    network = Network("n")
    wide = DataType.INT16 if case == "int16" else DataType.INT8
    x, y = (
        network.add_input(TensorInfo(name, shape, wide, quantization=Quantization.of(0.25, 0)))
        for name, shape in (("x", (4, 5)), ("y", (1, 5) if case == "a row" else (4, 5)))
    )
    first, second = network.add_dequantize_layer(x), network.add_dequantize_layer(y)
    match case:
        case "two tensors" | "a row":
            result = network.add_mul_layer(swish(network, first), second)
        case "a factor per column":
            result = swish(network, first, np.ones((1, 5)))
        case "a sum":
            result = network.add_mean_layer(swish(network, first), (1,), keep_dims=True)
        case "nothing":
            result = first
        case _:
            result = swish(network, first)
    quantization = Quantization.of(0.25, 0) if case == "int16" else HALF
    network.set_outputs([network.add_quantize_layer(result, wide, quantization), second])
    assert LayerType.LOOKUP not in types(simplify(network))


def gelu_of_bytes(network: Network, source: str) -> str:
    """Return a GELU as it is quantised: only its function is in float32, and what follows is int8."""
    real = network.add_tanh_layer(network.add_dequantize_layer(source))
    erf = network.add_quantize_layer(real, DataType.INT8, Quantization.of(1 / 128), name="erf")
    above = network.add_add_layer(
        erf, byte(network, "one", 1 / 64, 64), quantization=Quantization.of(1 / 64, -128), name="above"
    )
    product = network.add_mul_layer(source, above, quantization=Quantization.of(0.4, -100), name="product")
    return network.add_mul_layer(product, byte(network, "half", 0.005, 100), quantization=HALF, name="y")


def byte(network: Network, name: str, scale: float, value: int) -> str:
    return network.add_constant_array(name, np.full((1, 1), value, np.int8), quantization=Quantization.of(scale))


@pytest.mark.parametrize("onnx", [False, True])
@pytest.mark.parametrize("length", [5, 1])
def test_integers_behind_a_table_become_part_of_it(onnx: bool, length: int) -> None:
    network = Network("n")
    x, z = (network.add_input(TensorInfo(name, (2, length), DataType.INT8, quantization=QUARTER)) for name in "xz")
    total = network.add_add_layer(x, z, quantization=QUARTER, name="total")
    network.set_outputs([gelu_of_bytes(network, total)])
    given = ruled(network, dict.fromkeys(("erf", "above", "product", "y"), Rounding.ONNX)) if onnx else network
    simpler = simplify(given)
    assert types(simpler) == [LayerType.ADD, LayerType.LOOKUP]
    assert simpler.layers[1].inputs == ("total",)
    assert_same_bits(given, simpler)


def test_integers_become_a_table_by_another_rule_than_that_of_accelerators() -> None:
    network = Network("n")
    x = network.add_input(TensorInfo("x", (1, 256), DataType.INT8, quantization=QUARTER))
    share = network.add_logistic_layer(x, name="share")
    network.set_outputs([network.add_mul_layer(x, share, quantization=HALF, name="y")])
    assert_becomes(network, [LayerType.LOGISTIC, LayerType.MUL])
    for rules in ({"share": Rounding.ONNX}, {"y": Rounding.ONNX_UINT8}, {"share": Rounding.ONNX, "y": Rounding.ONNX}):
        given = ruled(network, rules)
        simpler = simplify(given)
        assert types(simpler) == [LayerType.LOOKUP]
        assert_same_bits(given, simpler)


@pytest.mark.parametrize(("last", "expected"), [("MUL", LayerType.LOOKUP), ("RELU", LayerType.RELU)])
def test_integers_that_another_layer_reads_stay(last: str, expected: LayerType) -> None:
    """A table saves a layer that rounds; one that is not slower than a table stays."""
    network = Network("n")
    x = network.add_input(TensorInfo("x", (1, 256), DataType.INT8, quantization=QUARTER))
    first = network.add_quantize_layer(x, DataType.INT8, HALF, name="first")
    if last == "MUL":
        y = network.add_mul_layer(first, first, quantization=WHOLE, name="y")
    else:
        y = network.add_relu_layer(first, name="y")
    network.set_outputs([first, y])
    rounded = {"first": Rounding.ONNX} | ({"y": Rounding.ONNX} if last == "MUL" else {})
    given = ruled(network, rounded)
    simpler = simplify(given)
    assert types(simpler) == [LayerType.QUANTIZE, expected]
    assert_same_bits(given, simpler)


@pytest.mark.parametrize("case", ["two tensors", "a row", "a factor per column"])
def test_other_integers_stay(case: str) -> None:
    network = Network("n")
    x = network.add_input(TensorInfo("x", (4, 5), DataType.INT8, quantization=QUARTER))
    shape = (1, 5) if case == "a row" else (4, 5)
    other = network.add_input(TensorInfo("other", shape, DataType.INT8, quantization=QUARTER))
    if case == "a factor per column":
        data = np.arange(5, dtype=np.int8).reshape(1, 5)
        other = network.add_constant_array("factor", data, quantization=QUARTER)
    product = network.add_mul_layer(x, other, quantization=HALF, name="product")
    network.set_outputs([network.add_logistic_layer(product, name="y")])
    given = ruled(network, {"product": Rounding.ONNX, "y": Rounding.ONNX})
    assert types(simplify(given)) == types(given)


def test_a_long_chain_of_floats_stays() -> None:
    network = Network("n")
    x = network.add_input(TensorInfo("x", (3,), DataType.FLOAT32))
    for _ in range(600):
        x = network.add_tanh_layer(x)
    network.set_outputs([network.add_quantize_layer(x, DataType.INT8, HALF)])
    assert types(each_layer(find_tables)(network)) == types(network)
