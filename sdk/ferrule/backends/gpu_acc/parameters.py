# SPDX-License-Identifier: Apache-2.0
"""The parameter structs of the kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import TypeAlias

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.arithmetic.broadcast import MAX_AXES

ByAxis: TypeAlias = tuple[int, ...]
"""A number for each of the six axes."""
_NO_AXES = (0,) * MAX_AXES


@frozen
class Parameters:
    """The parameter struct of a kernel; its declaration in OpenCL C is generated from the fields of the subclass."""

    items: int = 0
    """The work items that have work: one per output element, per row of a layer of rows, per pixel of a convolution."""

    @classmethod
    def declaration(cls) -> str:
        """Return the struct in OpenCL C; each field is an int, or an array of int with an element for each axis."""
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        members = [
            f"    int {field.name}{f'[{MAX_AXES}]' if field.type == 'ByAxis' else ''};\n" for field in fields(cls)
        ]
        return f"struct {name} {{\n{''.join(members)}}};\n"

    def pack(self) -> Array:
        """Return the struct's contents as int32; values that exceed 32 bits are clamped."""
        limits = np.iinfo(np.int32)
        values = [np.ravel(getattr(self, field.name)) for field in fields(self)]
        return np.concatenate(values, dtype=np.int64).clip(limits.min, limits.max).astype(np.int32)


@frozen
class WindowParameters(Parameters):
    """The parameters of convolutions and pools, and of resize_bilinear_s8 and resize_bilinear_f32, without a window."""

    height: int
    width: int
    channels: int
    output_height: int
    output_width: int
    output_channels: int = 0
    """The output channels that the launch of a convolution computes."""
    window_height: int = 0
    window_width: int = 0
    stride_h: int = 0
    stride_w: int = 0
    dilation_h: int = 0
    dilation_w: int = 0
    padding_top: int = 0
    padding_left: int = 0
    multiplier: int = 0
    """Output channels per input channel; used by depthwise_conv2d_s8."""
    channel_stride: int = 0
    """Weights per tap: the output channels, rounded up to 8."""
    input_zero_point: int = 0
    output_zero_point: int = 0
    low: int = 0
    high: int = 0
    groups: int = 0
    """Groups of channels; used by conv2d_s8, which is launched once for each."""
    group: int = 0
    """The group that the launch computes."""


@frozen
class ElementwiseParameters(Parameters):
    """The parameters of the kernels with one work item per element, which read neighbours of none; each uses some."""

    same_shape: int = 0
    extents: ByAxis = _NO_AXES
    first_strides: ByAxis = _NO_AXES
    """Steps in elements; 0 on axes along which the input is repeated."""
    second_strides: ByAxis = _NO_AXES
    third_strides: ByAxis = _NO_AXES
    first_offset: int = 0
    second_offset: int = 0
    left_shift: int = 0
    first_multiplier: int = 0
    first_shift: int = 0
    second_multiplier: int = 0
    second_shift: int = 0
    subtract: int = 0
    multiplier: int = 0
    shift: int = 0
    zero_point: int = 0
    low: int = 0
    """The lowest result, as `high` the highest; the bits of a float32 in binary_f32 and unary_f32."""
    high: int = 0
    operation: int = 0
    """The code of the layer type; in comparisons the sum of the relations that are true."""
    factor: int = 0
    """The bits of a float32: the slope of LEAKY_RELU in unary_f32, the scale in quantize_f32_s8."""
    input_type: int = 0
    """The code of the element type, as `output_type`; both are used by cast."""
    output_type: int = 0


@frozen
class MoveParameters(Parameters):
    """The parameters of move_8 to move_64."""

    first: int
    """The number of the input's first element, counted from 1 through all inputs."""
    count: int
    """The number of the input's elements."""
    fills: int
    """Whether the kernel writes the fill, too."""
    fill_low: int
    """The low 32 bits of the fill, as an int32."""
    fill_high: int


@frozen
class ReduceParameters(Parameters):
    """The parameters of the kernels of reductions."""

    count: int
    """The number of elements that each result combines."""
    largest: int
    """Whether the largest element is selected, or else the smallest."""
    offset: int = 0
    """The number with which an integer sum begins."""
    divisor: int = 1
    """Of a sum of floats."""
    multiplier: int = 0
    shift: int = 0
    zero_point: int = 0


@frozen
class RowParameters(Parameters):
    """The parameters of the kernels of softmax.cl and normalize.cl."""

    length: int
    operation: int = 0
    """The code of the layer type, in normalize_f32."""
    scale: int = 0
    """The bits of a float32, in normalize_f32."""
    zero_point: int = 0
    multiplier: int = 0
    """The factor of log_softmax_s8 from Q5 to differences of stored values, with `shift`."""
    shift: int = 0
    least: int = 0
    """The least difference whose exponential may count."""


@frozen
class GatherParameters(Parameters):
    """The parameters of gather_8 to gather_64."""

    run: int
    """Elements of a run, which one group of indices selects."""
    count: int
    """Runs that are selected from a block of the data."""
    outer: int
    """Blocks from which the same indices select."""
    block: int
    """Elements of a block."""
    depth: int
    """Indices of a group."""
    extents: ByAxis
    """The limit of each index of a group."""
    strides: ByAxis
    """The step of each index, in elements."""


STRUCTS: tuple[type[Parameters], ...] = (
    WindowParameters,
    ElementwiseParameters,
    MoveParameters,
    ReduceParameters,
    RowParameters,
    GatherParameters,
)
"""All structs, in the order of their declarations."""
CODES: Mapping[DataType | LayerType, int] = {each: code for code, each in enumerate((*DataType, *LayerType))}
"""The numbers by which kernels know element types and layer types."""


def float_bits(value: float) -> int:
    """Return the bits of a float32 as an int32, as which structs hold it."""
    return int(np.float32(value).view(np.int32))


def definitions() -> str:
    """Return the codes and the structs in OpenCL C; the codes are TYPE_INT8, LAYER_ABS and so on."""
    codes = (
        f"#define {'TYPE' if isinstance(each, DataType) else 'LAYER'}_{each.name} {code}\n"
        for each, code in CODES.items()
    )
    return "".join((*codes, *(struct.declaration() for struct in STRUCTS)))
