# SPDX-License-Identifier: Apache-2.0
"""Small graphs of one layer each: every operator in every type that a file can give it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from signal_networks import signal_networks

from ferrule.graph import Array, DataType, Descriptor, Graph, Layer, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.elementwise.add_n import AddNDescriptor
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.cast import CastDescriptor
from ferrule.operators.elementwise.comparison import COMPARISONS
from ferrule.operators.elementwise.division import FlooredDescriptor
from ferrule.operators.elementwise.functions import ELEMENTWISE_UNARY
from ferrule.operators.elementwise.functions_of_two import ElementwiseBinaryDescriptor, ExtremumDescriptor
from ferrule.operators.elementwise.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.elementwise.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.elementwise.select import SelectV2Descriptor
from ferrule.operators.elementwise.squared_difference import SquaredDifferenceDescriptor
from ferrule.operators.movement.block import (
    BatchToSpaceNdDescriptor,
    DepthToSpaceDescriptor,
    SpaceToBatchNdDescriptor,
    SpaceToDepthDescriptor,
)
from ferrule.operators.movement.gather import (
    DynamicUpdateSliceDescriptor,
    EmbeddingLookupDescriptor,
    GatherDescriptor,
    GatherNdDescriptor,
)
from ferrule.operators.movement.join import ConcatenationDescriptor, SplitDescriptor, SplitVDescriptor
from ferrule.operators.movement.mirror import MirrorPadDescriptor, ReverseV2Descriptor
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.movement.repeat import BroadcastToDescriptor, FillDescriptor, TileDescriptor, ZerosLikeDescriptor
from ferrule.operators.movement.reshape import ExpandDimsDescriptor, ReshapeDescriptor, SqueezeDescriptor
from ferrule.operators.movement.slice import SliceDescriptor, StridedSliceDescriptor
from ferrule.operators.movement.stack import PackDescriptor, UnpackDescriptor
from ferrule.operators.movement.transpose import TransposeDescriptor
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor
from ferrule.operators.reductions.cumsum import CumsumDescriptor
from ferrule.operators.reductions.l2_normalization import L2NormalizationDescriptor
from ferrule.operators.reductions.log_softmax import OUTPUT, LogSoftmaxDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.spatial.resize import ResizeDescriptor
from ferrule.operators.table import family
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor
from ferrule.testing.backends.layer_cases import layer_case
from ferrule.testing.backends.layers import shared_case

IMAGE: Shape = (1, 6, 5, 4)
TYPES = (DataType.FLOAT32, DataType.INT8, DataType.INT16)

_SAME_3_3 = Padding(top=1, bottom=1, left=1, right=1)


def quantization(dtype: DataType, scale: float = 0.05, zero_point: int = 3) -> Quantization | None:
    """Return the usual quantisation of a type: None for floats and types that have none, zero point 0 for int16."""
    """Return the usual quantisation of a type: None for float32, bool and int32, zero point 0 for int16."""
    if dtype.is_float or dtype in {DataType.BOOL, DataType.INT32}:
        return None
    return Quantization.of(scale, zero_point if dtype is DataType.INT8 else 0)


def one_layer(
    type_: LayerType,
    descriptor: Descriptor,
    *,
    dtype: DataType,
    inputs: Sequence[Shape],
    outputs: Sequence[Shape],
    constants: Sequence[tuple[TensorInfo, Array]] = (),
    output_dtype: DataType | None = None,
    output_quantization: Quantization | None = None,
    constants_first: bool = False,
) -> Graph:
    """Return a graph of one layer; its inputs precede its constants in the layer's inputs, or follow them."""
    graph = Graph(f"{type_.lower()}_{dtype}")
    result_type = output_dtype or dtype
    names = [
        graph.add_input(TensorInfo(f"input_{i}", shape, dtype, quantization=quantization(dtype)))
        for i, shape in enumerate(inputs)
    ]
    held = [graph.add_constant(*constant) for constant in constants]
    names = held + names if constants_first else names + held
    infos = [
        TensorInfo(
            f"output_{i}",
            shape,
            result_type,
            quantization=output_quantization or quantization(result_type),
        )
        for i, shape in enumerate(outputs)
    ]
    layer = Layer(
        f"{type_.lower()}_0",
        type_,
        descriptor,
        inputs=tuple(names),
        outputs=tuple(info.name for info in infos),
    )
    graph.add_layer(layer, infos)
    graph.set_outputs(info.name for info in infos)
    return graph


