# SPDX-License-Identifier: Apache-2.0
"""Random networks of one layer, each a function of a few numbers, so that a failing one can be made smaller."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import partial

import numpy as np
from layer_case import layer_network, tensor
from recurrent_case import recurrent_network

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding, same_padding
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.functions_of_two import ExtremumDescriptor
from ferrule.operators.elementwise.nonlinear import LogisticDescriptor, TanhDescriptor
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.reductions.layer_normalization import normalization_of
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor

MOST_MACS = 250_000
"""Larger layers are made smaller, so that ten thousand can be emulated."""
_SHARES = {
    LayerType.CONV_2D: 40,
    LayerType.TRANSPOSE_CONV: 6,
    LayerType.DEPTHWISE_CONV_2D: 28,
    LayerType.FULLY_CONNECTED: 10,
    LayerType.AVERAGE_POOL_2D: 5,
    LayerType.MAX_POOL_2D: 4,
    LayerType.ADD: 4,
    LayerType.SUB: 2,
    LayerType.MUL: 3,
    LayerType.PRELU: 2,
    LayerType.MAXIMUM: 1,
    LayerType.MINIMUM: 1,
    LayerType.SOFTMAX: 2,
    LayerType.RELU: 2,
    LayerType.MEAN: 2,
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: 4,
    LayerType.SVDF: 3,
    LayerType.BATCH_MATMUL: 5,
    LayerType.LEAKY_RELU: 1,
    LayerType.LOGISTIC: 1,
    LayerType.TANH: 1,
    LayerType.LAYER_NORMALIZATION: 1,
}
"""How often layers occur."""
TYPES = tuple(_SHARES)
"""The types of layers that are drawn."""
_RECURRENT = frozenset({LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, LayerType.SVDF})
_EXTREMA = frozenset({LayerType.MAXIMUM, LayerType.MINIMUM})
_OF_TWO = frozenset({LayerType.ADD, LayerType.SUB, LayerType.MUL, LayerType.PRELU, *_EXTREMA})
_SIGMOIDAL = frozenset({LayerType.LOGISTIC, LayerType.TANH})
_WINDOWED = frozenset(
    {
        LayerType.CONV_2D,
        LayerType.TRANSPOSE_CONV,
        LayerType.DEPTHWISE_CONV_2D,
        LayerType.AVERAGE_POOL_2D,
        LayerType.MAX_POOL_2D,
    }
)
_WITH_ACTIVATION = _WINDOWED | {LayerType.FULLY_CONNECTED, LayerType.ADD, LayerType.SUB, LayerType.MUL}
_INT16, _FLOAT32 = 0.2, 0.15
"""Shares of types beside int8."""
_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-41, 1e-30, 3e38, -3e38, 1.0, -1.0], np.float32)
"""What floats have where integers have the ends of their range, and some of their values now and then."""
_WINDOWS = [(1, 1)] * 6 + [(3, 3)] * 8 + [(2, 2), (4, 4), (5, 5), (1, 3), (3, 1), (10, 4), (1, 7), (5, 1), (2, 3)]
_DEPTHWISE_WINDOWS = [(1, 3), (3, 1), (5, 1), (1, 5), (5, 5), (4, 10), (7, 7), (1, 9), (1, 21), (8, 8)]
_WEIGHTS = ["any"] * 6 + ["extreme", "sparse", "small", "rows"]
_USUAL = 0.6
"""Share of the cases that are like layers of trained networks."""
_INPUTS = ["any"] * 12 + ["extreme", "extreme", "lowest", "highest"]


@frozen
class Case:
    """A network of one layer and its inputs; all that is not a field is drawn from `seed`."""

    type: LayerType
    dtype: DataType
    seed: int
    batch: int = 1
    height: int = 1
    width: int = 1
    channels: int = 1
    outputs: int = 1
    """Output channels of CONV_2D and FULLY_CONNECTED; the depth multiplier of DEPTHWISE_CONV_2D; units; columns.

    Recurrent layers have the height as steps, or as frames of the state, and SVDF the width as its rank.
    """
    groups: int = 1
    """Of CONV_2D; channels and outputs are those of a group."""
    kernel_h: int = 1
    kernel_w: int = 1
    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0
    activation: Activation = Activation.NONE
    weights: str = "any"
    inputs: str = "any"
    style: str = "any"
    """"usual" for zero points, scales and bias as trained networks have them."""

    @property
    def size(self) -> int:
        """A measure of the effort to understand the case."""
        return sum(self._numbers().values())

    def _numbers(self) -> dict[str, int]:
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "seed"}
        return {name: value for name, value in named.items() if isinstance(value, int)}

    def smaller(self) -> Iterator[Case]:
        """Yield the cases with one number less, the smallest first; not all of them are valid."""
        for plain in (
            replace(self, activation=Activation.NONE),
            replace(self, weights="any"),
            replace(self, inputs="any"),
            replace(self, style="any"),
        ):
            if plain != self:
                yield plain
        for name, value in self._numbers().items():
            least = 0 if name in {"top", "bottom", "left", "right"} else 1
            for less in dict.fromkeys((least, value // 2, value - 1)):
                if least <= less < value:
                    yield replace(self, **{name: less})  # type: ignore[arg-type]

    @property
    def brief(self) -> str:
        """The fields that differ from their defaults, as Python."""
        said = [
            f"{field.name}={_python(getattr(self, field.name))}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"Case({', '.join(said)})"

    def network(self) -> Network:
        """Return the network; UnsupportedError or ValueError if there is none with these numbers."""
        network = _network(self)
        network.validate()
        return network

    def arrays(self, network: Network) -> list[Array]:
        """Return an array for each input of the network."""
        generator = np.random.default_rng((self.seed, 1))
        return [_values(generator, info, self.inputs) for info in network.inputs]


def draw(seed: int, index: int, type_: LayerType | None = None) -> Case:
    """Return the case of this number in the sequence of a seed, of this type if it is given."""
    for attempt in range(100):
        case = _fitting(_draw(random.Random(f"{seed} {index} {attempt}"), type_))
        try:
            case.network()
        except (UnsupportedError, ValueError):
            continue
        return case
    raise AssertionError(f"no valid case of seed {seed} and index {index}")


def _python(value: object) -> str:
    return (
        f"{type(value).__name__}.{value.name}" if isinstance(value, LayerType | DataType | Activation) else repr(value)
    )


def _draw(numbers: random.Random, type_: LayerType | None) -> Case:
    type_ = type_ or numbers.choices(TYPES, list(_SHARES.values()))[0]
    dtype = numbers.choices(
        [DataType.INT16, DataType.FLOAT32, DataType.INT8], [_INT16, _FLOAT32, 1 - _INT16 - _FLOAT32]
    )[0]
    if dtype is DataType.FLOAT32 and type_ in _RECURRENT:
        dtype = DataType.INT8
    case = Case(
        type=type_,
        dtype=dtype,
        seed=numbers.randrange(1 << 32),
        batch=numbers.choices([1, 2, 3], [85, 10, 5])[0],
        height=_extent(numbers),
        width=_extent(numbers),
        channels=_channels(numbers),
        outputs=_channels(numbers),
        activation=numbers.choice([Activation.RELU, *Activation]),
        weights=numbers.choice(_WEIGHTS),
        inputs=numbers.choice(_INPUTS),
    )
    if type_ is LayerType.CONV_2D and numbers.random() < 0.2:
        case = replace(
            case,
            groups=numbers.choice([2, 2, 3, 4, 8]),
            channels=numbers.choice([case.channels, 4, numbers.randint(1, 8)]),
            outputs=numbers.choice([case.outputs, 4, numbers.randint(1, 8)]),
        )
    if type_ is LayerType.DEPTHWISE_CONV_2D:
        case = replace(case, outputs=numbers.choices([1, 2, 3, 4, 8], [75, 9, 6, 5, 5])[0])
    if type_ not in _WITH_ACTIVATION:
        case = replace(case, activation=Activation.NONE)
    if type_ in _RECURRENT:
        case = replace(case, height=numbers.choice([8, numbers.randint(1, 12)]), width=numbers.choice([1, 1, 2, 3]))
    if type_ in {LayerType.SVDF, LayerType.LAYER_NORMALIZATION}:
        case = replace(case, dtype=DataType.INT8)
    if numbers.random() < _USUAL:
        case = _usual(numbers, case)
    return _with_window(numbers, case) if type_ in _WINDOWED else case


def _usual(numbers: random.Random, case: Case) -> Case:
    """Return the case with the choices that most layers of trained networks have, for which the best kernels are."""
    return replace(
        case,
        style="usual",
        batch=1,
        outputs=1 if case.type is LayerType.DEPTHWISE_CONV_2D else case.outputs,
        activation=numbers.choice([Activation.RELU, Activation.RELU, Activation.NONE])
        if case.activation is not Activation.NONE
        else case.activation,
        weights=numbers.choice(["any", "any", "any", "sparse", "rows"]),
    )


def _extent(numbers: random.Random) -> int:
    return numbers.choice([1, 2, 3, numbers.randint(1, 12), numbers.randint(1, 12), numbers.randint(8, 24)])


def _channels(numbers: random.Random) -> int:
    return numbers.choice(
        [1, 2, 3, numbers.randint(1, 40), numbers.randint(1, 40), 4 * numbers.randint(1, 10), 8, 16, 32]
    )


def _with_window(numbers: random.Random, case: Case) -> Case:
    usual = case.style == "usual"
    kernel_h, kernel_w = numbers.choice(_WINDOWS)
    if case.type is LayerType.DEPTHWISE_CONV_2D and usual:
        kernel_h, kernel_w = numbers.choice([(3, 3)] * 6 + _DEPTHWISE_WINDOWS)
    elif numbers.random() < 0.15 and not usual:
        kernel_h, kernel_w = numbers.randint(1, 6), numbers.randint(1, 6)
    stride_h = stride_w = numbers.choice([1, 1, 2])
    if not usual and numbers.random() < 0.4:
        stride_h, stride_w = numbers.randint(1, 3), numbers.randint(1, 3)
    pool = case.type in {LayerType.AVERAGE_POOL_2D, LayerType.MAX_POOL_2D}
    dilation_h, dilation_w = (1, 1)
    if not pool and not usual and numbers.random() < 0.15:
        dilation_h, dilation_w = numbers.randint(1, 3), numbers.randint(1, 3)
    reach_h, reach_w = (kernel_h - 1) * dilation_h + 1, (kernel_w - 1) * dilation_w + 1
    kind = numbers.choices(["same", "valid", "explicit"], [70, 25, 5] if usual else [50, 25, 25])[0]
    if kind == "valid" and (reach_h > case.height or reach_w > case.width):
        kind = "same"
    if case.type is LayerType.TRANSPOSE_CONV:
        # of the padding behind, the height and width of the output follow
        dilation_h = dilation_w = 1
        top, left = numbers.randint(0, kernel_h - 1), numbers.randint(0, kernel_w - 1)
        bottom, right = numbers.randint(0, kernel_h - 1), numbers.randint(0, kernel_w - 1)
    elif kind == "same":
        top, bottom = same_padding(case.height, kernel_h, stride_h, dilation_h)
        left, right = same_padding(case.width, kernel_w, stride_w, dilation_w)
    elif kind == "explicit":
        # windows of convolutions may lie in the padding, on any side
        most_h, most_w = (kernel_h - 1, kernel_w - 1) if pool else (min(reach_h + 2, 8), min(reach_w + 2, 8))
        top, bottom = numbers.randint(0, most_h), numbers.randint(0, most_h)
        left, right = numbers.randint(0, most_w), numbers.randint(0, most_w)
    else:
        top = bottom = left = right = 0
    return replace(
        case,
        kernel_h=kernel_h,
        kernel_w=kernel_w,
        stride_h=stride_h,
        stride_w=stride_w,
        dilation_h=dilation_h,
        dilation_w=dilation_w,
        top=top,
        bottom=bottom,
        left=left,
        right=right,
    )


def _fitting(case: Case) -> Case:
    """Return the case with fewer pixels and channels if it would take too long."""
    while _work(case) > MOST_MACS:
        if case.height * case.width > 36 and case.type not in _RECURRENT:
            case = replace(case, height=max(1, case.height * 2 // 3), width=max(1, case.width * 2 // 3))
        else:
            case = replace(case, channels=max(1, case.channels * 2 // 3), outputs=max(1, case.outputs * 2 // 3))
    return case


def _work(case: Case) -> int:
    if case.type is LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM:
        return 4 * case.batch * case.height * case.outputs * (case.channels + case.outputs)
    if case.type is LayerType.SVDF:
        return case.batch * case.width * case.outputs * (case.channels + case.height)
    pixels = case.batch * case.height * case.width // (case.stride_h * case.stride_w)
    if case.type is LayerType.TRANSPOSE_CONV:
        pixels = case.batch * case.height * case.width
    return (pixels + 1) * case.groups * case.channels * case.outputs * case.kernel_h * case.kernel_w


def _network(case: Case) -> Network:
    generator = np.random.default_rng((case.seed, 0))
    if case.type in _RECURRENT:
        return recurrent_network(
            case.type,
            generator,
            batch=case.batch,
            steps=case.height,
            inputs=case.channels,
            units=case.outputs,
            rank=case.width,
            dtype=case.dtype,
            weights=partial(_weights, generator, case.weights, axis=0),
        )
    if case.type is LayerType.BATCH_MATMUL:
        return _product(case, generator)
    if case.type is LayerType.LAYER_NORMALIZATION:
        return _normalised(case, generator)
    descriptor = _descriptor(case)
    if case.dtype is DataType.FLOAT32:
        return _of_floats(case, generator, descriptor)
    data = tensor("data", _data_shape(case), case.dtype, _scale(generator, -8, 2), _zero_point(generator, case.dtype))
    weights = _weights_shape(case)
    if weights is not None:
        return _weighted(case, generator, descriptor, data, *weights)
    if case.type in _OF_TWO:
        return _arithmetic(case, generator, descriptor, data)
    match case.type:
        case LayerType.LOGISTIC | LayerType.TANH:
            return layer_network(case.type, descriptor, [_sigmoidal(case, generator, data)], _sigmoidal_output(case))
        case LayerType.SOFTMAX:
            output = Quantization.of(1 / 256, -128) if case.dtype is DataType.INT8 else Quantization.of(1 / 32768)
            return layer_network(case.type, descriptor, [data], output)
        case LayerType.RELU | LayerType.LEAKY_RELU | LayerType.MEAN:
            output = Quantization.of(data.scale * _scale(generator, -1, 1), _zero_point(generator, case.dtype))
            return layer_network(case.type, descriptor, [data], output)
        case _:
            return layer_network(case.type, descriptor, [data], data.quantization)


def _weights_shape(case: Case) -> tuple[Shape, int] | None:
    """Return the shape of a layer's weights and the axis of their channels; None if it has none."""
    match case.type:
        case LayerType.CONV_2D | LayerType.TRANSPOSE_CONV:
            return (case.groups * case.outputs, case.kernel_h, case.kernel_w, case.channels), 0
        case LayerType.DEPTHWISE_CONV_2D:
            return (1, case.kernel_h, case.kernel_w, case.channels * case.outputs), 3
        case LayerType.FULLY_CONNECTED:
            return (case.outputs, case.channels * case.height), 0
        case _:
            return None


