# SPDX-License-Identifier: Apache-2.0
"""One layer of any type in any element type, at random: shapes, parameters, constants and quantisations."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, Descriptor, Graph, Layer, LayerType, Quantization, Shape, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.binary import BinaryDescriptor, ExtremumDescriptor
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.convert import ConvertFp16ToFp32Descriptor, ConvertFp32ToFp16Descriptor
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.join import ConcatenationDescriptor, SplitDescriptor
from ferrule.operators.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.pool2d import Pool2dDescriptor
from ferrule.operators.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.reduce import ReduceDescriptor
from ferrule.operators.reshape import ExpandDimsDescriptor, ReshapeDescriptor, SqueezeDescriptor
from ferrule.operators.slice import SliceDescriptor, StridedSliceDescriptor
from ferrule.operators.softmax import SoftmaxDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.operators.transpose import TransposeDescriptor
from ferrule.operators.window import Padding, same_padding

_INTEGERS = (DataType.INT8, DataType.INT16, DataType.INT32)


@dataclass(slots=True)
class Parts:
    """A layer that is being made."""

    dice: random.Random
    dtype: DataType
    descriptor: Descriptor | None = None
    inputs: list[TensorInfo] = field(default_factory=list)
    constants: dict[int, Array] = field(default_factory=dict)
    """By input: the data of those that are constants."""
    output_type: DataType | None = None
    output: Quantization | None = None

    def image(self) -> Shape:
        """Draw the shape of an image."""
        return (self.dice.choice([1, 1, 2]), self.dice.randint(3, 7), self.dice.randint(3, 7), self.dice.randint(1, 9))

    def shape(self, most_axes: int = 4) -> Shape:
        """Draw any shape."""
        return tuple(self.dice.randint(1, 6) for _ in range(self.dice.randint(1, most_axes)))

    def quantization(self, dtype: DataType, scale: float | None = None) -> Quantization | None:
        """Draw the quantisation of an activation: a zero point in int8 only, none at all in int32 and wider."""
        if dtype not in {DataType.INT8, DataType.INT16}:
            return None
        zero_point = self.dice.choice([-128, -5, 0, 3, 127]) if dtype is DataType.INT8 else 0
        return Quantization.of(scale or self.dice.choice([0.5, 0.02, 0.05, 0.11]), zero_point)

    def take(self, shape: Shape, quantization: Quantization | None = None) -> TensorInfo:
        """Add an input that is computed."""
        info = TensorInfo(
            name=f"input_{len(self.inputs)}",
            shape=shape,
            dtype=self.dtype,
            quantization=quantization or self.quantization(self.dtype),
        )
        self.inputs.append(info)
        return info

    def hold(self, name: str, array: Array, quantization: Quantization | None = None) -> None:
        """Add an input that is a constant."""
        dtype = DataType(array.dtype.name)
        self.constants[len(self.inputs)] = array
        self.inputs.append(TensorInfo(name=name, shape=array.shape, dtype=dtype, quantization=quantization))

    def array(self, shape: Shape, dtype: DataType, low: int = -127, high: int = 127) -> Array:
        """Draw values: normal floats, or integers of a range."""
        generator = np.random.default_rng(self.dice.getrandbits(32))
        if dtype.is_float:
            return generator.normal(0, 1, shape).astype(dtype.numpy)
        return generator.integers(low, high, shape, endpoint=True).astype(dtype.numpy)

    def weigh(self, shape: Shape, axis: int) -> None:
        """Add weights and, mostly, a bias; the output's scale is such that some results saturate."""
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
        self.hold(
            "weights",
            self.array(shape, DataType.INT8),
            Quantization(scales=scales, zero_points=(0,) * count, axis=axis),
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


def _activation(parts: Parts) -> Activation:
    return parts.dice.choice(list(Activation))


def _padding(parts: Parts, shape: Shape, window: tuple[int, int], strides: tuple[int, int]) -> Padding:
    if parts.dice.random() < 0.4:
        return Padding(top=0, bottom=0, left=0, right=0)
    top, bottom = same_padding(shape[1], window[0], strides[0])
    left, right = same_padding(shape[2], window[1], strides[1])
    return Padding(top=top, bottom=bottom, left=left, right=right)


def _conv2d(parts: Parts) -> None:
    shape, dice = parts.image(), parts.dice
    window, strides = (dice.randint(1, 3), dice.randint(1, 3)), (dice.randint(1, 2), dice.randint(1, 2))
    parts.take(shape)
    parts.weigh((dice.randint(1, 9), *window, shape[3]), 0)
    parts.descriptor = Conv2dDescriptor(
        stride_h=strides[0],
        stride_w=strides[1],
        padding=_padding(parts, shape, window, strides),
        activation=_activation(parts),
    )


def _depthwise(parts: Parts) -> None:
    shape, dice = parts.image(), parts.dice
    window, strides = (dice.randint(1, 3), dice.randint(1, 3)), (dice.randint(1, 2), dice.randint(1, 2))
    multiplier = dice.choice([1, 1, 2])
    parts.take(shape)
    parts.weigh((1, *window, shape[3] * multiplier), 3)
    parts.descriptor = DepthwiseConv2dDescriptor(
        depth_multiplier=multiplier,
        stride_h=strides[0],
        stride_w=strides[1],
        padding=_padding(parts, shape, window, strides),
        activation=_activation(parts),
    )


def _fully_connected(parts: Parts) -> None:
    depth, keep = parts.dice.randint(1, 33), parts.dice.random() < 0.4
    parts.take((2, 3, depth) if keep else (parts.dice.randint(1, 3), depth))
    parts.weigh((parts.dice.randint(1, 17), depth), 0)
    parts.descriptor = FullyConnectedDescriptor(keep_num_dims=keep, activation=_activation(parts))


def _pool2d(parts: Parts) -> None:
    shape, dice = parts.image(), parts.dice
    window, strides = (dice.randint(1, 3), dice.randint(1, 3)), (dice.randint(1, 2), dice.randint(1, 2))
    parts.output = parts.take(shape).quantization
    parts.descriptor = Pool2dDescriptor(
        pool_h=window[0],
        pool_w=window[1],
        stride_h=strides[0],
        stride_w=strides[1],
        padding=_padding(parts, shape, window, strides),
        activation=_activation(parts),
    )


def _pair(parts: Parts, quantization: Quantization | None) -> None:
    shape = parts.shape()
    other = shape if parts.dice.random() < 0.5 else tuple(parts.dice.choice([extent, 1]) for extent in shape)
    parts.take(shape, quantization)
    parts.take(other, quantization)


def _arithmetic(parts: Parts) -> None:
    _pair(parts, None)
    integer = parts.dtype is DataType.INT32
    parts.descriptor = BinaryDescriptor(activation=Activation.NONE if integer else _activation(parts))
    scales = [info.scale for info in parts.inputs if info.quantization is not None]
    parts.output = parts.quantization(parts.dtype, 1.7 * max(scales, default=1.0))


def _extremum(parts: Parts) -> None:
    parts.output = parts.quantization(parts.dtype)
    _pair(parts, parts.output)
    parts.descriptor = ExtremumDescriptor()


def _unary(descriptor: Callable[[Parts], Descriptor], *, same: bool = True) -> Callable[[Parts], None]:
    """Return the maker of a layer of one input; the output has its quantisation, or one that differs."""

    def make(parts: Parts) -> None:
        info = parts.take(parts.shape())
        parts.output = info.quantization if same else parts.quantization(parts.dtype)
        parts.descriptor = descriptor(parts)

    return make


def _prelu(parts: Parts) -> None:
    shape = parts.image()
    parts.take(shape)
    dtype = DataType.INT8 if parts.dtype is DataType.INT16 else parts.dtype
    parts.hold("alpha", parts.array((1, 1, shape[3]), dtype, 0, 100), parts.quantization(dtype))
    parts.output = parts.quantization(parts.dtype)
    parts.descriptor = PreluDescriptor()


def _table(descriptor: Descriptor, fixed: Mapping[DataType, Quantization]) -> Callable[[Parts], None]:
    """Return the maker of a layer whose output has a quantisation that the operator prescribes."""

    def make(parts: Parts) -> None:
        parts.take((parts.dice.randint(1, 3), parts.dice.randint(1, 40)))
        parts.output = fixed.get(parts.dtype)
        parts.descriptor = descriptor

    return make


def _quantize(parts: Parts) -> None:
    parts.take(parts.shape(), Quantization.of(0.5) if parts.dtype is DataType.INT32 else None)
    targets = (DataType.INT8, DataType.INT16) if parts.dtype.is_float else _INTEGERS
    parts.output_type = parts.dice.choice(targets)
    wide = parts.output_type is DataType.INT32
    parts.output = Quantization.of(0.25) if wide else parts.quantization(parts.output_type)
    parts.descriptor = QuantizeDescriptor()


def _dequantize(parts: Parts) -> None:
    parts.take(parts.shape())
    parts.output_type = DataType.FLOAT32
    parts.descriptor = DequantizeDescriptor()


def _convert(descriptor: Descriptor, output: DataType) -> Callable[[Parts], None]:
    def make(parts: Parts) -> None:
        parts.take(parts.shape())
        parts.output_type = output
        parts.descriptor = descriptor

    return make


def _reduce(parts: Parts) -> None:
    shape = parts.shape()
    parts.output = parts.take(shape).quantization
    axes = parts.dice.sample(range(len(shape)), parts.dice.randint(1, len(shape)))
    parts.descriptor = ReduceDescriptor(axes=tuple(sorted(axes)), keep_dims=parts.dice.random() < 0.5)


def _reshape(parts: Parts) -> Descriptor:
    return ReshapeDescriptor(shape=(1, -1) if parts.dice.random() < 0.5 else parts.inputs[0].shape[::-1])


def _transpose(parts: Parts) -> Descriptor:
    rank = len(parts.inputs[0].shape)
    return TransposeDescriptor(permutation=tuple(parts.dice.sample(range(rank), rank)))


def _sides(parts: Parts) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(parts.inputs[0].shape)
    before, after = (tuple(parts.dice.randint(0, 2) for _ in range(rank)) for _ in range(2))
    return before, after


def _pad(parts: Parts) -> Descriptor:
    before, after = _sides(parts)
    return PadDescriptor(before=before, after=after)


def _padv2(parts: Parts) -> Descriptor:
    before, after = _sides(parts)
    return PadV2Descriptor(before=before, after=after, value=1.5 if parts.dtype.is_float else 7)


def _slice(parts: Parts) -> Descriptor:
    begin = tuple(parts.dice.randint(0, extent - 1) for extent in parts.inputs[0].shape)
    size = tuple(parts.dice.choice([-1, 1]) for _ in begin)
    return SliceDescriptor(begin=begin, size=size)


def _strided_slice(parts: Parts) -> Descriptor:
    shape = parts.inputs[0].shape
    begin = tuple(parts.dice.randint(0, extent - 1) for extent in shape)
    strides = tuple(parts.dice.choice([1, 2]) for _ in shape)
    return StridedSliceDescriptor(begin=begin, end=shape, strides=strides)


def _concatenation(parts: Parts) -> None:
    shape = parts.shape()
    axis = parts.dice.randint(0, len(shape) - 1)
    parts.output = parts.take(shape).quantization
    for _ in range(parts.dice.randint(0, 2)):
        parts.take((*shape[:axis], parts.dice.randint(1, 4), *shape[axis + 1 :]), parts.output)
    parts.descriptor = ConcatenationDescriptor(axis=axis)


def _split(parts: Parts) -> None:
    shape = parts.shape()
    axis, count = parts.dice.randint(0, len(shape) - 1), parts.dice.randint(1, 3)
    parts.output = parts.take((*shape[:axis], shape[axis] * count, *shape[axis + 1 :])).quantization
    parts.descriptor = SplitDescriptor(axis=axis, splits=count)


_UNIT = {DataType.INT8: Quantization.of(1 / 256, -128), DataType.INT16: Quantization.of(1 / 32768)}
_SIGNED = {DataType.INT8: Quantization.of(1 / 128), DataType.INT16: Quantization.of(1 / 32768)}

_MAKERS: Mapping[LayerType, Callable[[Parts], None]] = {
    LayerType.CONV_2D: _conv2d,
    LayerType.DEPTHWISE_CONV_2D: _depthwise,
    LayerType.FULLY_CONNECTED: _fully_connected,
    LayerType.AVERAGE_POOL_2D: _pool2d,
    LayerType.MAX_POOL_2D: _pool2d,
    LayerType.ADD: _arithmetic,
    LayerType.SUB: _arithmetic,
    LayerType.MUL: _arithmetic,
    LayerType.MAXIMUM: _extremum,
    LayerType.MINIMUM: _extremum,
    LayerType.RELU: _unary(lambda _: ReluDescriptor()),
    LayerType.RELU6: _unary(lambda _: ReluDescriptor()),
    LayerType.RELU_N1_TO_1: _unary(lambda _: ReluDescriptor()),
    LayerType.LEAKY_RELU: _unary(lambda parts: LeakyReluDescriptor(alpha=parts.dice.choice([0.25, -0.5, 2.0]))),
    LayerType.PRELU: _prelu,
    LayerType.HARD_SWISH: _unary(lambda _: HardSwishDescriptor(), same=False),
    LayerType.LOGISTIC: _table(LogisticDescriptor(), _UNIT),
    LayerType.TANH: _table(TanhDescriptor(), _SIGNED),
    LayerType.SOFTMAX: _table(SoftmaxDescriptor(beta=0.5), _UNIT),
    LayerType.QUANTIZE: _quantize,
    LayerType.DEQUANTIZE: _dequantize,
    LayerType.MEAN: _reduce,
    LayerType.SUM: _reduce,
    LayerType.RESHAPE: _unary(_reshape),
    LayerType.SQUEEZE: _unary(lambda _: SqueezeDescriptor()),
    LayerType.EXPAND_DIMS: _unary(lambda parts: ExpandDimsDescriptor(axis=parts.dice.randint(0, 1))),
    LayerType.TRANSPOSE: _unary(_transpose),
    LayerType.PAD: _unary(_pad),
    LayerType.PADV2: _unary(_padv2),
    LayerType.SLICE: _unary(_slice),
    LayerType.STRIDED_SLICE: _unary(_strided_slice),
    LayerType.CONCATENATION: _concatenation,
    LayerType.SPLIT: _split,
    LayerType.CONVERT_FP16_TO_FP32: _convert(ConvertFp16ToFp32Descriptor(), DataType.FLOAT32),
    LayerType.CONVERT_FP32_TO_FP16: _convert(ConvertFp32ToFp16Descriptor(), DataType.FLOAT16),
}

LAYER_TYPES: tuple[LayerType, ...] = tuple(_MAKERS)
"""All that a backend can be asked for; DEBUG, MEM_COPY and MEM_IMPORT are run by the runtime itself."""


def layer_case(type_: LayerType, dtype: DataType, seed: int) -> Graph:
    """Return a graph of one layer, 'layer', the same for the same arguments.

    The first input is of type `dtype`; where the operator does not take that type, the graph is not a valid one, and
    no backend may take the layer.
    """
    parts = Parts(dice=random.Random(f"{type_} {dtype} {seed}"), dtype=dtype)  # noqa: S311 - no secret
    _MAKERS[type_](parts)
    assert parts.descriptor is not None
    graph = Graph(f"{type_.lower()}_{dtype}_{seed}")
    for index, info in enumerate(parts.inputs):
        if index in parts.constants:
            graph.add_constant(info, parts.constants[index])
        else:
            graph.add_input(info)
    outputs = [
        TensorInfo(name=f"output_{i}", shape=shape, dtype=parts.output_type or dtype, quantization=parts.output)
        for i, shape in enumerate(_shapes(type_, parts.descriptor, parts.inputs))
    ]
    layer = Layer(
        name="layer",
        type=type_,
        descriptor=parts.descriptor,
        inputs=tuple(info.name for info in parts.inputs),
        outputs=tuple(info.name for info in outputs),
    )
    graph.add_layer(layer, outputs)
    graph.set_outputs(layer.outputs)
    return graph


def computed_weights(graph: Graph) -> Graph:
    """Return a graph like that of `layer_case` whose constants are inputs of the network."""
    result = Graph(f"{graph.name}_computed")
    (layer,) = graph.layers
    for name in layer.present_inputs:
        result.add_input(graph.info(name))
    result.add_layer(layer, graph.output_infos(layer))
    result.set_outputs(layer.outputs)
    return result


def _shapes(type_: LayerType, descriptor: Descriptor, inputs: Sequence[TensorInfo]) -> Sequence[Shape]:
    try:
        return OPERATORS[type_].infer(descriptor, inputs)
    except FerruleError:  # the operator does not have such inputs: any shape will do for a layer that nobody takes
        return [inputs[0].shape]