def weights_and_bias(
    dtype: DataType, shape: Shape, channels: int, axis: int, *, bias: DataType | None = None
) -> list[tuple[TensorInfo, Array]]:
    """Return weights and bias for activations of `dtype`: floats, or int8 per channel with a bias of int32 or int64."""
    generator = np.random.default_rng(7)
    if dtype.is_float:
        return [
            (_info("weights", shape, dtype), generator.normal(0, 1, shape).astype(np.float32)),
            (_info("bias", (channels,), dtype), generator.normal(0, 1, channels).astype(np.float32)),
        ]
    scales = tuple(float(np.float32(0.01 * (1 + i))) for i in range(channels))
    per_channel = Quantization(scales=scales, zero_points=(0,) * channels, axis=axis)
    bias_scales = tuple(float(np.float32(0.05) * np.float32(scale)) for scale in scales)
    bias_type = bias or (DataType.INT64 if dtype is DataType.INT16 else DataType.INT32)
    bias_quantization = Quantization(scales=bias_scales, zero_points=(0,) * channels)
    return [
        (
            TensorInfo("weights", shape, DataType.INT8, quantization=per_channel),
            generator.integers(-127, 128, shape, dtype=np.int8),
        ),
        (
            TensorInfo("bias", (channels,), bias_type, quantization=bias_quantization),
            generator.integers(-500, 500, channels).astype(bias_type.numpy),
        ),
    ]


_STORED_FUNCTIONS = (LayerType.ABS, LayerType.ELU, LayerType.RSQRT)
_INT16 = (
    LayerType.RELU_N1_TO_1,
    LayerType.HARD_SWISH,
    LayerType.ELU,
    LayerType.RESIZE_BILINEAR,
    LayerType.REDUCE_MAX,
    LayerType.REDUCE_MIN,
    LayerType.ARG_MAX,
    LayerType.ARG_MIN,
    LayerType.CUMSUM,
    LayerType.DIV,
    LayerType.FLOOR_DIV,
    LayerType.FLOOR_MOD,
    *(row.type for row in COMPARISONS),
)
REFUSED = frozenset({*(f"{type_.lower()}_int16" for type_ in _INT16), "floor_div_int8", "floor_mod_int8"})
"""Names of the samples that no kernel computes."""


def valid_samples() -> list[Graph]:
    """Return the samples that a kernel computes."""
    return [graph for graph in samples() if graph.name not in REFUSED]


def stateless(graph: Graph) -> Graph:
    """Return a copy of a graph with states as further inputs and outputs."""
    result = Graph(graph.name)
    for info in graph.sources:
        result.add_input(info)
    for tensor in graph.tensors:
        if tensor.data is not None:
            result.add_constant(tensor.info, tensor.data)
    for layer in graph.layers:
        result.add_layer(layer, graph.output_infos(layer))
    result.set_outputs(info.name for info in graph.results)
    return result


def samples() -> Iterator[Graph]:
    """Yield one graph per operator and type, and some variants."""
    for dtype in TYPES:
        yield from _weighted(dtype)
        yield from _pools(dtype)
        yield from _resized(dtype)
        yield from _arithmetic(dtype)
        yield from _activations(dtype)
        yield from _movers(dtype)
        yield from _indexed(dtype)
        yield from _recurrent(dtype)
        yield from (layer_case(type_, dtype, 1) for type_ in (LayerType.IF, LayerType.WHILE))
    yield from _selections(DataType.BOOL, LayerType.REDUCE_ANY, LayerType.REDUCE_ALL)
    yield from _type_changes()
    yield from signal_networks()
    yield layer_case(LayerType.DETECTION_POSTPROCESS, DataType.FLOAT32, 1)


def _info(name: str, shape: Shape, dtype: DataType) -> TensorInfo:
    return TensorInfo(name, shape, dtype, quantization=quantization(dtype))


