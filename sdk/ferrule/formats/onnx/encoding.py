# SPDX-License-Identifier: Apache-2.0
"""How tensors of a model store real numbers as integers, as QuantizeLinear and DequantizeLinear state it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.node import MICROSOFT, Node, TensorType
from ferrule.formats.onnx.parse import type_name
from ferrule.graph import Array, DataType, Quantization, Rounding
from ferrule.graph.real_values import ieee_floats, overflowing_floats

QUANTIZE = frozenset({"QuantizeLinear", f"{MICROSOFT}::QuantizeLinear"})
DEQUANTIZE = frozenset({"DequantizeLinear", f"{MICROSOFT}::DequantizeLinear"})
STATIC = (
    "quantise the model statically, with a calibration (onnxruntime.quantization.quantize_static), or take the "
    "float32 model"
)
EIGHT_BITS = (
    "quantise activations and weights to 8 bits (quantize_static with activation_type and weight_type QInt8 or QUInt8)"
)
_STORED = {"int8": DataType.INT8, "uint8": DataType.INT8, "int32": DataType.INT32}


@frozen
class Encoding:
    """The type of a tensor's integers in the model, and the real numbers that they stand for."""

    type: str
    """int8, uint8 or int32. The network stores uint8 as int8, less 128."""
    scales: tuple[float, ...]
    """One scale, or one per index of `axis`; float32 numbers."""
    zero_points: tuple[int, ...]
    """Values of the model, one per scale."""
    axis: int = 0

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return len(self.scales) > 1

    @property
    def is_byte(self) -> bool:
        """Whether a layer of int8 can have the tensor as input or output."""
        return self.type != "int32" and not self.per_channel

    @property
    def is_symmetric(self) -> bool:
        """Whether 0 is stored as 0."""
        return not any(point + self.offset for point in self.zero_points)

    @property
    def offset(self) -> int:
        """What turns a value of the model into a stored one."""
        return -128 if self.type == "uint8" else 0

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the highest value of the model's type."""
        found = np.iinfo(self.type)
        return int(found.min), int(found.max)

    def stored(self, rounding: Rounding = Rounding.TFLM) -> TensorType:
        """Return the type of the network's tensor; `rounding` is the rule of the layer that makes it."""
        points = tuple(point + self.offset for point in self.zero_points)
        quantization = Quantization(scales=self.scales, zero_points=points, axis=self.axis)
        return TensorType(dtype=_STORED[self.type], quantization=quantization, rounding=rounding)

    def unsigned(self) -> TensorType:
        """Return the type of an input or output of the network, which has the model's type."""
        quantization = Quantization(scales=self.scales, zero_points=self.zero_points, axis=self.axis)
        return TensorType(dtype=DataType(self.type), quantization=quantization)

    def stored_data(self, data: Array) -> Array:
        """Return integers of the model as the network stores them."""
        return (data.astype(np.int16) + self.offset).astype(np.int8) if self.type == "uint8" else data

    def dequantised(self, data: Array) -> Array:
        """Return the real values of integers of the model."""
        scale, zero_point = self.along(data.ndim)
        with overflowing_floats():
            return np.asarray((data.astype(np.int64) - zero_point).astype(np.float32) * scale, np.float32)

    def quantised(self, data: Array) -> Array:
        """Return the integers of the model for real values: divided, rounded to even and saturated."""
        scale, zero_point = self.along(data.ndim)
        low, high = self.limits
        with ieee_floats():
            steps = np.rint(np.asarray(data, np.float32) / scale).astype(np.float64)
        moved = np.nan_to_num(steps, nan=-np.inf) + zero_point
        return np.asarray(np.clip(moved, low, high), self.type)

    def transposed(self, permutation: tuple[int, ...]) -> Encoding:
        """Return the encoding of a transposed tensor."""
        return replace(self, axis=permutation.index(self.axis)) if self.per_channel else self

    def within(self, bounds: tuple[float, float], limits: Sequence[int] | None = None) -> tuple[int, int]:
        """Return the limits of values of the model, by default those of the type, clamped as Clip does."""
        clamped = np.clip(np.clip(limits or self.limits, *bounds), *self.limits)
        return int(clamped[0]), int(clamped[1])

    def along(self, rank: int) -> tuple[Array, Array]:
        """Return the scales and the zero points with which an array of this rank broadcasts."""
        shape = [1] * rank
        if self.per_channel:
            shape[self.axis] = len(self.scales)
        scale = np.array(self.scales, np.float32).reshape(shape)
        return scale, np.array(self.zero_points, np.int64).reshape(shape)


