# SPDX-License-Identifier: Apache-2.0
"""Random quantised ONNX models: an operator between conversions, and before and behind it some that move elements.

Each model has two forms: bare, as quantisers leave it, whose movers stand between the operator and its conversions, and
written out, with the conversions repeated round each mover, which states the same integers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx_models import model, node

from ferrule.graph import Array

SCALES = (0.023, 0.031, 0.0625)
LARGE = 1500
"""The elements of a tensor that is not repeated."""
_Shape = tuple[int, ...]
_Mover = Callable[["Drawn", str], str]


@dataclass
class Drawn:
    """A model while it grows, from the seed alone but for the conversions of its form."""

    seed: int
    written_out: bool
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    inputs: dict[str, tuple[str, Sequence[int]]] = field(default_factory=dict)
    shape: _Shape = (1, 6, 8, 8)
    """Of the tensor at hand."""
    points: tuple[str, str] = ("", "")
    """The scale and zero point of that tensor, before the operator; behind it, those of the conversion to come."""
    behind: bool = False
    """Whether the operator is there, so that limits need not be whole steps: the conversion rounds them."""
    operator: str = ""
    movers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.numbers = np.random.default_rng(self.seed)
        self.dtype = self.dice.choice(["int8", "uint8"])
        self.low = int(np.iinfo(self.dtype).min)

    def add(self, op: str, inputs: Sequence[str], shape: Sequence[int] | None = None, **attributes: Any) -> str:  # noqa: ANN401
        """Add a node and return its output."""
        output = f"t{len(self.nodes)}"
        self.nodes.append(node(op, " ".join(inputs), output, **attributes))
        self.shape = self.shape if shape is None else tuple(shape)
        return output

    def constant(self, data: Any) -> str:  # noqa: ANN401
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(data)
        return name

    def real(self, data: Any) -> str:  # noqa: ANN401
        return self.constant(np.asarray(data, np.float32))

    def draw_points(self) -> tuple[str, str]:
        zero = np.array(self.low + self.dice.choice([0, 128, 117]), self.dtype)
        return self.real(self.dice.choice(SCALES)), self.constant(zero)

    def converted(self, name: str) -> str:
        """Add conversions to integers and back."""
        return self.add("DequantizeLinear", [self.add("QuantizeLinear", [name, *self.points]), *self.points])

    def given(self, shape: _Shape) -> str:
        """Add an input and its conversions; the tensor at hand stays the same."""
        name, kept = f"x{len(self.inputs)}", self.shape
        self.inputs[name] = "float32", shape
        points, self.points = self.points, self.draw_points()
        result = self.converted(name)
        self.shape, self.points = kept, points if points[0] else self.points
        return result

    def limit(self) -> str:
        """Return a number within the range, for which an integer stands exactly before the operator."""
        scale, zero = (self.constants[name] for name in self.points)
        steps = self.low + self.dice.randint(90, 160) - int(zero)
        return self.real(np.float32(steps) * scale + (np.float32(0.011) if self.behind else 0))

    def axis(self, fits: Callable[[int], bool] = lambda extent: True) -> int | None:
        """Return a random axis whose extent fits."""
        found = [axis for axis, extent in enumerate(self.shape) if fits(extent)]
        return self.dice.choice(found) if found else None

    def along(self, axis: int, extent: int) -> _Shape:
        """Return the shape with another extent."""
        return tuple(extent if each == axis else size for each, size in enumerate(self.shape))

    def move(self, name: str) -> str:
        """Add operators that move elements, each with conversions if they are written out."""
        for _ in range(self.dice.randint(0, 3)):
            mover = self.dice.choice(list(MOVERS))
            before = len(self.nodes)
            name = MOVERS[mover](self, name)
            if len(self.nodes) > before:
                self.movers.append(mover)
                name = self.converted(name) if self.written_out else name
        return name

    def made(self) -> Any:  # noqa: ANN401
        """Return the model."""
        name = self.move(self.given(self.shape))
        self.operator = self.dice.choice(list(OPERATORS))
        result = OPERATORS[self.operator](self, name)
        self.points, self.behind = self.draw_points(), True
        result = self.converted(result) if self.written_out else result
        result = self.move(result)
        output = result if self.written_out else self.converted(result)
        return model(self.nodes, self.inputs, [output], self.constants, opset=19)

    def feeds(self) -> dict[str, Array]:
        return {
            name: (self.numbers.normal(size=shape) * 2).astype(np.float32) for name, (_, shape) in self.inputs.items()
        }


def _reshape(drawn: Drawn, x: str) -> str:
    size = int(np.prod(drawn.shape))
    first = drawn.dice.choice([each for each in range(1, size + 1) if size % each == 0])
    shape = drawn.dice.choice([(first, size // first), (1, first, size // first)])
    return drawn.add("Reshape", [x, drawn.constant(np.array(shape))], shape)


def _transpose(drawn: Drawn, x: str) -> str:
    order = list(range(len(drawn.shape)))
    drawn.dice.shuffle(order)
    return drawn.add("Transpose", [x], [drawn.shape[each] for each in order], perm=order)


def _squeeze(drawn: Drawn, x: str) -> str:
    axis = drawn.axis(lambda extent: extent == 1)
    if axis is None or len(drawn.shape) < 3:
        return x
    return drawn.add("Squeeze", [x, drawn.constant([axis])], drawn.shape[:axis] + drawn.shape[axis + 1 :])


def _unsqueeze(drawn: Drawn, x: str) -> str:
    axis = drawn.dice.randint(0, len(drawn.shape))
    if len(drawn.shape) > 3:
        return x
    return drawn.add("Unsqueeze", [x, drawn.constant([axis])], (*drawn.shape[:axis], 1, *drawn.shape[axis:]))


def _flatten(drawn: Drawn, x: str) -> str:
    axis = drawn.dice.randint(0, len(drawn.shape))
    shape = int(np.prod(drawn.shape[:axis])), int(np.prod(drawn.shape[axis:]))
    return drawn.add("Flatten", [x], shape, axis=axis)


def _slice(drawn: Drawn, x: str) -> str:
    axis = drawn.axis(lambda extent: extent > 1)
    if axis is None:
        return x
    end = drawn.shape[axis]
    begin = drawn.dice.randrange(1, end)
    return drawn.add("Slice", [x, *map(drawn.constant, ([begin], [end], [axis]))], drawn.along(axis, end - begin))


def _split(drawn: Drawn, x: str) -> str:
    """Both parts join in the other order, or one is not read."""
    axis, shape = drawn.axis(lambda extent: extent % 2 == 0), drawn.shape
    if axis is None:
        return x
    parts = [f"part{len(drawn.nodes)}_{index}" for index in range(2)]
    drawn.nodes.append(node("Split", x, " ".join(parts), axis=axis, num_outputs=2))
    if drawn.dice.random() < 0.5:
        return drawn.add("Identity", [drawn.dice.choice(parts)], drawn.along(axis, shape[axis] // 2))
    return drawn.add("Concat", parts[::-1], shape, axis=axis)


def _repeat(drawn: Drawn, x: str) -> str:
    axis = drawn.axis()
    if axis is None or np.prod(drawn.shape) > LARGE:
        return x
    other = x
    if drawn.dice.random() < 0.5:
        other = drawn.add("Relu", [x])
        other = drawn.converted(other) if drawn.written_out else other
    return drawn.add("Concat", [x, other], drawn.along(axis, 2 * drawn.shape[axis]), axis=axis)


def _pad(drawn: Drawn, x: str) -> str:
    axis = drawn.axis(lambda extent: extent > 3)
    if axis is None:
        return x
    rank, after = len(drawn.shape), drawn.dice.choice([0, 2])
    pads = np.zeros(2 * rank, np.int64)
    pads[axis], pads[axis + rank] = 1, after
    inputs = [x, drawn.constant(pads)]
    mode = drawn.dice.choice(["constant", "constant", "edge", "reflect"])
    if mode == "constant" and drawn.behind and drawn.dice.random() < 0.5:
        inputs.append(drawn.limit())
    return drawn.add("Pad", inputs, drawn.along(axis, drawn.shape[axis] + 1 + after), mode=mode)


def _gather(drawn: Drawn, x: str) -> str:
    axis = drawn.axis()
    if axis is None:
        return x
    indices = drawn.numbers.integers(0, drawn.shape[axis], drawn.dice.choice([1, 3]))
    return drawn.add("Gather", [x, drawn.constant(indices)], drawn.along(axis, indices.size), axis=axis)


def _tile(drawn: Drawn, x: str) -> str:
    axis = drawn.axis()
    if axis is None or np.prod(drawn.shape) > LARGE:
        return x
    repeats = np.ones(len(drawn.shape), np.int64)
    repeats[axis] = 2
    return drawn.add("Tile", [x, drawn.constant(repeats)], drawn.along(axis, 2 * drawn.shape[axis]))


def _expand(drawn: Drawn, x: str) -> str:
    axis = drawn.axis(lambda extent: extent == 1)
    if axis is None or np.prod(drawn.shape) > LARGE:
        return x
    shape = drawn.along(axis, 2)
    return drawn.add("Expand", [x, drawn.constant(np.array(shape))], shape)


def _max_pool(drawn: Drawn, x: str) -> str:
    if len(drawn.shape) != 4 or min(drawn.shape[2:]) < 2:
        return x
    height, width = (extent - 1 for extent in drawn.shape[2:])
    return drawn.add("MaxPool", [x], (*drawn.shape[:2], height, width), kernel_shape=[2, 2])


def _resize(drawn: Drawn, x: str) -> str:
    if len(drawn.shape) != 4 or np.prod(drawn.shape) > LARGE:
        return x
    height, width = (2 * extent for extent in drawn.shape[2:])
    ways = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return drawn.add("Resize", [x, "-", drawn.real([1, 1, 2, 2])], (*drawn.shape[:2], height, width), **ways)


def _depth_to_space(drawn: Drawn, x: str) -> str:
    if len(drawn.shape) != 4 or drawn.shape[1] % 4:
        return x
    batch, depth, height, width = drawn.shape
    return drawn.add("DepthToSpace", [x], (batch, depth // 4, 2 * height, 2 * width), blocksize=2)


def _space_to_depth(drawn: Drawn, x: str) -> str:
    if len(drawn.shape) != 4 or any(extent % 2 for extent in drawn.shape[2:]):
        return x
    batch, depth, height, width = drawn.shape
    return drawn.add("SpaceToDepth", [x], (batch, 4 * depth, height // 2, width // 2), blocksize=2)


def _clip(drawn: Drawn, x: str) -> str:
    low, high = sorted((drawn.limit(), drawn.limit()), key=lambda name: float(drawn.constants[name]))
    return drawn.add("Clip", [x, low, high])


def _reduce_max(drawn: Drawn, x: str) -> str:
    axis = drawn.axis()
    return x if axis is None else drawn.add("ReduceMax", [x, drawn.constant([axis])], drawn.along(axis, 1))


MOVERS: Mapping[str, _Mover] = {
    "Clip": _clip,
    "Concat": _repeat,
    "DepthToSpace": _depth_to_space,
    "Dropout": lambda drawn, x: drawn.add("Dropout", [x]),
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Identity": lambda drawn, x: drawn.add("Identity", [x]),
    "Max": lambda drawn, x: drawn.add("Max", [x, drawn.limit()]),
    "MaxPool": _max_pool,
    "Pad": _pad,
    "ReduceMax": _reduce_max,
    "Relu": lambda drawn, x: drawn.add("Relu", [x]),
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""Each adds an operator, or several, and returns the result, or its input where the operator does not fit its shape."""