def _weighted(dtype: DataType) -> Iterator[Graph]:
    conv = weights_and_bias(dtype, (3, 3, 3, 4), 3, 0)
    yield one_layer(
        LayerType.CONV_2D,
        Conv2dDescriptor(padding=_SAME_3_3, activation=Activation.RELU6),
        dtype=dtype,
        inputs=[IMAGE],
        constants=conv,
        outputs=[(1, 6, 5, 3)],
    )
    yield one_layer(
        LayerType.CONV_2D,
        Conv2dDescriptor(stride_h=2, stride_w=1, dilation_h=1, dilation_w=2, activation=Activation.RELU),
        dtype=dtype,
        inputs=[IMAGE],
        constants=conv[:1],
        outputs=[(1, 2, 1, 3)],
    )
    yield one_layer(
        LayerType.CONV_2D,
        Conv2dDescriptor(stride_h=2, stride_w=2, padding=Padding(top=0, bottom=1, left=1, right=1)),
        dtype=dtype,
        inputs=[IMAGE],
        constants=weights_and_bias(dtype, (6, 3, 3, 2), 6, 0),
        outputs=[(1, 3, 3, 6)],
    )
    if dtype is DataType.INT16:
        yield one_layer(
            LayerType.CONV_2D,
            Conv2dDescriptor(),
            dtype=dtype,
            inputs=[IMAGE],
            constants=weights_and_bias(dtype, (3, 3, 3, 4), 3, 0, bias=DataType.INT32),
            outputs=[(1, 4, 3, 3)],
        )
    yield one_layer(
        LayerType.DEPTHWISE_CONV_2D,
        DepthwiseConv2dDescriptor(
            depth_multiplier=2, stride_h=2, stride_w=2, padding=Padding(top=0, bottom=1, left=1, right=1)
        ),
        dtype=dtype,
        inputs=[IMAGE],
        constants=weights_and_bias(dtype, (1, 3, 3, 8), 8, 3),
        outputs=[(1, 3, 3, 8)],
    )
    for descriptor, constants in (
        (TransposeConvDescriptor(output_h=11, output_w=10, stride_h=2, stride_w=2, pad_top=1), conv),
        (TransposeConvDescriptor(output_h=8, output_w=13, stride_w=3, activation=Activation.RELU6), conv[:1]),
    ):
        result = (1, descriptor.output_h, descriptor.output_w, 3)
        yield one_layer(
            LayerType.TRANSPOSE_CONV, descriptor, dtype=dtype, inputs=[IMAGE], constants=constants, outputs=[result]
        )
    dense = weights_and_bias(dtype, (3, 4), 3, 0)
    if not dtype.is_float:  # one scale per tensor, as converters write it
        info, data = dense[0]
        dense[0] = (
            TensorInfo(info.name, info.shape, info.dtype, quantization=Quantization.of(0.02)),
            data,
        )
        info, data = dense[1]
        dense[1] = (
            TensorInfo(info.name, info.shape, info.dtype, quantization=Quantization.of(0.001)),
            data,
        )
    yield one_layer(
        LayerType.FULLY_CONNECTED,
        FullyConnectedDescriptor(activation=Activation.RELU),
        dtype=dtype,
        inputs=[(2, 4)],
        constants=dense,
        outputs=[(2, 3)],
    )
    yield one_layer(
        LayerType.FULLY_CONNECTED,
        FullyConnectedDescriptor(keep_num_dims=True),
        dtype=dtype,
        inputs=[(2, 5, 4)],
        constants=dense[:1],
        outputs=[(2, 5, 3)],
    )


def _pools(dtype: DataType) -> Iterator[Graph]:
    of_floats = (LayerType.L2_POOL_2D,) if dtype.is_float else ()
    for type_ in (LayerType.AVERAGE_POOL_2D, LayerType.MAX_POOL_2D, *of_floats):
        yield one_layer(
            type_,
            Pool2dDescriptor(pool_h=2, pool_w=3, stride_h=2, stride_w=2, activation=Activation.RELU),
            dtype=dtype,
            inputs=[IMAGE],
            outputs=[(1, 3, 2, 4)],
        )
        yield one_layer(
            type_,
            Pool2dDescriptor(pool_h=3, pool_w=3, padding=_SAME_3_3),
            dtype=dtype,
            inputs=[IMAGE],
            outputs=[IMAGE],
        )


def _resized(dtype: DataType) -> Iterator[Graph]:
    for type_, descriptor in (
        (LayerType.RESIZE_NEAREST_NEIGHBOR, ResizeDescriptor(height=9, width=5, align_corners=True)),
        (LayerType.RESIZE_NEAREST_NEIGHBOR, ResizeDescriptor(height=12, width=10)),
        (LayerType.RESIZE_BILINEAR, ResizeDescriptor(height=9, width=3, half_pixel_centers=True)),
        (LayerType.RESIZE_BILINEAR, ResizeDescriptor(height=3, width=11, align_corners=True)),
    ):
        result = (1, descriptor.height, descriptor.width, 4)
        yield one_layer(type_, descriptor, dtype=dtype, inputs=[IMAGE], outputs=[result])


