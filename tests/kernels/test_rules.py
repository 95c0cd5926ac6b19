# SPDX-License-Identifier: Apache-2.0
"""Weighted layers of the rules with one rounding: each kernel's plain C on the host, its assembler on boards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ckernels import NativeNetwork
from layer_case import layer_network
from lowered_call import lower, run_lowered
from merged import merged
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule.backends.target import CoreFeatures, Goal
from ferrule.graph import DataType, Descriptor, GraphEditor, LayerType, Quantization, Rounding, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor
from ferrule.testing.backends.comparison import random_inputs

RULES = (Rounding.SINGLE, Rounding.ONNX)
SAME = Padding(top=1, bottom=1, left=1, right=1)
ORDINARY = 0.0137
"""A scale of weights with which no result lies halfway between stored values."""
HALVES = 2.0**-6
"""One with which many results do."""
RELU6 = Activation.RELU6
"""With the output's zero point -100 and its scale, it clamps within int8."""


def layer(
    type_: LayerType,
    image: Shape,
    weights: Shape,
    descriptor: Descriptor,
    scale: float = HALVES,
    *,
    weights_zero_point: int = 0,
    factor: float = 2.0**-5,
    dead: int = 0,
    mixed: bool = False,
) -> Network:
    """Return a layer of the rule SINGLE; the output's scale is such that sums are multiplied by about `factor`.

    With `mixed`, every eighth channel has the scale HALVES.
    """
    random = np.random.default_rng(sum(image) + sum(weights))
    channels = weights[3] if type_ is LayerType.DEPTHWISE_CONV_2D else weights[0]
    quantization = Quantization.of(scale, weights_zero_point)
    if mixed:
        scales = tuple(HALVES if index % 8 == 1 else scale for index in range(channels))
        axis = 3 if type_ is LayerType.DEPTHWISE_CONV_2D else 0
        quantization = Quantization(scales=scales, zero_points=(0,) * channels, axis=axis)
    infos = [
        TensorInfo("data", image, DataType.INT8, quantization=Quantization.of(2.0**-5, 5)),
        TensorInfo("weights", weights, DataType.INT8, quantization=quantization),
        TensorInfo("bias", (channels,), DataType.INT32, quantization=Quantization.of(scale / 32)),
    ]
    bias = np.where(np.arange(channels) < channels - dead, random.integers(-300, 300, channels), -(2**29))
    constants = {1: random.integers(-12, 13, weights, np.int8), 2: bias.astype(np.int32)}
    output = Quantization.of(2.0**-5 * HALVES / factor, -100)
    return layer_network(type_, descriptor, infos, output, constants, rounding=Rounding.SINGLE)


def product(rows: int, depth: int, scale: float = 2.0) -> Network:
    """Return a BATCH_MATMUL of two inputs with as many columns as rows; `scale` is the output's."""
    infos = [
        TensorInfo(name, shape, DataType.INT8, quantization=Quantization.of(2.0**-4, 3))
        for name, shape in (("left", (2, rows, depth)), ("right", (2, depth, rows)))
    ]
    output = Quantization.of(scale, -7)
    return layer_network(LayerType.BATCH_MATMUL, BatchMatmulDescriptor(), infos, output, rounding=Rounding.SINGLE)


CONV, DEPTHWISE, FC = LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D, LayerType.FULLY_CONNECTED
CONV_1X1, CONV_3X3 = Conv2dDescriptor(), Conv2dDescriptor(padding=SAME)
SIX_1X1, SIX_3X3 = Conv2dDescriptor(activation=RELU6), Conv2dDescriptor(padding=SAME, activation=RELU6)
BY_1, BY_2 = DepthwiseConv2dDescriptor(padding=SAME), DepthwiseConv2dDescriptor(stride_h=2, stride_w=2, padding=SAME)
SIX_BY_1 = DepthwiseConv2dDescriptor(padding=SAME, activation=RELU6)
TAPS = DepthwiseConv2dDescriptor(padding=Padding(top=2, bottom=2, left=2, right=2))
UP = TransposeConvDescriptor(output_h=6, output_w=8, stride_h=2, stride_w=2)
DENSE, SIX_DENSE = FullyConnectedDescriptor(), FullyConnectedDescriptor(activation=RELU6)

