# SPDX-License-Identifier: Apache-2.0
"""The OpenCL program, built once per device, and the parameter structs of its kernels."""

from __future__ import annotations

import logging
import threading
import warnings
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ferrule.backends.gpu_acc.opencl import OpenClDevice
from ferrule.errors import FerruleError
from ferrule.graph import Array

if TYPE_CHECKING:
    import pyopencl as cl

_FOLDER = Path(__file__).parent / "kernels"
# the order matters: a source may use the functions of the sources before it
_SOURCES = ("fixed_point", "conv2d", "depthwise_conv2d", "elementwise", "pool2d", "table", "softmax", "quantize")
_OPTIONS = ["-cl-std=CL1.2"]
_LOCK = threading.Lock()
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedParameters(Parameters):
    """The parameters of conv2d_s8 and depthwise_conv2d_s8."""

    struct: ClassVar[str] = "weighted_parameters"
    height: int
    width: int
    channels: int
    output_height: int
    output_width: int
    output_channels: int
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementwiseParameters(Parameters):
    """The parameters of sum_s8, product_s8, maximum_s8 and minimum_s8; the last two use only the first five fields."""

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
    high: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TableParameters(Parameters):
    """The parameters of table_s8 and table_s8_f32."""

    struct: ClassVar[str] = "table_parameters"
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxParameters(Parameters):
    """The parameters of softmax_s8."""

    struct: ClassVar[str] = "softmax_parameters"
    rows: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeParameters(Parameters):
    """The parameters of quantize_f32_s8."""

    struct: ClassVar[str] = "quantize_parameters"
    elements: int
    scale_bits: int
    """The bits of the float32 scale, as an int32."""
    zero_point: int


_STRUCTS: tuple[type[Parameters], ...] = (
    WeightedParameters,
    ElementwiseParameters,
    PoolParameters,
    TableParameters,
    SoftmaxParameters,
    QuantizeParameters,
)


def kernel(device: OpenClDevice, name: str) -> cl.Kernel:
    """Return a new kernel object for the caller; OpenCL stores the arguments in the kernel object.

    Raises:
        FerruleError: the device's compiler rejects the program.
    """
    import pyopencl as cl

    with _LOCK:
        return cl.Kernel(_program(device), name)


def source() -> str:
    """Return the program in OpenCL C."""
    return "\n".join(
        [struct.declaration() for struct in _STRUCTS]
        + [(_FOLDER / f"{name}.cl").read_text(encoding="utf-8") for name in _SOURCES]
    )


@cache
def _program(device: OpenClDevice) -> cl.Program:
    return build(device, source())


def build(device: OpenClDevice, text: str) -> cl.Program:
    """Return a program built for a device; what the device's compiler says goes to the debug log.

    Raises:
        FerruleError: the device's compiler rejects the program.
    """
    import pyopencl as cl

    try:
        with warnings.catch_warnings():  # some drivers always say something, which pyopencl turns into a warning
            warnings.simplefilter("ignore", cl.CompilerWarning)
            program: cl.Program = cl.Program(device.context, text).build(options=_OPTIONS, devices=[device.device])
    except cl.Error as error:
        last = "\n".join(str(error).splitlines()[-20:])
        raise FerruleError(f"the kernels of GpuAcc cannot be built for {device.title}: {last}") from error
    said = str(program.get_build_info(device.device, cl.program_build_info.LOG)).strip()  # type: ignore[no-untyped-call]
    if said:
        _LOGGER.debug("the compiler of %s says: %s", device.title, said)
    return program