def _arithmetic(dtype: DataType) -> Iterator[Graph]:
    for type_ in (LayerType.ADD, LayerType.SUB, LayerType.MUL):
        descriptor = BinaryDescriptor(activation=Activation.RELU if type_ is LayerType.ADD else Activation.NONE)
        yield one_layer(type_, descriptor, dtype=dtype, inputs=[IMAGE, IMAGE], outputs=[IMAGE])
        yield one_layer(type_, BinaryDescriptor(), dtype=dtype, inputs=[IMAGE, (1, 1, 1, 4)], outputs=[IMAGE])
    for type_ in (LayerType.MAXIMUM, LayerType.MINIMUM):
        yield one_layer(type_, ExtremumDescriptor(), dtype=dtype, inputs=[IMAGE, IMAGE], outputs=[IMAGE])
    for row in COMPARISONS:
        yield one_layer(
            row.type,
            row.descriptor(),
            dtype=dtype,
            inputs=[IMAGE, (1, 1, 1, 4)],
            outputs=[IMAGE],
            output_dtype=DataType.BOOL,
        )
    if dtype is not DataType.INT16:
        yield one_layer(LayerType.ADD_N, AddNDescriptor(), dtype=dtype, inputs=[IMAGE] * 3, outputs=[IMAGE])
    for type_, plain in (
        (LayerType.DIV, BinaryDescriptor()),
        (LayerType.FLOOR_DIV, FlooredDescriptor()),
        (LayerType.FLOOR_MOD, FlooredDescriptor()),
        (LayerType.SQUARED_DIFFERENCE, SquaredDifferenceDescriptor()),
    ):
        yield one_layer(type_, plain, dtype=dtype, inputs=[IMAGE, (1, 1, 1, 4)], outputs=[IMAGE])
    for type_ in (LayerType.MEAN, LayerType.SUM):
        keep = ReduceDescriptor(axes=(1, 2), keep_dims=True)
        yield one_layer(type_, keep, dtype=dtype, inputs=[IMAGE], outputs=[(1, 1, 1, 4)])
        yield one_layer(type_, ReduceDescriptor(axes=(3,)), dtype=dtype, inputs=[IMAGE], outputs=[(1, 6, 5)])
    yield from _selections(dtype, LayerType.REDUCE_MAX, LayerType.REDUCE_MIN)
    yield one_layer(
        LayerType.CUMSUM, CumsumDescriptor(axis=1, exclusive=True), dtype=dtype, inputs=[IMAGE], outputs=[IMAGE]
    )
    for product, right in ((BatchMatmulDescriptor(), (4, 3)), (BatchMatmulDescriptor(adj_y=True), (1, 6, 3, 4))):
        yield one_layer(LayerType.BATCH_MATMUL, product, dtype=dtype, inputs=[IMAGE, right], outputs=[(1, 6, 5, 3)])
    for type_ in (LayerType.ARG_MAX, LayerType.ARG_MIN):
        for axis, result in ((3, IMAGE[:3]), (1, (1, 5, 4))):
            yield one_layer(
                type_,
                ArgSelectDescriptor(axis=axis),
                dtype=dtype,
                inputs=[IMAGE],
                outputs=[result],
                output_dtype=DataType.INT32,
            )


def _selections(dtype: DataType, *types: LayerType) -> Iterator[Graph]:
    for type_ in types:
        keep = ReduceDescriptor(axes=(1, 2), keep_dims=True)
        yield one_layer(type_, keep, dtype=dtype, inputs=[IMAGE], outputs=[(1, 1, 1, 4)])
        yield one_layer(type_, ReduceDescriptor(axes=(0, 3)), dtype=dtype, inputs=[IMAGE], outputs=[(6, 5)])