# Kernels are those of a Cortex-M4, by the rules SINGLE and ONNX if they differ; "RULE" stands for "single" or "onnx".
CASES: dict[str, tuple[Network, str]] = {
    "proved 3x3": (layer(CONV, (1, 5, 5, 3), (4, 3, 3, 3), CONV_3X3, ORDINARY), "conv2d_block_s8"),
    "proved 1x1": (layer(CONV, (1, 3, 3, 8), (6, 1, 1, 8), CONV_1X1, ORDINARY), "conv2d_1x1_block_s8"),
    "proved depthwise": (layer(DEPTHWISE, (1, 5, 6, 4), (1, 3, 3, 4), BY_1, ORDINARY), "depthwise_conv2d_3x3_by1_s8"),
    "proved by 2": (layer(DEPTHWISE, (1, 9, 9, 8), (1, 3, 3, 8), BY_2, ORDINARY), "depthwise_conv2d_3x3_by2_s8"),
    "proved rows": (layer(FC, (1, 24), (9, 24), DENSE, ORDINARY), "fully_connected_block_s8"),
    "mixed 1x1": (
        layer(CONV, (1, 4, 4, 16), (32, 1, 1, 16), CONV_1X1, ORDINARY, mixed=True, dead=2),
        "conv2d_1x1_block_s8 | conv2d_1x1_block_s8 and conv2d_1x1_paired_onnx_s8",
    ),
    "mixed depthwise": (
        layer(DEPTHWISE, (1, 7, 7, 16), (1, 3, 3, 16), BY_1, ORDINARY, mixed=True, dead=1),
        "depthwise_conv2d_3x3_by1_s8 | depthwise_conv2d_3x3_by1_s8 and depthwise_conv2d_pairs_s8",
    ),
    "clamped 3x3": (layer(CONV, (1, 5, 5, 3), (5, 3, 3, 3), SIX_3X3), "conv2d_paired_RULE_s8"),
    "clamped 1x1": (layer(CONV, (1, 3, 3, 8), (6, 1, 1, 8), SIX_1X1, dead=2), "conv2d_1x1_paired_RULE_s8"),
    "clamped depthwise": (
        layer(DEPTHWISE, (1, 12, 16, 8), (1, 3, 3, 8), SIX_BY_1, factor=2.0**-4),
        "depthwise_conv2d_pairs_s8",
    ),
    "clamped rows": (layer(FC, (1, 19), (60, 19), SIX_DENSE), "fully_connected_paired_RULE_s8"),
    "5x5": (layer(DEPTHWISE, (1, 9, 11, 6), (1, 5, 5, 6), TAPS), "depthwise_conv2d_pairs_s8"),
    "proved taps": (
        layer(DEPTHWISE, (1, 5, 5, 24), (1, 5, 5, 24), DepthwiseConv2dDescriptor(), ORDINARY),
        "depthwise_conv2d_taps_proved_s8",
    ),
    "taps": (
        layer(DEPTHWISE, (1, 5, 5, 60), (1, 5, 5, 60), DepthwiseConv2dDescriptor(activation=RELU6), factor=2.0**-4),
        "depthwise_conv2d_taps_RULE_s8",
    ),
    "scaled up": (layer(CONV, (1, 2, 3, 2), (3, 1, 1, 2), CONV_1X1, factor=0.5), "conv2d_RULE_s8"),
    "depth": (
        layer(DEPTHWISE, (1, 3, 3, 2), (1, 2, 2, 4), DepthwiseConv2dDescriptor(depth_multiplier=2)),
        "conv2d_block_s8 | conv2d_quad_RULE_s8",
    ),
    "groups": (layer(CONV, (1, 3, 3, 4), (4, 2, 2, 2), CONV_1X1), "conv2d_block_s8 | conv2d_quad_RULE_s8"),
    "groups that are scaled up": (
        layer(CONV, (1, 3, 3, 4), (4, 2, 2, 2), CONV_1X1, factor=0.5),
        "conv2d_RULE_s8",
    ),
    "offset": (
        layer(CONV, (1, 3, 3, 3), (5, 2, 2, 3), CONV_1X1, weights_zero_point=4),
        "conv2d_RULE_s8",
    ),
    "offset depthwise": (
        layer(DEPTHWISE, (1, 5, 4, 5), (1, 3, 3, 5), BY_1, weights_zero_point=-3),
        "depthwise_conv2d_RULE_s8",
    ),
    "transposed": (
        layer(LayerType.TRANSPOSE_CONV, (1, 3, 4, 3), (4, 3, 3, 3), UP),
        "conv2d_block_s8 | conv2d_quad_RULE_s8",
    ),
    "transposed and scaled up": (
        layer(LayerType.TRANSPOSE_CONV, (1, 3, 4, 3), (4, 3, 3, 3), UP, factor=0.5),
        "transpose_conv_RULE_s8",
    ),
    "products": (product(9, 13), "batch_matmul_block_s8"),
    "products scaled up": (product(20, 1, 2.0**-8 / 0.75), "batch_matmul_RULE_s8"),
}
OTHER_CORES = {
    "cortex-m3": {"conv2d_quad_RULE_s8", "fully_connected_octet_RULE_s8", "depthwise_conv2d_words_s8"},
    "cortex-m0plus": {"conv2d_duo_RULE_s8", "fully_connected_octet_RULE_s8", "depthwise_conv2d_words_s8"},
}


