# SPDX-License-Identifier: Apache-2.0
"""The parameter structs of the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import ClassVar

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array, DataType, LayerType


@frozen
class Parameters:
    """The parameter struct of a kernel; its declaration in OpenCL C is generated from the fields of the subclass."""

    struct: ClassVar[str]
    lengths: ClassVar[dict[str, int]] = {}
    """Numbers of elements, by name, of the fields that are arrays."""

    @classmethod
    def declaration(cls) -> str:
        """Return the struct in OpenCL C; each field is an int, or an array of int if it has a length."""
        members = [
            f"    int {field.name}{f'[{cls.lengths[field.name]}]' if field.name in cls.lengths else ''};\n"
            for field in fields(cls)
        ]
        return f"struct {cls.struct} {{\n{''.join(members)}}};\n"

    def pack(self) -> Array:
        """Return the struct's contents as int32; values that exceed 32 bits are clamped."""
        values: list[int] = []
        for field in fields(self):
            value = getattr(self, field.name)
            values += value if isinstance(value, tuple) else (value,)
        limits = np.iinfo(np.int32)
        return np.array(values, np.int64).clip(limits.min, limits.max).astype(np.int32)


@frozen
class WeightedParameters(Parameters):
    """The parameters of conv2d_s8, depthwise_conv2d_s8 and transpose_conv_s8."""

    struct: ClassVar[str] = "weighted_parameters"
    height: int
    width: int
    channels: int
    output_height: int
    output_width: int
    output_channels: int
    """The output channels that the launch computes."""
    output_pixels: int
    """The number of pixels in all images of the batch."""
    window_height: int
    window_width: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int
    padding_top: int
    padding_left: int
    multiplier: int
    """Output channels per input channel; used by depthwise_conv2d_s8."""
    channel_stride: int
    """Weights per tap: the output channels, rounded up to 8."""
    input_zero_point: int
    output_zero_point: int
    low: int
    high: int
    groups: int = 1
    """Groups of channels; used by conv2d_s8, which is launched once for each."""
    group: int = 0
    """The group that the launch computes."""


@frozen
class ElementwiseParameters(Parameters):
    """The parameters of the kernels with two inputs that broadcast; each uses the first five fields and some others."""

    struct: ClassVar[str] = "elementwise_parameters"
    lengths: ClassVar[dict[str, int]] = {"extents": 6, "first_strides": 6, "second_strides": 6}
    elements: int
    same_shape: int
    extents: tuple[int, ...]
    first_strides: tuple[int, ...]
    """Steps in elements; 0 on axes along which the input is repeated."""
    second_strides: tuple[int, ...]
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
    """The lowest result, as `high` the highest; the bits of a float32 in binary_f32."""
    high: int = 0
    operation: int = 0
    """The code of the layer type; in comparisons the sum of the relations that are true."""


@frozen
class PoolParameters(Parameters):
    """The parameters of average_pool2d_s8 and max_pool2d_s8."""

    struct: ClassVar[str] = "pool_parameters"
    elements: int
    height: int
    width: int
    channels: int
    output_height: int
    output_width: int
    window_height: int
    window_width: int
    stride_h: int
    stride_w: int
    padding_top: int
    padding_left: int
    low: int
    high: int


@frozen
class TableParameters(Parameters):
    """The parameters of table_s8 and table_s8_f32."""

    struct: ClassVar[str] = "table_parameters"
    elements: int


@frozen
class SoftmaxParameters(Parameters):
    """The parameters of softmax_s8."""

    struct: ClassVar[str] = "softmax_parameters"
    rows: int
    length: int


@frozen
class QuantizeParameters(Parameters):
    """The parameters of quantize_f32_s8."""

    struct: ClassVar[str] = "quantize_parameters"
    elements: int
    scale_bits: int
    """The bits of the float32 scale, as an int32."""
    zero_point: int


@frozen
class MoveParameters(Parameters):
    """The parameters of move_8 to move_64."""

    struct: ClassVar[str] = "move_parameters"
    elements: int
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
class UnaryParameters(Parameters):
    """The parameters of unary_f32."""

    struct: ClassVar[str] = "unary_parameters"
    elements: int
    operation: int
    """The code of the layer type."""
    slope: int
    """The bits of a float32, as `low` and `high`: the slope of LEAKY_RELU."""
    low: int
    high: int


@frozen
class SelectParameters(Parameters):
    """The parameters of select_8 to select_64; strides as those of ElementwiseParameters."""

    struct: ClassVar[str] = "select_parameters"
    lengths: ClassVar[dict[str, int]] = dict.fromkeys(
        ("extents", "condition_strides", "first_strides", "second_strides"), 6
    )
    elements: int
    extents: tuple[int, ...]
    condition_strides: tuple[int, ...]
    first_strides: tuple[int, ...]
    second_strides: tuple[int, ...]


@frozen
class CastParameters(Parameters):
    """The parameters of cast."""

    struct: ClassVar[str] = "cast_parameters"
    elements: int
    input_type: int
    """The code of the element type, as `output_type`."""
    output_type: int


@frozen
class ReduceParameters(Parameters):
    """The parameters of the kernels of reductions."""

    struct: ClassVar[str] = "reduce_parameters"
    elements: int
    count: int
    """The number of elements that each result combines."""
    largest: int
    """Whether the largest element is selected, or else the smallest."""
    offset: int
    """The number with which an integer sum begins."""
    divisor: int
    """Of a sum of floats."""
    multiplier: int
    shift: int
    zero_point: int


@frozen
class RowParameters(Parameters):
    """The parameters of the kernels of normalize.cl."""

    struct: ClassVar[str] = "row_parameters"
    rows: int
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
class ResizeParameters(Parameters):
    """The parameters of resize_bilinear_s8 and resize_bilinear_f32."""

    struct: ClassVar[str] = "resize_parameters"
    elements: int
    height: int
    width: int
    channels: int
    output_height: int
    output_width: int


@frozen
class GatherParameters(Parameters):
    """The parameters of gather_8 to gather_64."""

    struct: ClassVar[str] = "gather_parameters"
    lengths: ClassVar[dict[str, int]] = {"extents": 6, "strides": 6}
    elements: int
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
    extents: tuple[int, ...]
    """The limit of each index of a group."""
    strides: tuple[int, ...]
    """The step of each index, in elements."""


CODES: Mapping[DataType | LayerType, int] = {each: code for code, each in enumerate((*DataType, *LayerType))}
"""The numbers by which kernels know element types and layer types."""


def float_bits(value: float) -> int:
    """Return the bits of a float32 as an int32, as which structs hold it."""
    return int(np.float32(value).view(np.int32))


def definitions() -> str:
    """Return the codes in OpenCL C: TYPE_INT8, LAYER_ABS and so on."""
    return "".join(
        f"#define {'TYPE' if isinstance(each, DataType) else 'LAYER'}_{each.name} {code}\n"
        for each, code in CODES.items()
    )


STRUCTS: tuple[type[Parameters], ...] = (
    WeightedParameters,
    ElementwiseParameters,
    PoolParameters,
    TableParameters,
    SoftmaxParameters,
    QuantizeParameters,
    MoveParameters,
    UnaryParameters,
    SelectParameters,
    CastParameters,
    ReduceParameters,
    RowParameters,
    ResizeParameters,
    GatherParameters,
)
"""All structs, in the order of their declarations."""