def _of_floats(case: Case, generator: np.random.Generator, descriptor: Descriptor) -> Network:
    data = tensor("data", _data_shape(case), case.dtype)
    weights = _weights_shape(case)
    if case.type in _OF_TWO:
        first, second = _shapes_of_two(case, generator, data.shape)
        infos = [replace(data, shape=first), tensor("other", second, case.dtype)]
        held = case.type is LayerType.PRELU or generator.random() < 0.2
        return layer_network(
            case.type, descriptor, infos, constants={1: _values(generator, infos[1], "any")} if held else {}
        )
    if weights is None:
        return layer_network(case.type, descriptor, [data])
    shape, axis = weights
    infos = [data, tensor("weights", shape, case.dtype)]
    constants = {1: _values(generator, infos[1], "any" if case.weights == "rows" else case.weights)}
    if generator.random() < 0.85:
        infos.append(tensor("bias", (shape[axis],), case.dtype))
        constants[2] = _values(generator, infos[2], "any")
    return layer_network(case.type, descriptor, infos, constants=constants)


def _sigmoidal(case: Case, generator: np.random.Generator, data: TensorInfo) -> TensorInfo:
    """Return the data with a scale that the kernel takes: a power of two for TANH and LOGISTIC of int16."""
    wide = case.dtype is DataType.INT16
    scale = 2.0 ** -int(generator.integers(10, 14)) if wide else _scale(generator, -8, -2)
    return replace(data, quantization=Quantization.of(scale, data.zero_point))