def _activations(dtype: DataType) -> Iterator[Graph]:
    for type_ in (LayerType.RELU, LayerType.RELU6, LayerType.RELU_N1_TO_1):
        yield one_layer(type_, ReluDescriptor(), dtype=dtype, inputs=[IMAGE], outputs=[IMAGE])
    alpha = float(np.float32(0.2))
    yield one_layer(
        LayerType.LEAKY_RELU, LeakyReluDescriptor(alpha=alpha), dtype=dtype, inputs=[IMAGE], outputs=[IMAGE]
    )
    shape = (1, 1, 4)
    slopes = DataType.INT8 if dtype is DataType.INT16 else dtype
    generator = np.random.default_rng(3)
    values = generator.normal(0, 1, shape) if dtype.is_float else generator.integers(-100, 100, shape)
    yield one_layer(
        LayerType.PRELU,
        PreluDescriptor(),
        dtype=dtype,
        inputs=[IMAGE],
        constants=[(_info("alpha", shape, slopes), values.astype(slopes.numpy))],
        outputs=[IMAGE],
    )
    for row in ELEMENTWISE_UNARY:
        if dtype.is_float or row.type in _STORED_FUNCTIONS:
            made = DataType.BOOL if row.type is LayerType.LOGICAL_NOT else dtype
            yield one_layer(row.type, row.descriptor(), dtype=made, inputs=[IMAGE], outputs=[IMAGE])
    yield one_layer(LayerType.HARD_SWISH, HardSwishDescriptor(), dtype=dtype, inputs=[IMAGE], outputs=[IMAGE])
    fixed = {DataType.INT8: (1 / 256, -128, 1 / 128), DataType.INT16: (1 / 32768, 0, 1 / 32768)}.get(dtype)
    unit = None if fixed is None else Quantization.of(fixed[0], fixed[1])
    signed = None if fixed is None else Quantization.of(fixed[2])
    if dtype is not DataType.INT16:
        for type_, rows, quantized in (
            (LayerType.LOG_SOFTMAX, LogSoftmaxDescriptor(), OUTPUT.get(dtype)),
            (LayerType.L2_NORMALIZATION, L2NormalizationDescriptor(), signed),
        ):
            yield one_layer(type_, rows, dtype=dtype, inputs=[(2, 7)], outputs=[(2, 7)], output_quantization=quantized)
    for type_, descriptor, quantized in (
        (LayerType.LOGISTIC, LogisticDescriptor(), unit),
        (LayerType.TANH, TanhDescriptor(), signed),
        (LayerType.SOFTMAX, SoftmaxDescriptor(beta=0.5), unit),
    ):
        yield one_layer(
            type_, descriptor, dtype=dtype, inputs=[(2, 7)], outputs=[(2, 7)], output_quantization=quantized
        )


