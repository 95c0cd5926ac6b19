# SPDX-License-Identifier: Apache-2.0
"""From operators of the file to descriptors: parameter tensors become fields, padding becomes explicit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Descriptor, LayerType
from ferrule.importers.tflite.node import Node, activation, axis, finite
from ferrule.importers.tflite.windows import average_or_max_pool, convolution, depthwise_convolution, fully_connected
from ferrule.operators.activation import Activation
from ferrule.operators.binary import BinaryDescriptor, ExtremumDescriptor
from ferrule.operators.join import ConcatenationDescriptor, SplitDescriptor
from ferrule.operators.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.reduce import ReduceDescriptor
from ferrule.operators.reshape import ExpandDimsDescriptor, ReshapeDescriptor, SqueezeDescriptor
from ferrule.operators.slice import SliceDescriptor, StridedSliceDescriptor
from ferrule.operators.softmax import SoftmaxDescriptor
from ferrule.operators.transpose import TransposeDescriptor

_MANY = 1 << 12
"""The most inputs or outputs that an operator may have."""
_ONE = range(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one operator is read."""

    descriptor: Callable[[Node], Descriptor]
    data_inputs: range
    """Positions of the tensors that stay inputs of the layer; the others are parameters."""
    inputs: range
    """How many inputs the operator may have."""
    outputs: range = _ONE
    optional: frozenset[int] = frozenset()
    """Positions of data inputs that may be absent."""


def _arithmetic(table: str) -> Callable[[Node], Descriptor]:
    """ADD, SUB, MUL. `pot_scale_int16` is ignored, as TensorFlow Lite Micro ignores it."""

    def descriptor(node: Node) -> Descriptor:
        options = node.optional_options(table)
        if options is None:
            return BinaryDescriptor()
        return BinaryDescriptor(activation=activation(options.FusedActivationFunction()))

    return descriptor


def _concatenation(node: Node) -> Descriptor:
    options = node.options("ConcatenationOptions")
    if activation(options.FusedActivationFunction()) is not Activation.NONE:
        raise UnsupportedError("it has a fused activation, expected none")
    return ConcatenationDescriptor(axis=axis(options.Axis(), len(node.input(0).shape)))


def _split(node: Node) -> Descriptor:
    splits = node.options("SplitOptions").NumSplits()
    if splits != len(node.record.outputs):
        raise ModelError(f"it splits into {splits}, but has {len(node.record.outputs)} outputs")
    return SplitDescriptor(axis=axis(node.integer(0, "axis"), len(node.input(1).shape)), splits=splits)