def _weights(drawn: Drawn, shape: _Shape, axis: int) -> tuple[str, Array]:
    """Add weights of int8, with one scale or one per channel, and return them in real numbers, and the scales."""
    per_channel = drawn.dice.random() < 0.5
    scales = drawn.numbers.uniform(0.001, 0.004, shape[axis] if per_channel else ()).astype(np.float32)
    integers = drawn.constant(drawn.numbers.integers(-127, 128, shape).astype(np.int8))
    zero = drawn.constant(np.zeros(scales.shape, np.int8))
    kept = drawn.shape
    name = drawn.add("DequantizeLinear", [integers, drawn.constant(scales), zero], axis=axis)
    drawn.shape = kept
    return name, scales


def _bias(drawn: Drawn, count: int, scales: Array) -> list[str]:
    """Add a bias of int32, or none."""
    integers = drawn.constant(drawn.numbers.integers(-9000, 9000, count).astype(np.int32))
    steps = np.asarray(drawn.constants[drawn.points[0]] * scales, np.float32)
    if drawn.dice.random() < 0.4:
        return []
    zero = drawn.constant(np.zeros(steps.shape, np.int32))
    return [drawn.add("DequantizeLinear", [integers, drawn.constant(steps), zero], axis=0)]


def _is_image(drawn: Drawn) -> bool:
    return len(drawn.shape) == 4 and min(drawn.shape[2:]) > 1