def _sigmoidal_output(case: Case) -> Quantization:
    if case.dtype is DataType.INT16:
        return Quantization.of(2.0**-15)
    return Quantization.of(1 / 256, -128) if case.type is LayerType.LOGISTIC else Quantization.of(1 / 128)


def _product(case: Case, generator: np.random.Generator) -> Network:
    """Return [batch, height * width, channels] times [channels, outputs]; inputs may be transposed or constant."""
    adjoint = generator.random(2) < 0.5
    batches = [(case.batch,), (case.batch,) if generator.random() < 0.7 else ()]
    generator.shuffle(batches)
    rows, depth, columns = case.height * case.width, case.channels, case.outputs
    ends = ((depth, rows) if adjoint[0] else (rows, depth), (columns, depth) if adjoint[1] else (depth, columns))
    descriptor = BatchMatmulDescriptor(adj_x=bool(adjoint[0]), adj_y=bool(adjoint[1]))
    shapes = [(*batch, *end) for batch, end in zip(batches, ends, strict=True)]
    if case.dtype is DataType.FLOAT32:
        named = zip(("data", "other"), shapes, strict=True)
        return layer_network(case.type, descriptor, [tensor(name, shape, case.dtype) for name, shape in named])
    infos = [
        tensor(name, shape, case.dtype, _scale(generator, -8, 0), _zero_point(generator, case.dtype))
        for name, shape in zip(("data", "other"), shapes, strict=True)
    ]
    reach = 73 * 73 / 60 if case.dtype is DataType.INT8 else 19_000 * 19_000 / 12_000
    largest = infos[0].scale * infos[1].scale * reach * depth**0.5 * _scale(generator, -2, 1)
    output = Quantization.of(float(np.float32(largest)), _zero_point(generator, case.dtype))
    held = int(generator.integers(0, 6))
    constants = {held: _values(generator, infos[held], "any")} if held < len(infos) else {}
    return layer_network(case.type, descriptor, infos, output, constants)


