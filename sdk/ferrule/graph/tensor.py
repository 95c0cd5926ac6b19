# SPDX-License-Identifier: Apache-2.0
"""Tensors: name, shape, element type, quantisation and, for constants, data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ferrule._frozen import frozen, positional
from ferrule._typing import override
from ferrule.errors import ModelError
from ferrule.graph import real_values
from ferrule.graph.datatype import DataType
from ferrule.graph.names import check_name

Shape = tuple[int, ...]
Array = NDArray[Any]

_NAME_CHARACTERS = 60


def read_only(array: Array) -> Array:
    """Make an array read-only, so that it can be shared, and return it."""
    array.setflags(write=False)
    return array


def brief(name: str) -> str:
    """Return a name for display: in quotes, with the middle of a very long name left out."""
    if len(name) > _NAME_CHARACTERS:
        half = _NAME_CHARACTERS // 2
        name = f"{name[:half]}...{name[-half:]}"
    return repr(name)


@frozen
class Quantization:
    """Affine quantisation, real = scale * (stored - zero_point), per tensor or per channel.

    Scales are positive, finite and exactly representable in float32, except those of weights of uint8 models, whose
    product with the data's scale is.
    """

    scales: tuple[float, ...]
    """One scale, or one per index of `axis`."""
    zero_points: tuple[int, ...] = (0,)
    """One zero point per scale."""
    axis: int = 0
    """The channel axis; without meaning if there is only one scale."""

    def __post_init__(self) -> None:
        if not self.scales or len(self.scales) != len(self.zero_points):
            raise ModelError(
                f"quantisation has {len(self.scales)} scales and {len(self.zero_points)} zero points, "
                "expected the same number of each, at least one"
            )
        for scale in self.scales:
            if not (math.isfinite(scale) and scale > 0):
                raise ModelError(f"quantisation scale is {scale}, expected a positive finite number")

    @override
    def __repr__(self) -> str:
        return f"Quantization({self})"

    @override
    def __str__(self) -> str:
        if self.per_channel:
            return f"{len(self.scales)} scales on axis {self.axis}"
        return f"scale {self.scale:.6g}, zero point {self.zero_point}"

    @classmethod
    def of(cls, scale: float, zero_point: int = 0) -> Quantization:
        """Return a per-tensor quantisation; the scale is rounded to float32."""
        return cls(scales=(float(np.float32(scale)),), zero_points=(zero_point,))

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return len(self.scales) > 1

    @property
    def scale(self) -> float:
        """The single scale; valid only for per-tensor quantisation, which the operator's check must ensure."""
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        """The single zero point; see `scale`."""
        return self.zero_points[0]


@positional
class TensorInfo:
    """A tensor without its data."""

    name: str
    shape: Shape
    """Extents, outermost dimension first; images are NHWC. () is a scalar."""
    dtype: DataType
    quantization: Quantization | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "tensor")
        if any(extent <= 0 for extent in self.shape):
            raise ModelError(f"tensor '{self.name}' has shape {list(self.shape)}, expected positive extents")
        quantization = self.quantization
        if quantization is None:
            return
        if not self.dtype.is_quantizable:
            raise ModelError(f"tensor '{self.name}' is {self.dtype} and has a quantisation, expected none")
        limits = np.iinfo(self.dtype.numpy)
        for zero_point in quantization.zero_points:
            if not limits.min <= zero_point <= limits.max:
                raise ModelError(
                    f"tensor '{self.name}' has zero point {zero_point}, "
                    f"expected {limits.min} to {limits.max} for {self.dtype}"
                )
        if quantization.per_channel:
            axis = quantization.axis
            if not 0 <= axis < len(self.shape) or len(quantization.scales) != self.shape[axis]:
                raise ModelError(
                    f"tensor '{self.name}' of shape {list(self.shape)} has {len(quantization.scales)} "
                    f"scales on axis {axis}, expected one per index of an existing axis"
                )

    @override
    def __repr__(self) -> str:
        return f"TensorInfo({self})"

    @override
    def __str__(self) -> str:
        quantization = "" if self.quantization is None else f", {self.quantization}"
        return f"{brief(self.name)}, {self.dtype}{list(self.shape)}{quantization}"

    @property
    def elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Size of the dense tensor, in bytes."""
        return self.elements * self.dtype.size_bytes

    @property
    def scale(self) -> float:
        """The per-tensor scale.

        Raises:
            ModelError: the tensor is not quantised.
        """
        return self._quantization().scale

    @property
    def zero_point(self) -> int:
        """The per-tensor zero point; raises ModelError like `scale`."""
        return self._quantization().zero_point

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest real number that the integers of a tensor with one scale represent.

        Raises:
            ModelError: the tensor is not quantised.
        """
        given, integers = self._quantization(), np.iinfo(self.dtype.numpy)
        low, high = (given.scale * (int(end) - given.zero_point) for end in (integers.min, integers.max))
        return low, high

    def quantize(self, real: ArrayLike) -> Array:
        """Return real numbers, of any shape, as the tensor stores them.

        A quantised tensor takes floating-point numbers. Its elements are the float32 quotient real / scale with halves
        rounded away from zero, plus the zero point, saturated at the limits of its type, as by TensorFlow Lite Micro's
        QUANTIZE; infinities saturate, too. With scales per channel, the array has the channels on their axis. Any other
        tensor takes the numbers that its type has: a float is rounded to it, and an integer or bool takes whole numbers
        of any type.

        Raises:
            InputError: the tensor is quantised or a float, and the array is of integers, which could be stored values
                or pixels; the array has NaN and the tensor is quantised; a number is finite and beyond the range of a
                float, or is not a whole number in the range of a tensor without quantisation.
        """
        return real_values.quantize(self, real)

    def dequantize(self, stored: ArrayLike) -> Array:
        """Return the real numbers that elements represent, scale * (stored - zero point), rounded once to float32.

        A float tensor's elements become float32; those of an integer or bool without quantisation stay as they are.

        Raises:
            InputError: the elements have another type than the tensor, or lack the axis of scales per channel.
        """
        return real_values.dequantize(self, stored)

    def _quantization(self) -> Quantization:
        if self.quantization is None:
            raise ModelError(f"tensor '{self.name}' is {self.dtype} without quantisation, expected one")
        return self.quantization


@positional
class Tensor:
    """A tensor of a graph. `data` is set for constants: read-only, C-contiguous, with the shape and type of `info`."""

    info: TensorInfo
    data: Array | None = None

    @override
    def __repr__(self) -> str:
        return f"Tensor({self.info}{', constant' if self.is_constant else ''})"

    @property
    def is_constant(self) -> bool:
        """Whether the tensor is a constant."""
        return self.data is not None


def little_endian(array: Array) -> bytes:
    """Return the elements of an array in C's order, as boards and files have them."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def constant(info: TensorInfo, data: Array) -> Tensor:
    """Return a constant with data that nothing else writes; it becomes read-only."""
    return Tensor(info, read_only(data))


def renamed(tensor: Tensor, name: str) -> Tensor:
    """Return the tensor with another name."""
    return replace(tensor, info=replace(tensor.info, name=name))