def _image(draw: _Mover) -> _Mover:
    """Return what draws an operator of images, or a Sigmoid where there is none."""

    def drawn_of(drawn: Drawn, x: str) -> str:
        if _is_image(drawn):
            return draw(drawn, x)
        drawn.operator = "Sigmoid"
        return OPERATORS["Sigmoid"](drawn, x)

    return drawn_of


def _conv(drawn: Drawn, x: str) -> str:
    batch, channels, height, width = drawn.shape
    depthwise = drawn.dice.random() < 0.4
    outputs, depth, groups = (channels, 1, channels) if depthwise else (5, channels, 1)
    weights, scales = _weights(drawn, (outputs, depth, 2, 2), 0)
    inputs = [x, weights, *_bias(drawn, outputs, scales)]
    return drawn.add("Conv", inputs, (batch, outputs, height - 1, width - 1), group=groups)


def _conv_transpose(drawn: Drawn, x: str) -> str:
    batch, channels, height, width = drawn.shape
    weights, _ = _weights(drawn, (channels, 4, 2, 2), 1)
    return drawn.add("ConvTranspose", [x, weights], (batch, 4, 2 * height, 2 * width), strides=[2, 2])


def _gemm(drawn: Drawn, x: str) -> str:
    if len(drawn.shape) != 2:
        drawn.operator = "MatMul"
        return _matmul(drawn, x)
    weights, scales = _weights(drawn, (7, drawn.shape[1]), 0)
    return drawn.add("Gemm", [x, weights, *_bias(drawn, 7, scales)], (drawn.shape[0], 7), transB=1)