def _movers(dtype: DataType) -> Iterator[Graph]:
    single: list[tuple[LayerType, Descriptor, Shape, Shape]] = [
        (LayerType.RESHAPE, ReshapeDescriptor(shape=(2, -1)), IMAGE, (2, 60)),
        (LayerType.RESHAPE, ReshapeDescriptor(shape=()), (1, 1), ()),
        (LayerType.SQUEEZE, SqueezeDescriptor(), (1, 3, 1, 2), (3, 2)),
        (LayerType.SQUEEZE, SqueezeDescriptor(axes=(2,)), (1, 3, 1, 2), (1, 3, 2)),
        (LayerType.EXPAND_DIMS, ExpandDimsDescriptor(axis=2), (3, 4), (3, 4, 1)),
        (LayerType.TRANSPOSE, TransposeDescriptor(permutation=(0, 3, 1, 2)), IMAGE, (1, 4, 6, 5)),
        (LayerType.PAD, PadDescriptor(before=(0, 1, 2, 0), after=(0, 0, 1, 3)), IMAGE, (1, 7, 8, 7)),
        (
            LayerType.PADV2,
            PadV2Descriptor(before=(0, 1, 0, 0), after=(0, 1, 0, 0), value=1.5 if dtype.is_float else -7),
            IMAGE,
            (1, 8, 5, 4),
        ),
        (LayerType.SLICE, SliceDescriptor(begin=(0, 1, 0, 2), size=(1, 3, -1, 1)), IMAGE, (1, 3, 5, 1)),
        (
            LayerType.STRIDED_SLICE,
            StridedSliceDescriptor(
                begin=(0, 5, 0, 1), end=(1, 0, 4, 2), strides=(1, -2, 1, 1), begin_mask=4, shrink_axis_mask=8
            ),
            IMAGE,
            (1, 3, 4),
        ),
        (LayerType.TILE, TileDescriptor(multiples=(2, 1, 3)), (2, 3, 4), (4, 3, 12)),
        (LayerType.BROADCAST_TO, BroadcastToDescriptor(shape=(2, 3, 4)), (3, 1), (2, 3, 4)),
        (LayerType.FILL, FillDescriptor(shape=(2, 3)), (), (2, 3)),
        (LayerType.REVERSE_V2, ReverseV2Descriptor(axes=(1, 2)), IMAGE, IMAGE),
        (
            LayerType.MIRROR_PAD,
            MirrorPadDescriptor(before=(1, 0), after=(2, 1), reflect=True),
            (3, 4),
            (6, 5),
        ),
        (
            LayerType.SPACE_TO_BATCH_ND,
            SpaceToBatchNdDescriptor(block=(2, 3), before=(1, 0), after=(1, 1)),
            IMAGE,
            (6, 4, 2, 4),
        ),
        (
            LayerType.BATCH_TO_SPACE_ND,
            BatchToSpaceNdDescriptor(block=(3,), before=(1,), after=(0,)),
            (3, 2, 4),
            (1, 5, 4),
        ),
    ]
    if dtype is not DataType.INT16:
        single += [
            (LayerType.ZEROS_LIKE, ZerosLikeDescriptor(), (3, 4), (3, 4)),
            (LayerType.SPACE_TO_DEPTH, SpaceToDepthDescriptor(block_size=2), (1, 4, 6, 3), (1, 2, 3, 12)),
            (LayerType.DEPTH_TO_SPACE, DepthToSpaceDescriptor(block_size=2), (1, 2, 3, 12), (1, 4, 6, 3)),
        ]
    for type_, descriptor, source, result in single:
        yield one_layer(type_, descriptor, dtype=dtype, inputs=[source], outputs=[result])
    yield one_layer(
        LayerType.CONCATENATION,
        ConcatenationDescriptor(axis=3),
        dtype=dtype,
        inputs=[IMAGE, (1, 6, 5, 2)],
        outputs=[(1, 6, 5, 6)],
    )
    yield one_layer(
        LayerType.SPLIT,
        SplitDescriptor(axis=1, splits=3),
        dtype=dtype,
        inputs=[IMAGE],
        outputs=[(1, 2, 5, 4)] * 3,
    )
    yield one_layer(
        LayerType.SPLIT_V,
        SplitVDescriptor(axis=1, sizes=(4, 2)),
        dtype=dtype,
        inputs=[IMAGE],
        outputs=[(1, 4, 5, 4), (1, 2, 5, 4)],
    )
    yield one_layer(LayerType.PACK, PackDescriptor(axis=2), dtype=dtype, inputs=[(3, 4)] * 2, outputs=[(3, 4, 2)])
    yield one_layer(LayerType.UNPACK, UnpackDescriptor(axis=1), dtype=dtype, inputs=[(3, 2, 4)], outputs=[(3, 4)] * 2)


def _indexed(dtype: DataType) -> Iterator[Graph]:
    indices = np.array([[2, 0], [1, 1]], np.int32)
    yield one_layer(
        LayerType.GATHER,
        GatherDescriptor(axis=1),
        dtype=dtype,
        inputs=[(2, 3, 4)],
        constants=[_indices(indices)],
        outputs=[(2, 2, 2, 4)],
    )
    yield one_layer(
        LayerType.GATHER_ND,
        GatherNdDescriptor(),
        dtype=dtype,
        inputs=[(3, 2, 4)],
        constants=[_indices(indices)],
        outputs=[(2, 4)],
    )
    yield one_layer(
        LayerType.EMBEDDING_LOOKUP,
        EmbeddingLookupDescriptor(),
        dtype=dtype,
        inputs=[(3, 4)],
        constants=[_indices(indices[0])],
        outputs=[(2, 4)],
        constants_first=True,
    )
    yield one_layer(
        LayerType.DYNAMIC_UPDATE_SLICE,
        DynamicUpdateSliceDescriptor(),
        dtype=dtype,
        inputs=[(3, 4), (2, 2)],
        constants=[_indices(indices[0])],
        outputs=[(3, 4)],
    )


def _indices(values: Array) -> tuple[TensorInfo, Array]:
    return TensorInfo("indices", values.shape, DataType.INT32), values