def encoding_of(node: Node, constants: Mapping[str, Array], data_type: str | None, shape: tuple[int, ...]) -> Encoding:
    """Return the encoding that a QuantizeLinear or DequantizeLinear states.

    `data_type` is the type of the integers, None for QuantizeLinear; `shape` is that of the data, () if it is unknown,
    which matters for scales per channel only.

    Raises:
        ModelError: the parameters do not fit.
        UnsupportedError: the quantisation is of a kind that networks do not have.
    """
    scale = _parameter(node, constants, 1, "scale")
    zero_point = _parameter(node, constants, 2, "zero point") if node.has_input(2) else None
    if node.flag("block_size"):
        raise UnsupportedError(
            f"its attribute 'block_size' is {node.integer('block_size')}: scales per block are not supported",
            hint="quantise per tensor or per channel",
        )
    type_ = _type(node, zero_point, data_type)
    if scale is None or scale.dtype != np.float32:
        raise UnsupportedError(
            f"its scale is {None if scale is None else scale.dtype}, expected float32",
            hint="export the model in float32 before it is quantised",
        )
    count = scale.size
    if zero_point is None:
        zero_point = np.zeros(count, np.int32)
    if zero_point.size != count or scale.ndim > 1 or count == 0:
        raise ModelError(f"its scale and zero point have shapes {list(scale.shape)} and {list(zero_point.shape)}")
    scales = tuple(map(float, scale.reshape(-1)))
    if not all(np.isfinite(each) and each > 0 for each in scales):
        raise ModelError(f"its scale is {next(each for each in scales if not each > 0 or not np.isfinite(each))}")
    points = tuple(map(int, zero_point.reshape(-1)))
    axis = 0
    if count > 1:
        axis = node.integer("axis", 1)
        if not -len(shape) <= axis < len(shape) or shape[axis] != count:
            raise UnsupportedError(
                f"it has {count} scales for axis {axis} of a tensor of shape {list(shape)}, expected a constant with "
                "as many channels, or one scale",
                hint="quantise activations per tensor",
            )
        axis %= len(shape)
    return Encoding(type=type_, scales=scales, zero_points=points, axis=axis)


def _type(node: Node, zero_point: Array | None, data_type: str | None) -> str:
    """Return the type of the integers; UnsupportedError unless it is one of those that networks have."""
    found = data_type or (str(zero_point.dtype) if zero_point is not None else "uint8")
    if data_type is None and zero_point is None:
        number = node.integer("output_dtype", 0)
        found = type_name(number) if number else "uint8"
    if found not in _STORED:
        raise UnsupportedError(f"it quantises to {found}, expected int8 or uint8", hint=EIGHT_BITS)
    if zero_point is not None and str(zero_point.dtype) != found:
        raise ModelError(f"its zero point is {zero_point.dtype}, expected {found} as the data is")
    return found


def _parameter(node: Node, constants: Mapping[str, Array], position: int, role: str) -> Array | None:
    if not node.has_input(position):
        raise ModelError(f"its {role} is absent, expected a tensor")
    data = constants.get(node.inputs[position])
    if data is None:
        raise UnsupportedError(f"its {role} is computed at run time, expected a constant", hint=STATIC)
    return data