def _normalised(case: Case, generator: np.random.Generator) -> Network:
    """Return rows of all channels of a line, so that long ones are among them."""
    depth = case.width * case.channels
    source = tensor(
        "data",
        (case.batch, case.height, depth),
        case.dtype,
        _scale(generator, -8, 2),
        _zero_point(generator, case.dtype),
    )
    output = Quantization.of(_scale(generator, -7, -2), _zero_point(generator, case.dtype))
    gamma, beta = _weights(generator, case.weights, (depth,), 0) / 64, generator.normal(0, 0.4, depth)
    epsilon = float(generator.choice([0, 1e-5, 1e-5, 0.1]))
    descriptor = normalization_of(gamma, beta, epsilon, source, replace(source, quantization=output))
    return layer_network(case.type, descriptor, [source], output)


def _data_shape(case: Case) -> Shape:
    if case.type is LayerType.FULLY_CONNECTED:
        return (case.batch, case.channels * case.height)
    if case.type is LayerType.SOFTMAX:
        return (case.batch, case.height, case.channels)
    return (case.batch, case.height, case.width, case.groups * case.channels)


def _descriptor(case: Case) -> Descriptor:
    padding = Padding(top=case.top, bottom=case.bottom, left=case.left, right=case.right)
    strides = {"stride_h": case.stride_h, "stride_w": case.stride_w}
    dilations = {"dilation_h": case.dilation_h, "dilation_w": case.dilation_w}
    match case.type:
        case LayerType.CONV_2D:
            return Conv2dDescriptor(**strides, **dilations, padding=padding, activation=case.activation)
        case LayerType.DEPTHWISE_CONV_2D:
            return DepthwiseConv2dDescriptor(
                depth_multiplier=case.outputs, **strides, **dilations, padding=padding, activation=case.activation
            )
        case LayerType.TRANSPOSE_CONV:
            return TransposeConvDescriptor(
                output_h=max((case.height - 1) * case.stride_h + case.kernel_h - case.top - case.bottom, 1),
                output_w=max((case.width - 1) * case.stride_w + case.kernel_w - case.left - case.right, 1),
                **strides,
                pad_top=case.top,
                pad_left=case.left,
                activation=case.activation,
            )
        case LayerType.FULLY_CONNECTED:
            return FullyConnectedDescriptor(activation=case.activation)
        case LayerType.ADD | LayerType.SUB | LayerType.MUL:
            return BinaryDescriptor(activation=case.activation)
        case LayerType.PRELU:
            return PreluDescriptor()
        case LayerType.MAXIMUM | LayerType.MINIMUM:
            return ExtremumDescriptor()
        case LayerType.SOFTMAX:
            return SoftmaxDescriptor()
        case LayerType.RELU:
            return ReluDescriptor()
        case LayerType.LEAKY_RELU:
            return LeakyReluDescriptor(alpha=(0.01, 0.1, 0.25, 0.5)[case.seed % 4])
        case LayerType.LOGISTIC:
            return LogisticDescriptor()
        case LayerType.TANH:
            return TanhDescriptor()
        case LayerType.MEAN:
            axes = [(1, 2), (1, 2), (1,), (2,), (3,), (0, 3), (2, 3), (0, 1, 2, 3)]
            return ReduceDescriptor(axes=axes[case.seed % len(axes)])
        case _:
            return Pool2dDescriptor(
                pool_h=case.kernel_h, pool_w=case.kernel_w, **strides, padding=padding, activation=case.activation
            )


