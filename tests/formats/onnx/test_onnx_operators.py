# SPDX-License-Identifier: Apache-2.0
"""Every float32 operator of the ONNX reader against onnxruntime, with images in either order of axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx_models import OPSET, agrees, model, node

from ferrule._frozen import positional
from ferrule.formats.onnx import control, recurrent
from ferrule.formats.onnx.operators import OPERATORS
from ferrule.graph import Array

IMAGE = (1, 4, 6, 5)
CONSTANT = np.random.default_rng(3)


def floats(*shape: int) -> Array:
    """Return random constants."""
    return CONSTANT.normal(size=shape).astype(np.float32)


@positional
class Case:
    """One node: its inputs at run time, its constants by position, and its attributes."""

    op: str
    shapes: tuple[tuple[int, ...], ...] = (IMAGE,)
    constants: Mapping[int, npt.ArrayLike] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = OPSET
    kinds: tuple[str, ...] = ("float32", "float32", "float32")
    draw: Callable[[Array], Array] = lambda array: array

    def with_outputs(self, count: int) -> Case:
        """Return the case with several outputs."""
        return replace(self, outputs=count)

    @property
    def name(self) -> str:
        """The operator with the attributes that tell cases apart."""
        shown = [f"{key}={value}" for key, value in self.attributes.items()]
        return " ".join([self.op, *("x".join(map(str, shape)) for shape in self.shapes[1:]), *shown])


def made(case: Case, *, nhwc: bool) -> Any:  # noqa: ANN401
    """Return the model of a case; with `nhwc`, the network has its images with the channels last."""
    names = [f"x{index}" for index in range(len(case.shapes))]
    nodes, constants = [], {}
    read = list(names)
    for index, shape in enumerate(case.shapes):
        if nhwc and case.kinds[index] == "float32" and len(shape) in {3, 4}:
            kernel = np.arange(1, shape[1] + 1, dtype=np.float32) / 4
            constants[f"k{index}"] = kernel.reshape(-1, 1, *(1,) * (len(shape) - 2))
            nodes.append(node("Conv", f"x{index} k{index}", f"n{index}", group=shape[1]))
            read[index] = f"n{index}"
    inputs, computed = [], iter(read)
    for position in range(max(len(case.shapes) + len(case.constants), 1 + max(case.constants, default=0))):
        if position in case.constants:
            constants[f"c{position}"] = np.asarray(case.constants[position])
            inputs.append(f"c{position}")
        else:
            inputs.append(next(computed, "-"))
    outputs = [f"y{index}" for index in range(case.outputs)]
    domain, _, op = case.op.rpartition("::")
    nodes.append(node(op, " ".join(inputs), " ".join(outputs), domain=domain, **case.attributes))
    described = {name: (case.kinds[index], case.shapes[index]) for index, name in enumerate(names)}
    return model(nodes, described, outputs, constants, case.opset)


def check(case: Case) -> None:
    """Compare a case with onnxruntime, with both orders of axes if it has images."""
    generator = np.random.default_rng(5)
    inputs = {
        f"x{index}": case.draw(generator.normal(size=shape)).astype(case.kinds[index])
        for index, shape in enumerate(case.shapes)
    }
    agrees(made(case, nhwc=False), inputs)
    if any(len(shape) in {3, 4} for shape in case.shapes):
        agrees(made(case, nhwc=True), inputs)


def of(op: str, *shapes: tuple[int, ...], **attributes: Any) -> Case:  # noqa: ANN401
    """Return a case with attributes."""
    return Case(op, shapes or (IMAGE,), attributes=attributes)


def with_constants(
    op: str,
    *constants: npt.ArrayLike | None,
    shape: tuple[int, ...] = IMAGE,
    **attributes: Any,  # noqa: ANN401
) -> Case:
    """Return a case with one input and constants behind it; None stands for an absent one."""
    given = {index: each for index, each in enumerate(constants, 1) if each is not None}
    return Case(op, (shape,), given, attributes)


def within(extent: int) -> Callable[[Array], Array]:
    """Return a function to indices of an axis, counted from either end."""
    return lambda array: np.clip(array * extent, -extent, extent - 1)


def near(array: Array) -> Array:
    """Return positive numbers."""
    return np.abs(array) + 0.25


FUNCTIONS = [
    *map(of, ["Abs", "Ceil", "Cos", "Exp", "Floor", "HardSwish", "Neg", "Relu", "Sigmoid", "Sign", "Sin", "Tanh"]),
    of("com.microsoft::Gelu"),
    with_constants("com.microsoft::BiasGelu", floats(5)),
    of("com.microsoft::FastGelu"),
    with_constants("com.microsoft::FastGelu", floats(5)),
    *map(of, ["Elu", "Selu", "Celu", "Softplus", "Softsign", "Mish", "LeakyRelu", "HardSigmoid", "Identity", "IsNaN"]),
    Case("Log", draw=near),
    Case("Sqrt", draw=near),
    Case("Reciprocal", draw=near),
    Case("Sign", ((3, 4),), kinds=("int32",), draw=lambda array: array * 3),
    Case("Round", draw=lambda array: np.round(array * 4) / 2),
    of("Elu", alpha=0.5),
    of("Celu", alpha=2.0),
    of("LeakyRelu", alpha=0.3),
    of("HardSigmoid", alpha=1 / 6),
    of("ThresholdedRelu", alpha=0.5),
    of("Gelu", approximate="tanh"),
    Case("Gelu", draw=lambda array: array * 3),
    Case("Erf", draw=lambda array: array * 2),
    of("com.microsoft::QuickGelu"),
    of("Dropout"),
    Case("Swish", opset=24),
    with_constants("Clip", np.float32(0)),
    with_constants("Clip", np.float32(-1), np.float32(1)),
    with_constants("Clip", np.float32(0), np.float32(6)),
    with_constants("Clip", np.float32(-0.5), np.float32(0.25)),
    with_constants("PRelu", floats(4, 1, 1)),
    of("Cast", to=6),
    of("Cast", to=1),
    with_constants("CastLike", np.int32(0)),
    of("IsInf"),
    of("Tan"),
    Case("Not", kinds=("bool",)),
]
PAIRS = [
    *(of(op, IMAGE, IMAGE) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean")),
    *(of(op, IMAGE, (1, 4, 1, 1)) for op in ("Add", "Sub", "Mul")),
    *(of(op, (6, 5), IMAGE) for op in ("Sub", "Less")),
    *(with_constants(op, floats(4, 1, 1)) for op in ("Add", "Mul", "Greater")),
    *(with_constants(op, floats(1)) for op in ("Sub", "Equal", "LessOrEqual", "GreaterOrEqual")),
    Case("Sub", (IMAGE,), {0: floats(6, 5)}),
    *(with_constants("Pow", np.float32(exponent)) for exponent in (1, 2, 3, -1)),
    Case("Pow", (IMAGE,), {1: np.float32(0.5)}, draw=near),
    Case("Pow", (IMAGE,), {1: np.float32(-0.5)}, draw=near),
    *(with_constants("Pow", np.float32(exponent)) for exponent in (4, 7, -2, -3)),
    *(
        Case("Pow", (IMAGE,), {1: np.float32(exponent)}, draw=near)
        for exponent in (0.25, 0.75, 1.5, 2.25, 3.75, -0.75, -1.5, 0.3, -2.7, 80)
    ),
    Case("Mod", ((3, 4),), {1: np.array([3, -2, 5, 0.7], np.float32)}, {"fmod": 1}, draw=lambda array: array * 9),
    of("Mod", (3, 4), (4,), fmod=1),
    *(
        of("LRN", shape, size=size, alpha=0.5, beta=beta)
        for shape, size, beta in (
            (IMAGE, 3, 0.75),
            (IMAGE, 1, 0.5),
            (IMAGE, 9, 1.0),
            ((2, 5, 3, 1), 7, 0.3),
        )
    ),
    Case("LRN", ((2, 6, 3, 2),), attributes={"size": 5}),
    Case("Mod", ((3, 4),), {1: np.array([3, -2, 5, 7], np.int32)}, kinds=("int32",), draw=lambda array: array * 9),
    Case("Div", ((3, 4),), {1: np.array([3, -2, 5, 7], np.int32)}, kinds=("int32",), draw=lambda array: array * 9),
    Case("BitwiseXor", ((3, 4), (4,)), kinds=("int32", "int32"), draw=lambda array: array * 1e9),
    *(Case(op, ((3, 4), (4,)), kinds=("bool", "bool")) for op in ("And", "Or", "Xor")),
    Case("Where", (IMAGE, IMAGE, IMAGE), kinds=("bool", "float32", "float32")),
    Case("Where", (IMAGE, IMAGE), {2: np.float32(-1)}, kinds=("bool", "float32")),
    of("Max", IMAGE, IMAGE, IMAGE),
    with_constants("BatchNormalization", floats(4), floats(4), floats(4), np.abs(floats(4)) + 0.5),
    Case("BatchNormalization", (IMAGE, (4,), (4,)), {3: floats(4), 4: np.abs(floats(4)) + 0.5}),
    Case("BatchNormalization", ((3, 4), *[(4,)] * 4), kinds=("float32",) * 5, draw=near),
]
WEIGHTED = [
    with_constants("Conv", floats(6, 4, 3, 3), floats(6), pads=[1, 0, 2, 1], strides=[2, 1]),
    with_constants("com.microsoft::FusedConv", floats(6, 4, 3, 3), floats(6)),
    *(
        with_constants(
            "com.microsoft::FusedConv", floats(6, 4, 3, 3), floats(6), activation=name, activation_params=numbers
        )
        for name, numbers in (
            ("Clip", [0.0, 6.0]),
            ("Clip", [-0.5, 0.25]),
            ("HardSigmoid", [0.3, 0.4]),
            ("LeakyRelu", [0.1]),
        )
    ),
    *(
        with_constants("com.microsoft::FusedConv", floats(6, 4, 1, 1), None, activation=name)
        for name in ("Relu", "Sigmoid", "Tanh")
    ),
    Case(
        "com.microsoft::FusedConv",
        (IMAGE, (1, 6, 6, 5)),
        {1: floats(6, 4, 1, 1), 2: floats(6)},
        {"activation": "Relu"},
    ),
    with_constants("com.microsoft::FusedConv", floats(6, 4, 3), floats(6), shape=(1, 4, 9), activation="Tanh"),
    with_constants("Conv", floats(6, 2, 2, 3), group=2, dilations=[2, 1], kernel_shape=[2, 3]),
    with_constants("Conv", floats(8, 1, 3, 3), floats(8), group=4, auto_pad="SAME_LOWER", strides=[2, 2]),
    with_constants("Conv", floats(4, 1, 3, 3), group=4, auto_pad="SAME_UPPER"),
    with_constants("Conv", floats(5, 4, 3), floats(5), shape=(1, 4, 9), pads=[2, 1], strides=[2]),
    with_constants("Conv", floats(4, 1, 3), shape=(1, 4, 9), group=4),
    of("Conv", IMAGE, (6, 4, 3, 3)),
    with_constants("ConvTranspose", floats(4, 3, 3, 3), floats(3), strides=[2, 2]),
    with_constants("ConvTranspose", floats(4, 3, 3, 2), strides=[2, 3], pads=[1, 0, 1, 1], output_padding=[1, 0]),
    with_constants("ConvTranspose", floats(4, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER"),
    with_constants("ConvTranspose", floats(4, 3, 3, 3), strides=[2, 2], output_shape=[11, 10]),
    with_constants("ConvTranspose", floats(4, 3, 3, 2), floats(6), group=2, strides=[2, 1], dilations=[1, 2]),
    with_constants("ConvTranspose", floats(4, 3, 3, 2), strides=[2, 1], dilations=[1, 2]),
    with_constants("ConvTranspose", floats(4, 3, 4), shape=(1, 4, 6), strides=[2], pads=[1, 1]),
    with_constants("Gemm", floats(5, 7), floats(7), shape=(3, 5), alpha=0.5, beta=2.0),
    with_constants("Gemm", floats(7, 5), floats(3, 1), shape=(3, 5), transB=1, beta=0.5),
    with_constants("Gemm", floats(3, 7), floats(7), shape=(3, 5), transA=1, alpha=0.5),
    of("Gemm", (3, 5), (7, 5), transB=1),
    of("Gemm", (3, 5), (5, 7), (3, 7), alpha=2.0, beta=0.5),
    with_constants("MatMul", floats(5, 7), shape=(3, 5)),
    with_constants("MatMul", floats(5, 7)),
    with_constants("MatMul", floats(5, 7), shape=(2, 3, 5)),
    with_constants("MatMul", floats(5), shape=(3, 5)),
    of("MatMul", (2, 3, 5), (2, 5, 4)),
    of("MatMul", (5,), (2, 5, 4)),
    Case("MatMul", ((5, 4),), {0: floats(3, 5)}),
]
RESIZES: list[tuple[str, dict[str, Any]]] = [
    ("half_pixel", {"mode": "nearest"}),
    ("asymmetric", {"mode": "nearest", "nearest_mode": "floor"}),
    ("align_corners", {"mode": "nearest", "nearest_mode": "ceil"}),
    ("half_pixel", {"mode": "linear"}),
    ("align_corners", {"mode": "linear"}),
    ("asymmetric", {"mode": "linear"}),
]
POOLS = [
    of("MaxPool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]),
    of("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    of("MaxPool", kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
    of("MaxPool", (1, 4, 9), kernel_shape=[3], strides=[2]),
    of("AveragePool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]),
    of("AveragePool", kernel_shape=[3, 2], pads=[1, 1, 1, 1], count_include_pad=1),
    of("AveragePool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    of("AveragePool", (1, 4, 9), kernel_shape=[3], strides=[2], auto_pad="VALID"),
    *(
        of("MaxPool", kernel_shape=[2, 3], dilations=dilations, **more)
        for dilations in ([2, 1], [1, 2], [3, 2])
        for more in ({}, {"pads": [1, 1, 1, 2], "strides": [2, 1]}, {"strides": [1, 2], "ceil_mode": 1})
    ),
    of("MaxPool", (1, 4, 9), kernel_shape=[3], dilations=[2], pads=[2, 1]),
    of("AveragePool", kernel_shape=[2, 3], dilations=[3, 2]),
    of("AveragePool", kernel_shape=[2, 2], dilations=[2, 1], pads=[1, 0, 1, 1], count_include_pad=1, strides=[2, 1]),
    *(
        of("LpPool", kernel_shape=[3, 2], p=p, **more)
        for p in (1, 2)
        for more in ({}, {"pads": [1, 0, 1, 1], "strides": [2, 1]}, {"dilations": [2, 3]}, {"auto_pad": "SAME_UPPER"})
    ),
    of("LpPool", (1, 4, 9), kernel_shape=[3]),
    *(of("GlobalLpPool", p=p) for p in (1, 2)),
    of("GlobalAveragePool"),
    of("GlobalAveragePool", (1, 4, 9)),
    of("GlobalMaxPool"),
    *(
        with_constants("Resize", None, None, np.array([1, 4, *size]), coordinate_transformation_mode=mode, **more)
        for size in ((12, 10), (3, 7), (12, 5))
        for mode, more in RESIZES
    ),
    with_constants("Resize", None, np.array([1, 1, 2, 2], np.float32), mode="nearest"),
    *(
        with_constants("Resize", None, np.array([1, 1, *scales], np.float32), mode="linear", **more)
        for scales in ((1.3, 2.6), (0.7, 0.45), (1, 1.7))
        for more in (
            {},
            {"coordinate_transformation_mode": "asymmetric"},
            {"coordinate_transformation_mode": "pytorch_half_pixel"},
            {"coordinate_transformation_mode": "align_corners"},
        )
    ),
    with_constants(
        "Resize",
        None,
        None,
        np.array([1, 4, 3, 5]),
        mode="linear",
        coordinate_transformation_mode="half_pixel_symmetric",
    ),
    with_constants("Resize", None, np.array([2, 1.5], np.float32), mode="nearest", axes=[2, 3]),
    of("DepthToSpace", blocksize=2),
    of("DepthToSpace", (1, 8, 2, 3), blocksize=2, mode="CRD"),
    of("SpaceToDepth", (1, 3, 4, 6), blocksize=2),
    with_constants("Resize", None, None, np.array([9, 13]), axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
]
REDUCTIONS = [
    *(with_constants(f"Reduce{each}", np.array([1, -1]), keepdims=0) for each in ("Mean", "Sum", "Max", "Min", "L1")),
    *(with_constants(f"Reduce{each}", np.array([2]), keepdims=1) for each in ("L2", "SumSquare", "Mean")),
    Case("ReduceLogSum", (IMAGE,), {1: np.array([1])}, {"keepdims": 0}, draw=near),
    Case("ReduceMean", attributes={"axes": [2, 3]}, opset=13),
    of("ReduceSum"),
    with_constants("ReduceLogSumExp", np.array([1, 3]), keepdims=0),
    with_constants("ReduceLogSumExp", np.array([2])),
    Case("ArgMax", attributes={"axis": 1, "select_last_index": 1}, draw=np.round),
    of("LpNormalization", axis=1, p=1),
    Case("LayerNormalization", constants={1: floats(5)}, outputs=3),
    of("ArgMax", axis=1),
    of("ArgMin", axis=2, keepdims=0),
    of("ArgMax", (3, 5), axis=-1, keepdims=0),
    with_constants("CumSum", np.array(1), exclusive=1, reverse=1),
    *(of(op, axis=axis) for op in ("Softmax", "LogSoftmax", "LpNormalization") for axis in (1, -1)),
    with_constants("LayerNormalization", floats(5), floats(5)),
    with_constants("LayerNormalization", floats(4, 6, 5), axis=1, epsilon=0.01),
    with_constants("InstanceNormalization", floats(4), floats(4)),
    with_constants("GroupNormalization", floats(4), floats(4), num_groups=2),
    Case("GroupNormalization", constants={1: floats(2), 2: floats(2)}, attributes={"num_groups": 2}, opset=18),
    Case("RMSNormalization", constants={1: floats(5)}, opset=23),
    of("MeanVarianceNormalization"),
]
MOVEMENT = [
    of("Transpose"),
    of("Transpose", perm=[0, 2, 3, 1]),
    of("Transpose", (2, 3, 2, 1, 3, 2), perm=[0, 1, 4, 2, 5, 3]),
    with_constants("Reshape", np.array([0, -1])),
    with_constants("Reshape", np.array([1, 2, 2, 6, 5])),
    with_constants("Reshape", np.array([4, 30])),
    with_constants("Reshape", np.array([8, 15])),
    of("Flatten", axis=2),
    with_constants("Squeeze", np.array([0])),
    with_constants("Unsqueeze", np.array([0, -1])),
    of("Concat", IMAGE, IMAGE, axis=1),
    of("Concat", IMAGE, IMAGE, axis=-1),
    with_constants("Concat", floats(1, 2, 6, 5), axis=1),
    Case("Split", attributes={"axis": 1, "num_outputs": 2}, outputs=2),
    Case("Split", constants={1: np.array([1, 3])}, attributes={"axis": 1}, outputs=2),
    with_constants("Slice", np.array([1, -4]), np.array([3, 1000]), np.array([1, 2])),
    with_constants("Slice", np.array([-1]), np.array([-1000]), np.array([3]), np.array([-2])),
    with_constants("Slice", np.array([0]), np.array([6]), np.array([2])),
    with_constants("Pad", np.array([0, 1, 0, 2, 0, 0, 1, 0])),
    with_constants("Pad", np.array([1, 2]), np.float32(1.5), np.array([2])),
    with_constants("Pad", np.array([0, 0, 2, 2, 0, 0, 1, 3]), mode="reflect"),
    *(
        with_constants("Pad", np.array(pads), mode=mode)
        for mode in ("edge", "wrap")
        for pads in (
            [0, 1, 0, 2, 0, 0, 1, 0],
            [0, 0, 2, 2, 0, 0, 1, 3],
            [0, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, -2, 1, 0, 0, 1, -1],
        )
    ),
    *(
        with_constants("Pad", np.array([0, -1, 1, 2, 0, 0, -2, -1]), *value, mode=mode)
        for mode, value in (("constant", ()), ("constant", (np.float32(1.5),)), ("reflect", ()))
    ),
    with_constants("Pad", np.array([0, 0, 0, -3, 0, -2, -1, 0])),
    with_constants("Expand", np.array([2, 1, 6, 5])),
    with_constants("Expand", np.array([2, 3, 1, 4]), shape=(3, 1, 1)),
    with_constants("Tile", np.array([1, 2, 1, 3])),
    with_constants("Gather", np.array(-1), axis=1),
    with_constants("Gather", np.array([2, 0, -1]), axis=1),
    with_constants("Gather", np.array([[2, 0], [1, 1]]), axis=2),
    Case("Gather", ((3, 4),), {0: floats(7, 5)}, kinds=("int64",), draw=lambda array: np.clip(array * 3, -7, 6)),
    with_constants("Trilu", np.array(1)),
    of("Trilu", upper=0),
    with_constants("GatherElements", np.array([[[[0, -1], [2, 3]]]]), axis=1),
    *(
        Case("GatherElements", (IMAGE, shape), {}, {"axis": axis}, kinds=("float32", "int64"), draw=within(extent))
        for axis, extent, shape in ((1, 4, (1, 7, 6, 5)), (-1, 5, (1, 4, 2, 3)), (0, 1, (3, 4, 6, 5)))
    ),
    *(
        Case("ScatterElements", (IMAGE, (1, 2, 1, 2)), {1: np.array([[[[0, -1]], [[2, 3]]]])}, {"axis": axis})
        for axis in (1, 2, -1)
    ),
    Case("ScatterND", (IMAGE, (1, 2, 5)), {1: np.array([[[0, 1, 3], [0, -2, -1]]])}),
    Case("ScatterND", (IMAGE, (1, 4, 6, 5)), {1: np.array([[0]])}),
    Case("ScatterND", ((3, 4), (3,)), {1: np.array([[0, 1], [2, 3], [0, 1]])}),
    Case("ScatterND", ((5,), (2,)), {1: np.array([[3], [-5]])}),
    Case(
        "OneHot",
        ((2, 3),),
        {1: np.array(4), 2: np.array([-1, 2], np.float32)},
        kinds=("int64",),
        draw=lambda array: array * 4,
    ),
    with_constants("GatherND", np.array([[0, 1], [0, -2]])),
]
CHOSEN = [
    *(
        with_constants("TopK", np.array([k]), axis=axis, largest=largest).with_outputs(2)
        for k, axis, largest in ((1, 1, 1), (3, 1, 0), (5, -1, 1), (2, 2, 0))
    ),
    Case("TopK", ((3, 7),), {1: np.array([4])}, outputs=2, draw=np.round),
    Case("TopK", ((3, 7),), {1: np.array([4])}, {"largest": 0}, outputs=2, draw=np.round),
]
PRODUCTS = [
    *(
        of("Einsum", *shapes, equation=equation)
        for equation, shapes in {
            "ij,jk->ik": ((3, 4), (4, 5)),
            "ij,jk": ((3, 4), (4, 5)),
            "ij,kj->ki": ((3, 4), (5, 4)),
            "bhwc,hkc->bhwk": ((2, 3, 4, 5), (3, 6, 5)),
            "bhqd,bhkd->bhqk": ((1, 2, 3, 4), (1, 2, 5, 4)),
            "bqhd , bkhd -> bhqk": ((1, 3, 2, 4), (1, 5, 2, 4)),
            "nctkv,kvw->nctw": ((1, 2, 3, 2, 4), (2, 4, 5)),
            "i,j->ij": ((3,), (4,)),
            "i,i->": ((3,), (3,)),
            "ij,ij->i": ((3, 4), (3, 4)),
            "ij,k->i": ((3, 4), (5,)),
            "...ij,...jk->...ik": ((2, 3, 4), (2, 4, 5)),
            "ij,...j->...i": ((3, 4), (2, 5, 4)),
            "abcd->dcba": (IMAGE,),
            "abcd->ac": (IMAGE,),
            "ba": ((3, 4),),
            "...a->...": ((2, 3, 4),),
            "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
            "Ab,bC->AC": ((2, 3), (3, 4)),
        }.items()
    ),
    with_constants("Einsum", floats(4, 3), shape=(2, 4), equation="bi,io->bo"),
]
FAMILIES = [*CHOSEN, *PRODUCTS, *FUNCTIONS, *PAIRS, *WEIGHTED, *POOLS, *REDUCTIONS, *MOVEMENT]


@pytest.mark.parametrize("case", FAMILIES, ids=lambda case: case.name)
def test_an_operator_agrees_with_onnxruntime(case: Case) -> None:
    check(case)


def test_every_operator_is_tested() -> None:
    elsewhere = {*control.ROWS, *recurrent.ROWS, "DequantizeLinear", "QuantizeLinear"}  # files of their own
    assert {case.op for case in FAMILIES} >= set(OPERATORS) - elsewhere