def ruled(rule: Rounding) -> list[Network]:
    """Return the networks of `CASES` with another rule."""
    found = []
    for network, _ in CASES.values():
        editor = GraphEditor(network)
        for one in network.layers:
            editor.replace_layer(replace(one, rounding=rule))
        found.append(merged([editor.finish()]))
    return found


BOTH = merged([network for rule in RULES for network in ruled(rule)])
NAMES = [f"{case}, {rule}" for rule in RULES for case in CASES]


def test_each_kernel_of_a_core_with_the_dsp_extension_has_a_case() -> None:
    for rule in RULES:
        kernels = [lower(network, goal=Goal.SPEED).kernel for network in ruled(rule)]
        assert dict(zip(CASES, kernels, strict=True)) == {
            case: kernel.split(" | ")[-1 if rule is Rounding.ONNX else 0].replace("RULE", rule)
            for case, (_, kernel) in CASES.items()
        }


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("proved")])
def test_the_rules_differ_in_these_layers(case: str) -> None:
    which = list(CASES).index(case)
    single, onnx, tflm = (ruled(rule)[which] for rule in (*RULES, Rounding.TFLM))
    draws = [random_inputs(single, seed) for seed in range(8)]
    assert any(not np.array_equal(single.run(inputs)[0], onnx.run(inputs)[0]) for inputs in draws)
    assert any(not np.array_equal(onnx.run(inputs)[0], tflm.run(inputs)[0]) for inputs in draws)


@pytest.mark.cc
@pytest.mark.parametrize(
    "core",
    [
        "cortex-m0plus",
        pytest.param("cortex-m3", marks=pytest.mark.nightly),
        pytest.param("cortex-m4", marks=pytest.mark.nightly),
    ],
)
def test_the_plain_c(core: str) -> None:
    short = "1" if core == "cortex-m0plus" else "0"
    features = CoreFeatures(name=core, dsp=core == "cortex-m4")
    native = NativeNetwork(BOTH, core=features, goal=Goal.SPEED, defines=(f"FERRULE_SHORT_MULTIPLY={short}",))
    own = {stem.replace("RULE", rule) for stem in OTHER_CORES.get(core, ()) for rule in RULES}
    assert own <= set(native.kernels)
    for inputs in [random_inputs(BOTH), *edge_inputs(BOTH).values()]:
        for name, got, wanted in zip(NAMES, native.run(inputs), BOTH.run(inputs), strict=True):
            assert_array_equal(got, wanted, err_msg=name)


@pytest.mark.cc
@pytest.mark.parametrize("case", ["clamped depthwise", "5x5", "mixed depthwise"])
@pytest.mark.parametrize("core", [None, CoreFeatures(name="cortex-m0plus")], ids=["cortex-m4", "cortex-m0plus"])
def test_a_depthwise_kernel_has_all_its_sources(case: str, core: CoreFeatures | None) -> None:
    network = ruled(Rounding.ONNX)[list(CASES).index(case)]
    inputs = random_inputs(network)
    op = lower(network, core, Goal.SPEED)
    assert_array_equal(run_lowered(network, inputs, op=op)[0], network.run(inputs)[0])


@pytest.mark.emu
@pytest.mark.parametrize(
    "board",
    [
        "mps2-an386",
        pytest.param("mps2-an385", marks=pytest.mark.nightly),
        pytest.param("mps2-an505", marks=pytest.mark.nightly),
    ],
)
def test_the_assembler(board: str) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_module("ziglang", "pip install ferrule[run]")
    import ferrule

    inputs = random_inputs(BOTH)
    report = ferrule.compile(BOTH, board=board, toolchain="zig").run(inputs, engine="unicorn")
    for name, got, wanted in zip(NAMES, report.outputs, BOTH.run(inputs), strict=True):
        assert_array_equal(got, wanted, err_msg=name)


def test_vector_kernels_leave_these_layers_to_the_others() -> None:
    core = CoreFeatures(name="cortex-m55", dsp=True, mve=True)
    for network in ruled(Rounding.ONNX):
        op, other = lower(network, core), lower(network)
        assert op.kernel == other.kernel
        refused = [each.reason for each in op.considered if "mve" in each.kernel]
        assert set(refused) <= {"it does not round by ONNX's rule"}, op.considered