def _weighted(
    case: Case, generator: np.random.Generator, descriptor: Descriptor, data: TensorInfo, shape: Shape, axis: int
) -> Network:
    count = shape[axis]
    per_channel = case.type is not LayerType.FULLY_CONNECTED and generator.random() < 0.7
    spread = generator.choice([0.5, 2, 7])
    largest = _scale(generator, -9, -2)
    scales = [
        float(np.float32(largest * 2.0 ** -generator.uniform(0, spread))) for _ in range(count if per_channel else 1)
    ]
    weights = _weights(generator, case.weights, shape, axis)
    products = weights.size // count
    usual = np.sqrt(products) * 73 * (100 if case.dtype is DataType.INT8 else 19_000)
    fraction = 2.0 ** generator.uniform(-2, 1) * usual / (60 if case.dtype is DataType.INT8 else 12_000)
    if case.style == "any" and generator.random() < 0.12:
        fraction = 2.0 ** generator.uniform(-4, 1)  # the requantisation shifts to the left, or not at all
    low, high = case.activation.limits
    if high is not None:  # the limits lie inside the range of the type
        steps = (high - (low or 0)) / generator.uniform(60, 255) * (1 if case.dtype is DataType.INT8 else 2.0**-7)
        scales = [float(np.float32(scale * steps / (data.scale * max(scales) * fraction))) for scale in scales]
    output = Quantization.of(
        float(np.float32(data.scale * max(scales) * fraction)), _output_zero_point(case, generator)
    )
    infos = [
        data,
        TensorInfo(
            "weights",
            shape,
            DataType.INT8,
            quantization=Quantization(scales=tuple(scales), zero_points=(0,) * len(scales), axis=axis),
        ),
    ]
    arrays: Mapping[int, Array] = {1: weights}
    if generator.random() < 0.85:
        wide = case.dtype is DataType.INT16
        quantized = Quantization(
            scales=tuple(float(np.float32(data.scale * scale)) for scale in scales), zero_points=(0,) * len(scales)
        )
        dtype = DataType.INT64 if wide else DataType.INT32
        infos.append(TensorInfo("bias", (count,), dtype, quantization=quantized))
        bias = generator.normal(0, usual * generator.choice([0.1, 1, 1]), count)
        dead = generator.random(count) < generator.choice([0, 0, 0.3])
        bias[dead] = generator.choice([-1, 1]) * 260.0 * 128 * products
        arrays = {**arrays, 2: bias.astype(dtype.numpy)}
    return layer_network(case.type, descriptor, infos, output, arrays)