def _matmul(drawn: Drawn, x: str) -> str:
    weights, _ = _weights(drawn, (drawn.shape[-1], 7), 1)
    product = drawn.add("MatMul", [x, weights], (*drawn.shape[:-1], 7))
    if drawn.dice.random() < 0.5:
        return product
    return drawn.add("Add", [product, drawn.real(drawn.numbers.normal(size=7))])


def _two(op: str) -> _Mover:
    def drawn_of(drawn: Drawn, x: str) -> str:
        names = [x, drawn.given(drawn.shape)]
        drawn.dice.shuffle(names)
        return drawn.add(op, names)

    return drawn_of


def _one(op: str, **attributes: Any) -> _Mover:  # noqa: ANN401
    return lambda drawn, x: drawn.add(op, [x], **attributes)


def _softmax(drawn: Drawn, x: str) -> str:
    return drawn.add("Softmax", [x], axis=-1)


def _mean(drawn: Drawn, x: str) -> str:
    axis = len(drawn.shape) - 1
    return drawn.add("ReduceMean", [x, drawn.constant([axis])], drawn.along(axis, 1))


def _average(drawn: Drawn, x: str) -> str:
    height, width = (extent - 1 for extent in drawn.shape[2:])
    return drawn.add("AveragePool", [x], (*drawn.shape[:2], height, width), kernel_shape=[2, 2])


FUSED_HERE = ("Conv", "ConvTranspose", "Gemm", "MatMul", "ReduceMean")
"""The operators that compute with integers also where onnxruntime computes in float32 (docs/operators.md)."""
OPERATORS: Mapping[str, _Mover] = {
    "Abs": _one("Abs"),
    "Add": _two("Add"),
    "AveragePool": _image(_average),
    "Conv": _image(_conv),
    "ConvTranspose": _image(_conv_transpose),
    "Elu": _one("Elu"),
    "Exp": _one("Exp"),
    "Gemm": _gemm,
    "HardSwish": _one("HardSwish"),
    "LeakyRelu": _one("LeakyRelu", alpha=0.1),
    "MatMul": _matmul,
    "Mul": _two("Mul"),
    "ReduceMean": _mean,
    "Sigmoid": _one("Sigmoid"),
    "Softmax": _softmax,
    "Sub": _two("Sub"),
    "Tanh": _one("Tanh"),
}
"""The operators with a layer of integers; each returns the result."""