def _pads(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pads = node.integer_array(1, "paddings")
    rank = len(node.input(0).shape)
    if pads.shape != (rank, 2):
        raise ModelError(f"its paddings have shape {list(pads.shape)}, expected [{rank}, 2]")
    if pads.min(initial=0) < 0:
        raise ModelError(f"its paddings go down to {pads.min()}, expected none below 0")
    return tuple(pads[:, 0].tolist()), tuple(pads[:, 1].tolist())


def _pad(node: Node) -> Descriptor:
    before, after = _pads(node)
    return PadDescriptor(before=before, after=after)


def _pad_v2(node: Node) -> Descriptor:
    before, after = _pads(node)
    info, data = node.scalar(2, "fill")
    output = node.output()
    if info.dtype is not output.dtype:
        raise ModelError(f"its fill '{info.name}' is {info.dtype}, expected {output.dtype} as its output")
    if info.quantization != output.quantization:
        raise UnsupportedError(f"its fill '{info.name}' has another quantisation than its output, expected the same")
    value = data.ravel()[0].item()
    if math.isnan(value):
        raise ModelError(f"its fill '{info.name}' is {value}, expected a number")
    return PadV2Descriptor(before=before, after=after, value=value)


def _reshape(node: Node) -> Descriptor:
    options = node.optional_options("ReshapeOptions")
    if node.has_input(1):
        shape = node.integers(1, "shape")
    elif options is not None and options.NewShapeLength():
        shape = tuple(options.NewShapeAsNumpy().tolist())
        if shape == (0,):
            shape = ()  # how old converters write a scalar
    else:
        shape = node.output().shape
    if sum(extent == -1 for extent in shape) > 1 or any(extent < -1 or extent == 0 for extent in shape):
        raise ModelError(f"its new shape is {list(shape)}, expected positive extents and at most one -1")
    return ReshapeDescriptor(shape=shape)


def _squeeze(node: Node) -> Descriptor:
    options = node.optional_options("SqueezeOptions")
    if options is None or not options.SqueezeDimsLength():
        return SqueezeDescriptor()
    return SqueezeDescriptor(axes=_axes(options.SqueezeDimsAsNumpy().tolist(), node))


def _expand_dims(node: Node) -> Descriptor:
    return ExpandDimsDescriptor(axis=axis(node.integer(1, "axis"), len(node.input(0).shape) + 1))


def _transpose(node: Node) -> Descriptor:
    permutation = node.integers(1, "permutation")
    if sorted(permutation) != list(range(len(node.input(0).shape))):
        raise ModelError(f"its permutation is {list(permutation)}, expected each axis of its input once")
    return TransposeDescriptor(permutation=permutation)


def _reduce(node: Node) -> Descriptor:
    options = node.optional_options("ReducerOptions")
    return ReduceDescriptor(
        axes=_axes(node.integers(1, "axes"), node), keep_dims=options is not None and bool(options.KeepDims())
    )


def _axes(values: tuple[int, ...], node: Node) -> tuple[int, ...]:
    rank = len(node.input(0).shape)
    return tuple(sorted({axis(value, rank) for value in values}))


def _slice(node: Node) -> Descriptor:
    shape = node.input(0).shape
    begin, size = node.integers(1, "begin"), node.integers(2, "size")
    if not len(begin) == len(size) == len(shape):
        raise ModelError(f"its begin and size have {len(begin)} and {len(size)} elements, expected {len(shape)} each")
    for start, count, extent in zip(begin, size, shape, strict=True):
        end = extent if count == -1 else start + count
        if not 0 <= start < end <= extent:
            raise ModelError(
                f"it takes begin {list(begin)} and size {list(size)}, expected a part of shape {list(shape)}"
            )
    return SliceDescriptor(begin=begin, size=size)


def _strided_slice(node: Node) -> Descriptor:
    shape = node.input(0).shape
    options = node.optional_options("StridedSliceOptions")
    begin, end, strides = (node.integers(1, "begin"), node.integers(2, "end"), node.integers(3, "strides"))
    count = len(begin)
    if not count == len(end) == len(strides) or count > len(shape):
        raise ModelError(
            f"its begin, end and strides have {count}, {len(end)} and {len(strides)} elements, "
            f"expected as many of each and at most {len(shape)}"
        )
    if 0 in strides:
        raise ModelError(f"its strides are {list(strides)}, expected none to be 0")
    masks = {"begin": 0, "end": 0, "shrink": 0}
    if options is not None:
        if options.EllipsisMask() or options.NewAxisMask():
            raise UnsupportedError("it has an ellipsis or new axes, expected begin, end and strides alone")
        masks = {"begin": options.BeginMask(), "end": options.EndMask(), "shrink": options.ShrinkAxisMask()}
        if options.Offset():
            end = tuple(
                _start(first, step, extent, open_=bool(masks["begin"] >> index & 1)) + last
                for index, (first, last, step, extent) in enumerate(zip(begin, end, strides, shape, strict=False))
            )
    rest = len(shape) - count
    named, open_ = (1 << count) - 1, ((1 << rest) - 1) << count
    return StridedSliceDescriptor(
        begin=begin + (0,) * rest,
        end=end + (0,) * rest,
        strides=strides + (1,) * rest,
        begin_mask=masks["begin"] & named | open_,
        end_mask=masks["end"] & named | open_,
        shrink_axis_mask=masks["shrink"] & named,
    )


def _start(begin: int, stride: int, extent: int, *, open_: bool) -> int:
    """Return where a strided slice starts along one axis; its `offset` counts the end from there."""
    if open_:
        return 0 if stride > 0 else extent - 1
    start = begin + extent if begin < 0 else begin
    return max(0, min(start, extent)) if stride > 0 else max(-1, min(start, extent - 1))


def _softmax(node: Node) -> Descriptor:
    return SoftmaxDescriptor(beta=finite(node.options("SoftmaxOptions").Beta(), "beta"))


def _leaky_relu(node: Node) -> Descriptor:
    return LeakyReluDescriptor(alpha=finite(node.options("LeakyReluOptions").Alpha(), "alpha"))


def _unary(descriptor: Callable[[], Descriptor]) -> Rule:
    return Rule(descriptor=lambda _: descriptor(), data_inputs=range(1), inputs=_ONE)


def _binary(descriptor: Callable[[Node], Descriptor]) -> Rule:
    return Rule(descriptor=descriptor, data_inputs=range(2), inputs=range(2, 3))


def _shaped(descriptor: Callable[[Node], Descriptor], parameters: int, optional: int = 0) -> Rule:
    """Return the rule of an operator with one data input and parameters behind it."""
    total = 1 + parameters
    return Rule(descriptor=descriptor, data_inputs=range(1), inputs=range(total - optional, total + 1))


def _weighted(descriptor: Callable[[Node], Descriptor]) -> Rule:
    return Rule(descriptor=descriptor, data_inputs=range(3), inputs=range(2, 4), optional=frozenset({2}))


RULES: Mapping[LayerType, Rule] = {
    LayerType.ADD: _binary(_arithmetic("AddOptions")),
    LayerType.AVERAGE_POOL_2D: _shaped(average_or_max_pool, 0),
    LayerType.CONCATENATION: Rule(descriptor=_concatenation, data_inputs=range(_MANY), inputs=range(1, _MANY)),
    LayerType.CONV_2D: _weighted(convolution),
    LayerType.DEPTHWISE_CONV_2D: _weighted(depthwise_convolution),
    LayerType.DEQUANTIZE: _unary(DequantizeDescriptor),
    LayerType.EXPAND_DIMS: _shaped(_expand_dims, 1),
    LayerType.FULLY_CONNECTED: _weighted(fully_connected),
    LayerType.HARD_SWISH: _unary(HardSwishDescriptor),
    LayerType.LEAKY_RELU: _shaped(_leaky_relu, 0),
    LayerType.LOGISTIC: _unary(LogisticDescriptor),
    LayerType.MAXIMUM: _binary(lambda _: ExtremumDescriptor()),
    LayerType.MAX_POOL_2D: _shaped(average_or_max_pool, 0),
    LayerType.MEAN: _shaped(_reduce, 1),
    LayerType.MINIMUM: _binary(lambda _: ExtremumDescriptor()),
    LayerType.MUL: _binary(_arithmetic("MulOptions")),
    LayerType.PAD: _shaped(_pad, 1),
    LayerType.PADV2: _shaped(_pad_v2, 2),
    LayerType.PRELU: _binary(lambda _: PreluDescriptor()),
    LayerType.QUANTIZE: _unary(QuantizeDescriptor),
    LayerType.RELU: _unary(ReluDescriptor),
    LayerType.RELU6: _unary(ReluDescriptor),
    LayerType.RELU_N1_TO_1: _unary(ReluDescriptor),
    LayerType.RESHAPE: _shaped(_reshape, 1, optional=1),
    LayerType.SLICE: _shaped(_slice, 2),
    LayerType.SOFTMAX: _shaped(_softmax, 0),
    LayerType.SPLIT: Rule(descriptor=_split, data_inputs=range(1, 2), inputs=range(2, 3), outputs=range(1, _MANY)),
    LayerType.SQUEEZE: _shaped(_squeeze, 0),
    LayerType.STRIDED_SLICE: _shaped(_strided_slice, 3),
    LayerType.SUB: _binary(_arithmetic("SubOptions")),
    LayerType.SUM: _shaped(_reduce, 1),
    LayerType.TANH: _unary(TanhDescriptor),
    LayerType.TRANSPOSE: _shaped(_transpose, 1),
}
"""One rule per layer type."""
