# SPDX-License-Identifier: Apache-2.0
"""Draws random layers of an operator: shapes, parameters, constants and quantisations."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ferrule.graph import Array, DataType, Descriptor, Quantization, Shape, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import NO_PADDING, Padding, same_of

FROM_0_TO_1: Mapping[DataType, Quantization] = {
    DataType.INT8: Quantization.of(1 / 256, -128),
    DataType.INT16: Quantization.of(1 / 32768),
}
"""The output quantisation of LOGISTIC and SOFTMAX that TensorFlow Lite prescribes, by type."""
FROM_MINUS_1_TO_1: Mapping[DataType, Quantization] = {
    DataType.INT8: Quantization.of(1 / 128),
    DataType.INT16: Quantization.of(1 / 32768),
}
"""The output quantisation of TANH that TensorFlow Lite prescribes, by type."""


@dataclass(slots=True)
class LayerSample:
    """A random layer under construction: the operator adds inputs and constants, and sets the remaining fields."""

    dice: random.Random
    dtype: DataType
    inputs: list[TensorInfo] = field(default_factory=list)
    """The inputs that are present, in order."""
    absent: frozenset[int] = frozenset()
    """Positions of absent inputs of the layer, before the last one that is present."""
    constants: dict[int, Array] = field(default_factory=dict)
    """By index of input: the data of the constant inputs."""
    output_type: DataType | None = None
    output: Quantization | None = None
    further: list[tuple[DataType, Quantization | None]] = field(default_factory=list)
    """Types and quantisations of the outputs after the first; the others have those of the first."""

    def image(self) -> Shape:
        """Draw the shape of an image."""
        return (self.dice.choice([1, 1, 2]), self.dice.randint(3, 7), self.dice.randint(3, 7), self.dice.randint(1, 9))

    def shape(self, most_axes: int = 4) -> Shape:
        """Draw a shape of 1 to `most_axes` axes."""
        return tuple(self.dice.randint(1, 6) for _ in range(self.dice.randint(1, most_axes)))

    def quantization(self, dtype: DataType, scale: float | None = None) -> Quantization | None:
        """Draw the quantisation of an 8-bit or int16 activation, with zero point 0 for int16; None for other types."""
        if dtype not in {DataType.INT8, DataType.INT16, DataType.UINT8}:
            return None
        zero_point = self.dice.choice([-128, -5, 0, 3, 127]) if dtype is not DataType.INT16 else 0
        if dtype is DataType.UINT8:
            zero_point += 128
        return Quantization.of(scale or self.dice.choice([0.5, 0.02, 0.05, 0.11]), zero_point)

    def take(self, shape: Shape, quantization: Quantization | None = None) -> TensorInfo:
        """Add a non-constant input."""
        info = TensorInfo(
            f"input_{len(self.inputs)}",
            shape,
            self.dtype,
            quantization=quantization or self.quantization(self.dtype),
        )
        self.inputs.append(info)
        return info

    def keep(self, shape: Shape) -> None:
        """Add a non-constant input, whose quantisation is that of the output."""
        self.output = self.take(shape).quantization

    def add(self, name: str, shape: Shape, dtype: DataType, quantization: Quantization | None = None) -> None:
        """Add an input of any type."""
        self.inputs.append(TensorInfo(name, shape, dtype, quantization=quantization))

    def hold(self, name: str, array: Array, quantization: Quantization | None = None) -> None:
        """Add a constant input."""
        dtype = DataType(array.dtype.name)
        self.constants[len(self.inputs)] = array
        self.add(name, array.shape, dtype, quantization)

    def array(self, shape: Shape, dtype: DataType, low: int = -127, high: int = 127) -> Array:
        """Draw normally distributed floats, or integers from `low` to `high`, both included."""
        generator = np.random.default_rng(self.dice.getrandbits(32))
        if dtype.is_float:
            return generator.normal(0, 1, shape).astype(dtype.numpy)
        return generator.integers(low, high, shape, endpoint=True).astype(dtype.numpy)

    def weigh(self, shape: Shape, axis: int) -> None:
        """Add weights and usually a bias; the output's scale is chosen so that some results saturate."""
        channels = shape[axis]
        source = self.inputs[0]
        with_bias = self.dice.random() < 0.8
        if self.dtype.is_float:
            self.hold("weights", self.array(shape, self.dtype))
            if with_bias:
                self.hold("bias", self.array((channels,), self.dtype))
            return
        count = self.dice.choice([1, channels])
        scales = tuple(float(np.float32(self.dice.uniform(0.002, 0.03))) for _ in range(count))
        offset = self.dtype is DataType.INT8 and count == 1 and self.dice.random() < 0.25
        zero_points = (self.dice.randint(-128, 127),) if offset else (0,) * count
        self.hold(
            "weights",
            self.array(shape, DataType.INT8),
            Quantization(scales=scales, zero_points=zero_points, axis=axis),
        )
        scale = 1.0 if source.quantization is None else source.scale
        if with_bias:
            wide = DataType.INT64 if self.dtype is DataType.INT16 else DataType.INT32
            sums = tuple(float(np.float32(scale * own)) for own in scales)
            self.hold(
                "bias",
                self.array((channels,), wide, -3000, 3000),
                Quantization(scales=sums, zero_points=(0,) * count),
            )
        products = int(np.prod(shape)) // channels
        self.output = self.quantization(self.dtype, scale * scales[0] * 40 * products**0.5)

    def pair(self, most: int) -> tuple[int, int]:
        """Draw the height and the width of a window, or strides, from 1 to `most`."""
        return self.dice.randint(1, most), self.dice.randint(1, most)

    def activation(self) -> Activation:
        """Draw a fused activation."""
        return self.dice.choice(list(Activation))

    def padding(self, shape: Shape, window: tuple[int, int], strides: tuple[int, int]) -> Padding:
        """Draw either no padding or the SAME padding of an image."""
        if self.dice.random() < 0.4:
            return NO_PADDING
        return same_of(shape[1:3], window, strides)


def sample_unary(
    descriptor: Callable[[LayerSample], Descriptor], *, same: bool = True
) -> Callable[[LayerSample], Descriptor]:
    """Return a function that draws a layer with one input; unless `same`, the output has its own quantisation."""

    def make(sample: LayerSample) -> Descriptor:
        info = sample.take(sample.shape())
        sample.output = info.quantization if same else sample.quantization(sample.dtype)
        return descriptor(sample)

    return make


def sample_fixed(descriptor: Descriptor, fixed: Mapping[DataType, Quantization]) -> Callable[[LayerSample], Descriptor]:
    """Return a function that draws a layer with one input and a prescribed output quantisation."""

    def make(sample: LayerSample) -> Descriptor:
        sample.take((sample.dice.randint(1, 3), sample.dice.randint(1, 40)))
        sample.output = fixed.get(sample.dtype)
        return descriptor

    return make