def _weights(generator: np.random.Generator, kind: str, shape: Shape, axis: int) -> Array:
    lowest = -128 if generator.random() < 0.15 else -127
    match kind:
        case "extreme":
            found = generator.choice([lowest, 127], shape)
        case "small":
            found = generator.integers(-3, 4, shape)
        case _:
            found = generator.integers(lowest, 128, shape)
    if kind == "sparse":
        found[generator.random(shape) < 0.8] = 0
    if kind == "rows":  # whole channels of zeros or of one value
        rows = np.moveaxis(found, axis, 0)
        for row in range(len(rows)):
            if generator.random() < 0.4:
                rows[row] = generator.choice([0, 1, lowest, 127])
    return found.astype(np.int8)


def _shapes_of_two(case: Case, generator: np.random.Generator, shape: Shape) -> list[Shape]:
    """Return shapes of which one or both are repeated along some axes; only the factors of PRELU may be."""
    shapes = [shape, shape]
    if generator.random() < 0.5:
        kept = 1 - int(generator.integers(2)) if case.type is not LayerType.PRELU else 0
        repeated = tuple(extent if generator.random() < 0.5 else 1 for extent in shape)
        shapes[1 - kept] = repeated
        if generator.random() < 0.3 and case.type is not LayerType.PRELU:
            shapes[kept] = tuple(1 if generator.random() < 0.3 else extent for extent in shape)
    return shapes