def _recurrent(dtype: DataType) -> Iterator[Graph]:
    """Yield layers with states of their own."""
    generator = np.random.default_rng(11)

    def floats_or_bytes(*shape: int) -> Array:
        if dtype.is_float:
            return generator.normal(0, 0.5, shape).astype(np.float32)
        return generator.integers(-127, 128, shape, dtype=np.int8)

    small = None if dtype.is_float else Quantization.of(0.01)
    if dtype is not DataType.INT16:
        network = Network(f"svdf_{dtype}")
        network.add_input(_info("x", (2, 5), dtype))
        svdf = network.add_svdf_layer(
            "x",
            floats_or_bytes(6, 5),
            floats_or_bytes(6, 3).astype(np.float32 if dtype.is_float else np.int16),
            np.arange(3).astype(np.float32 if dtype.is_float else np.int32),
            rank=2,
            feature_quantization=small,
            time_quantization=small,
            state_quantization=small,
            quantization=quantization(dtype),
        )
        network.set_outputs([svdf])
        yield network
    if dtype is DataType.INT8:
        network = Network(f"circular_buffer_{dtype}")
        network.add_input(_info("x", (1, 1, 3, 2), dtype))
        network.set_outputs([network.add_circular_buffer_layer("x", 4)])
        yield network
    network = Network(f"lstm_{dtype}")
    network.add_input(_info("x", (1, 3, 5), dtype))
    bias = {DataType.INT8: np.int32, DataType.INT16: np.int64}.get(dtype, np.float32)
    scales = None if small is None else [small] * 4
    lstm = network.add_lstm_layer(
        "x",
        [floats_or_bytes(2, 5) for _ in range(4)],
        [floats_or_bytes(2, 2) for _ in range(4)],
        [np.array([gate, -gate], bias) for gate in range(4)],
        cell_clip=0.75,
        weights_quantizations=scales,
        recurrent_quantizations=scales,
        cell_quantization=None if dtype.is_float else Quantization.of(2**-11),
        quantization=quantization(dtype, 1 / 128, -1),
    )
    network.set_outputs([lstm])
    yield network


def _type_changes() -> Iterator[Graph]:
    for source, result in (
        (DataType.FLOAT32, DataType.INT8),
        (DataType.FLOAT32, DataType.INT16),
        (DataType.INT8, DataType.INT16),
        (DataType.INT16, DataType.INT8),
        (DataType.INT8, DataType.UINT8),
        (DataType.UINT8, DataType.INT8),
    ):
        yield one_layer(
            LayerType.QUANTIZE,
            QuantizeDescriptor(),
            dtype=source,
            inputs=[IMAGE],
            outputs=[IMAGE],
            output_dtype=result,
            output_quantization=quantization(result, 0.07, -9),
        )
    functions = family(ElementwiseBinaryDescriptor)
    for (type_, row), dtype in itertools.product(functions.items(), (DataType.BOOL, DataType.INT32)):
        if shared_case(type_, DataType.FLOAT32, 0)[1] and not shared_case(type_, dtype, 0)[1]:
            inputs = [IMAGE, (1, 1, 1, 4)]
            yield one_layer(type_, row.descriptor(), dtype=dtype, inputs=inputs, outputs=[IMAGE])
    values = np.arange(8).reshape(2, 4)
    yield one_layer(
        LayerType.SELECT_V2,
        SelectV2Descriptor(),
        dtype=DataType.BOOL,
        inputs=[IMAGE],
        constants=[
            (_info("first", (1, 1, 1, 4), DataType.FLOAT32), values[:1].reshape(1, 1, 1, 4).astype(np.float32)),
            (_info("second", (4,), DataType.FLOAT32), values[1].astype(np.float32)),
        ],
        outputs=[IMAGE],
        output_dtype=DataType.FLOAT32,
    )
    for source, result in (
        (DataType.FLOAT32, DataType.INT32),
        (DataType.INT8, DataType.FLOAT32),
        (DataType.INT16, DataType.BOOL),
        (DataType.BOOL, DataType.INT8),
    ):
        yield one_layer(
            LayerType.CAST,
            CastDescriptor(),
            dtype=source,
            inputs=[IMAGE],
            outputs=[IMAGE],
            output_dtype=result,
        )
    for source in (DataType.INT8, DataType.INT16, DataType.UINT8):
        yield one_layer(
            LayerType.DEQUANTIZE,
            DequantizeDescriptor(),
            dtype=source,
            inputs=[IMAGE],
            outputs=[IMAGE],
            output_dtype=DataType.FLOAT32,
        )
