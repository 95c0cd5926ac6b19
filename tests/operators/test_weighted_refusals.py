# SPDX-License-Identifier: Apache-2.0
"""Layers that convolutions, FULLY_CONNECTED and pools refuse, and their messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.operator import Operands
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor

Q = Quantization.of(0.5)


def info(name: str, shape: Shape, dtype: DataType = DataType.INT8, quantization: Quantization | None = Q) -> TensorInfo:
    return TensorInfo(name, shape, dtype, quantization=quantization)


DATA = info("data", (1, 4, 4, 2))
WEIGHTS = info("weights", (3, 2, 2, 2))
BIAS = info("bias", (3,), DataType.INT32, Quantization.of(0.25))
OUTPUT = info("output", (1, 3, 3, 3))


def check_conv2d(
    *,
    data: TensorInfo = DATA,
    weights: TensorInfo = WEIGHTS,
    bias: TensorInfo | None = BIAS,
    output: TensorInfo = OUTPUT,
    activation: Activation = Activation.NONE,
) -> None:
    operands = Operands((data, weights, bias), (output,))
    OPERATORS[LayerType.CONV_2D].check(Conv2dDescriptor(activation=activation), operands)


def test_what_the_cases_vary_is_accepted() -> None:
    check_conv2d()
    check_conv2d(bias=None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": replace(DATA, dtype=DataType.UINT8)}, "'data' is uint8, expected float32, int8 or int16"),
        ({"data": info("data", (1, 4, 4, 2), DataType.FLOAT32, None)}, "'weights' is int8, expected float32"),
        ({"output": replace(OUTPUT, dtype=DataType.INT16)}, "'output' is int16, expected int8"),
        ({"bias": replace(BIAS, dtype=DataType.INT64)}, "'bias' is int64, expected int32"),
        ({"bias": info("bias", (4,), DataType.INT32)}, "'bias' has 4 elements, expected 3"),
        ({"data": replace(DATA, quantization=None)}, "'data' is int8 without quantisation"),
        ({"weights": replace(WEIGHTS, quantization=None)}, "'weights' are int8 without quantisation"),
        (
            {"weights": replace(WEIGHTS, quantization=Quantization(scales=(0.5,) * 3, zero_points=(0, 1, 0)))},
            "'weights' have a zero point",
        ),
        (
            {
                "data": info("data", (1, 4, 4, 2), DataType.INT16, Quantization.of(0.5)),
                "output": replace(OUTPUT, dtype=DataType.INT16),
                "bias": replace(BIAS, dtype=DataType.INT64),
                "weights": replace(WEIGHTS, quantization=Quantization.of(0.5, 1)),
            },
            "'weights' have a zero point",
        ),
        (
            {"weights": replace(WEIGHTS, quantization=Quantization(scales=(1.0, 2.0), zero_points=(0, 0), axis=3))},
            "'weights' have scales per index of axis 3, expected axis 0",
        ),
        (
            {"data": replace(DATA, quantization=Quantization(scales=(1.0, 2.0), zero_points=(0, 0), axis=3))},
            "'data' has 2 scales, expected one",
        ),
        (
            {
                "data": info("data", (1, 4, 4, 2), DataType.INT16, Quantization.of(0.5, 1)),
                "output": replace(OUTPUT, dtype=DataType.INT16),
            },
            "'data' is int16 with zero point 1, expected 0",
        ),
        ({"output": replace(OUTPUT, quantization=Quantization.of(2.0**-34))}, r"expected less than 2\*\*30"),
        (
            {
                "output": replace(OUTPUT, quantization=Quantization.of(1e-12)),
                "weights": replace(WEIGHTS, quantization=Quantization.of(1e-12)),
                "activation": Activation.RELU6,
            },
            "too small for the limit 6.0",
        ),
    ],
)
def test_conv2d_says_what_it_refuses(changes: dict[str, TensorInfo], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        check_conv2d(**changes)


@pytest.mark.parametrize(
    ("type_", "descriptor", "inputs", "message"),
    [
        (LayerType.CONV_2D, Conv2dDescriptor(), [DATA], "input 1 is absent"),
        (LayerType.CONV_2D, Conv2dDescriptor(), [DATA, info("w", (3, 2, 2))], "expected OHWI"),
        (LayerType.CONV_2D, Conv2dDescriptor(), [DATA, info("w", (3, 2, 2, 3))], "or a multiple of it for groups"),
        (LayerType.CONV_2D, Conv2dDescriptor(), [DATA, info("w", (3, 2, 2, 1))], "3 channels in 2 groups"),
        (LayerType.CONV_2D, Conv2dDescriptor(), [info("x", (4, 4, 2)), WEIGHTS], "expected NHWC"),
        (LayerType.CONV_2D, Conv2dDescriptor(stride_h=0), [DATA, WEIGHTS], "stride_h of the window is 0"),
        (LayerType.CONV_2D, Conv2dDescriptor(dilation_w=9), [DATA, WEIGHTS], "does not fit"),
        (LayerType.CONV_2D, Conv2dDescriptor(padding=Padding(top=-1)), [DATA, WEIGHTS], "no negative number"),
        (
            LayerType.DEPTHWISE_CONV_2D,
            DepthwiseConv2dDescriptor(),
            [DATA, info("w", (2, 2, 2, 2))],
            r"expected \[1, H, W, O\]",
        ),
        (
            LayerType.DEPTHWISE_CONV_2D,
            DepthwiseConv2dDescriptor(depth_multiplier=2),
            [DATA, info("w", (1, 2, 2, 2))],
            "2 times as many",
        ),
        (LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), [DATA, info("w", (3, 5))], "a multiple of 5"),
        (LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), [DATA, WEIGHTS], r"expected \[outputs, inputs\]"),
        (
            LayerType.FULLY_CONNECTED,
            FullyConnectedDescriptor(keep_num_dims=True),
            [DATA, info("w", (3, 4))],
            "keep_num_dims",
        ),
        (LayerType.MAX_POOL_2D, Pool2dDescriptor(pool_h=5, pool_w=1), [DATA], "does not fit"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    type_: LayerType, descriptor: object, inputs: list[TensorInfo], message: str
) -> None:
    with pytest.raises((UnsupportedError, ModelError), match=message):
        OPERATORS[type_].infer(descriptor, inputs)


@pytest.mark.parametrize(
    ("type_", "descriptor", "inputs", "output", "message"),
    [
        (
            LayerType.FULLY_CONNECTED,
            FullyConnectedDescriptor(),
            [info("data", (1, 4)), info("weights", (3, 4)), replace(BIAS, quantization=Q)],
            info("output", (1, 3)),
            r"'bias' has scale 0.5, expected 0.25",
        ),
        (
            LayerType.DEPTHWISE_CONV_2D,
            DepthwiseConv2dDescriptor(),
            [info("data", (1, 4, 4, 3), DataType.INT16), info("weights", (1, 1, 1, 3)), BIAS],
            info("output", (1, 4, 4, 3), DataType.INT16),
            "'bias' is int32, expected int64",
        ),
        (
            LayerType.TRANSPOSE_CONV,
            TransposeConvDescriptor(output_h=3, output_w=3),
            [DATA, replace(WEIGHTS, quantization=Quantization.of(0.5, 3))],
            OUTPUT,
            "'weights' have a zero point that is not 0, expected symmetric",
        ),
    ],
)
def test_other_weighted_layers_refuse_as_much(
    type_: LayerType, descriptor: object, inputs: list[TensorInfo], output: TensorInfo, message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        OPERATORS[type_].check(descriptor, Operands(tuple(inputs), (output,)))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (info("output", (1, 3, 3, 2), DataType.INT16), "expected int8"),
        (info("output", (1, 3, 3, 2), DataType.INT8, Quantization.of(0.25)), "differ in quantisation"),
    ],
)
@pytest.mark.parametrize("type_", [LayerType.AVERAGE_POOL_2D, LayerType.MAX_POOL_2D])
def test_pools_say_what_they_refuse(type_: LayerType, output: TensorInfo, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        OPERATORS[type_].check(Pool2dDescriptor(pool_h=2, pool_w=2), Operands((DATA,), (output,)))


@pytest.mark.parametrize("side", ["top", "bottom", "left", "right"])
def test_the_padding_of_a_pool_is_smaller_than_its_window(side: str) -> None:
    size = {"top": (5, 4), "bottom": (5, 4), "left": (4, 5), "right": (4, 5)}[side]
    row = OPERATORS[LayerType.MAX_POOL_2D]
    for padding, accepted in ((1, True), (2, False), (3, False)):
        descriptor = Pool2dDescriptor(pool_h=2, pool_w=2, padding=Padding(**{side: padding}))
        height, width = ((each - 4) * padding + 3 for each in size)
        operands = Operands((DATA,), (info("output", (1, height, width, 2)),))
        if accepted:
            row.check(descriptor, operands)
            continue
        with pytest.raises(UnsupportedError, match="less padding than window"):
            row.check(descriptor, operands)


def test_constant_weights_are_finite() -> None:
    data, weights = (info(name, (1, 2), DataType.FLOAT32, None) for name in ("data", "weights"))
    operands = Operands((data, weights), (info("output", (1, 1), DataType.FLOAT32, None),))
    check = OPERATORS[LayerType.FULLY_CONNECTED].check_values
    check(FullyConnectedDescriptor(), operands, (None, np.float32([[1, 2]])))
    check(FullyConnectedDescriptor(), operands, (None, None))
    with pytest.raises(UnsupportedError, match="'weights' have 1 infinities or NaN, the first at element 1"):
        check(FullyConnectedDescriptor(), operands, (None, np.float32([[1, np.nan]])))