def _arithmetic(case: Case, generator: np.random.Generator, descriptor: Descriptor, data: TensorInfo) -> Network:
    shapes = _shapes_of_two(case, generator, data.shape)
    data = replace(data, shape=shapes[0])
    if case.type in _EXTREMA:
        return layer_network(
            case.type, descriptor, [data, replace(data, name="other", shape=shapes[1])], data.quantization
        )
    dtype = DataType.INT8 if case.type is LayerType.PRELU else case.dtype
    other = tensor("other", shapes[1], dtype, data.scale * _scale(generator, -2, 2), _zero_point(generator, dtype))
    reach = 128 if case.dtype is DataType.INT8 else 32768
    largest = data.scale * other.scale * reach if case.type is LayerType.MUL else max(data.scale, other.scale)
    if case.type is LayerType.PRELU:
        largest = data.scale * max(1, 128 * other.scale)
    output = Quantization.of(
        float(np.float32(largest * _scale(generator, -1, 1.5))), _zero_point(generator, case.dtype)
    )
    constants = {}
    if generator.random() < 0.2 or case.type is LayerType.PRELU:
        constants = {1: _values(generator, other, "any")}
    return layer_network(case.type, descriptor, [data, other], output, constants)


def _scale(generator: np.random.Generator, low: float, high: float) -> float:
    return float(np.float32(2.0 ** generator.uniform(low, high)))


def _zero_point(generator: np.random.Generator, dtype: DataType) -> int:
    if dtype is DataType.INT16:
        return 0
    return int(generator.choice([-128, -128, -128, 0, 127, int(generator.integers(-128, 128))]))


def _output_zero_point(case: Case, generator: np.random.Generator) -> int:
    """Return a zero point that leaves a part of the range above it to an activation."""
    zero_point = _zero_point(generator, case.dtype)
    if case.style == "usual" and case.activation is Activation.RELU and case.dtype is DataType.INT8:
        return -128
    return zero_point if case.activation is Activation.NONE else min(zero_point, int(generator.integers(0, 60)))


def _values(generator: np.random.Generator, info: TensorInfo, kind: str) -> Array:
    if info.dtype is DataType.FLOAT32:
        return _floats(generator, info.shape, kind)
    limits = np.iinfo(info.dtype.numpy)
    extremes = {"extreme": [limits.min, limits.max], "lowest": [limits.min], "highest": [limits.max]}
    if kind in extremes:
        return generator.choice(extremes[kind], info.shape).astype(info.dtype.numpy)
    return generator.integers(limits.min, limits.max, info.shape, dtype=info.dtype.numpy, endpoint=True)


def _floats(generator: np.random.Generator, shape: Shape, kind: str) -> Array:
    found = generator.normal(0, {"small": 1e-3}.get(kind, 1.0), shape).astype(np.float32)
    if kind in {"lowest", "highest"}:
        found = np.full(shape, -3e38 if kind == "lowest" else 3e38, np.float32)
    share = {"extreme": 0.3, "sparse": 0.0}.get(kind, 0.02 if generator.random() < 0.2 else 0.0)
    special = generator.random(shape) < share
    found[special] = generator.choice(_SPECIAL, int(special.sum()))
    if kind == "sparse":
        found[generator.random(shape) < 0.8] = 0
    return found
