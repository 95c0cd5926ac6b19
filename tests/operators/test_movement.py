# SPDX-License-Identifier: Apache-2.0
"""The operators that move elements, compared with independent kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layer_case import layer_network
from movement_cases import MOVEMENTS, TFLM_AXES, TFLM_TYPES, info
from numpy.testing import assert_array_equal
from oracle import litert_reference, tflm

from ferrule import formats
from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats import to_tflite
from ferrule.graph import DataType, Descriptor, LayerType, Quantization, Shape
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
from ferrule.testing.backends.comparison import random_inputs


@pytest.mark.parametrize("type_", MOVEMENTS)
@settings(max_examples=16, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_result_is_the_oracles(type_: LayerType, data: st.DataObject) -> None:
    network = data.draw(MOVEMENTS[type_])
    inputs = random_inputs(network)
    (layer,) = network.layers
    few = len(network.inputs[0].shape) <= TFLM_AXES if type_ is LayerType.STRIDED_SLICE else True
    oracle = tflm if few and network.outputs[0].dtype in TFLM_TYPES[layer.type] else litert_reference
    for got, wanted, expected in zip(network.run(inputs), oracle(network, inputs), network.outputs, strict=True):
        assert got.dtype == expected.dtype.numpy
        assert_array_equal(got, wanted.reshape(expected.shape))


@pytest.mark.parametrize(
    ("type_", "descriptor", "shape"),
    [
        (LayerType.RESHAPE, ReshapeDescriptor(shape=(4, 2)), (3, 2)),
        (LayerType.RESHAPE, ReshapeDescriptor(shape=(-1, -1)), (3, 2)),
        (LayerType.RESHAPE, ReshapeDescriptor(shape=(-1, 4)), (3, 2)),
        (LayerType.SQUEEZE, SqueezeDescriptor(axes=(0,)), (3, 2)),
        (LayerType.SQUEEZE, SqueezeDescriptor(axes=(2,)), (1, 2)),
        (LayerType.EXPAND_DIMS, ExpandDimsDescriptor(axis=3), (3, 2)),
        (LayerType.PAD, PadDescriptor(before=(1,), after=(1,)), (3, 2)),
        (LayerType.PAD, PadDescriptor(before=(-1, 0), after=(1, 0)), (3, 2)),
        (LayerType.TRANSPOSE, TransposeDescriptor(permutation=(0, 0)), (3, 2)),
        (LayerType.SPLIT, SplitDescriptor(axis=0, splits=2), (3, 2)),
        (LayerType.SPLIT, SplitDescriptor(axis=2, splits=1), (3, 2)),
        (LayerType.CONCATENATION, ConcatenationDescriptor(axis=2), (3, 2)),
        (LayerType.SPLIT_V, SplitVDescriptor(axis=0, sizes=(1, 1)), (3, 2)),
        (LayerType.SPLIT_V, SplitVDescriptor(axis=0, sizes=(4, -1)), (3, 2)),
        (LayerType.PACK, PackDescriptor(axis=3), (3, 2)),
        (LayerType.UNPACK, UnpackDescriptor(axis=2), (3, 2)),
        (LayerType.TILE, TileDescriptor(multiples=(1, 0)), (3, 2)),
        (LayerType.TILE, TileDescriptor(multiples=(1,)), (3, 2)),
        (LayerType.BROADCAST_TO, BroadcastToDescriptor(shape=(3, 4)), (3, 2)),
        (LayerType.BROADCAST_TO, BroadcastToDescriptor(shape=(2,)), (3, 2)),
        (LayerType.FILL, FillDescriptor(shape=(2,)), (3, 2)),
        (LayerType.FILL, FillDescriptor(shape=(0,)), ()),
        (LayerType.REVERSE_V2, ReverseV2Descriptor(axes=(2,)), (3, 2)),
        (LayerType.REVERSE_V2, ReverseV2Descriptor(axes=(1, 0)), (3, 2)),
        (LayerType.MIRROR_PAD, MirrorPadDescriptor(before=(3, 0), after=(0, 0), reflect=True), (3, 2)),
        (LayerType.MIRROR_PAD, MirrorPadDescriptor(before=(0, 0), after=(4, 0), reflect=False), (3, 2)),
        (LayerType.MIRROR_PAD, MirrorPadDescriptor(before=(-1, 0), after=(0, 0), reflect=False), (3, 2)),
        (LayerType.SPACE_TO_DEPTH, SpaceToDepthDescriptor(block_size=2), (1, 4, 3, 1)),
        (LayerType.SPACE_TO_DEPTH, SpaceToDepthDescriptor(block_size=0), (1, 4, 4, 1)),
        (LayerType.DEPTH_TO_SPACE, DepthToSpaceDescriptor(block_size=2), (1, 4, 4, 6)),
        (LayerType.DEPTH_TO_SPACE, DepthToSpaceDescriptor(block_size=1), (4, 4, 6)),
        (LayerType.SPACE_TO_BATCH_ND, SpaceToBatchNdDescriptor(block=(2,), before=(0,), after=(0,)), (1, 3, 1)),
        (LayerType.SPACE_TO_BATCH_ND, SpaceToBatchNdDescriptor(block=(0,), before=(0,), after=(0,)), (1, 3, 1)),
        (LayerType.BATCH_TO_SPACE_ND, BatchToSpaceNdDescriptor(block=(2,), before=(0,), after=(0,)), (3, 3, 1)),
        (LayerType.BATCH_TO_SPACE_ND, BatchToSpaceNdDescriptor(block=(2,), before=(4,), after=(2,)), (2, 3, 1)),
        (LayerType.SLICE, SliceDescriptor(begin=(0, 1), size=(3, 2)), (3, 2)),
        (LayerType.SLICE, SliceDescriptor(begin=(-1, 0), size=(1, 1)), (3, 2)),
        (LayerType.SLICE, SliceDescriptor(begin=(0,), size=(1,)), (3, 2)),
        (LayerType.STRIDED_SLICE, StridedSliceDescriptor(begin=(0,), end=(1,), strides=(1,)), (3, 2)),
        (LayerType.STRIDED_SLICE, StridedSliceDescriptor(begin=(2,), end=(1,), strides=(1,)), (3,)),
        (LayerType.STRIDED_SLICE, StridedSliceDescriptor(begin=(0,), end=(1,), strides=(0,)), (3,)),
        (
            LayerType.STRIDED_SLICE,
            StridedSliceDescriptor(begin=(3,), end=(4,), strides=(1,), shrink_axis_mask=1),
            (3,),
        ),
    ],
)
def test_what_does_not_fit_is_refused(type_: LayerType, descriptor: Descriptor, shape: Shape) -> None:
    with pytest.raises(FerruleError):
        layer_network(type_, descriptor, [info("input", shape, DataType.INT8)])


@pytest.mark.parametrize(
    ("type_", "descriptor", "shape", "dtype", "message"),
    [
        (LayerType.PADV2, PadV2Descriptor(before=(1,), after=(1,), value=2), (3,), DataType.BOOL, "from 0 to 1"),
        (LayerType.PADV2, PadV2Descriptor(before=(1,), after=(1,), value=2**60), (3,), DataType.INT64, str(2**53)),
        (LayerType.PAD, PadDescriptor(before=(0,) * 6, after=(0,) * 6), (1,) * 6, DataType.INT8, "6 axes"),
        (LayerType.PADV2, PadV2Descriptor(before=(1,), after=(1,), value=300), (3,), DataType.INT8, "300"),
        (LayerType.TRANSPOSE, TransposeDescriptor(permutation=tuple(range(7))), (1,) * 7, DataType.INT8, "7 axes"),
        (LayerType.SPLIT, SplitDescriptor(axis=0, splits=3), (3,), DataType.BOOL, "bool"),
        (LayerType.SPLIT_V, SplitVDescriptor(axis=0, sizes=(3,)), (3,), DataType.BOOL, "bool"),
        (LayerType.PACK, PackDescriptor(axis=0), (3,), DataType.BOOL, "bool"),
        (LayerType.TILE, TileDescriptor(multiples=(1,) * 6), (1,) * 6, DataType.INT8, "6 axes"),
        (LayerType.BROADCAST_TO, BroadcastToDescriptor(shape=(1,) * 33), (1,), DataType.INT8, "33 axes"),
        (LayerType.ZEROS_LIKE, ZerosLikeDescriptor(), (3,), DataType.INT16, "int16"),
        (LayerType.REVERSE_V2, ReverseV2Descriptor(axes=(0, 2)), (2, 2, 2), DataType.INT8, "without gaps"),
        (LayerType.DEPTH_TO_SPACE, DepthToSpaceDescriptor(block_size=1), (1, 2, 2, 1), DataType.INT16, "int16"),
        (LayerType.UNPACK, UnpackDescriptor(axis=0), (3,), DataType.INT64, "int64"),
        (LayerType.SLICE, SliceDescriptor(begin=(0,) * 6, size=(1,) * 6), (1,) * 6, DataType.INT8, "6 axes"),
        (
            LayerType.STRIDED_SLICE,
            StridedSliceDescriptor(begin=(0,), end=(1,), strides=(-1,), shrink_axis_mask=1),
            (3,),
            DataType.INT8,
            "stride of -1",
        ),
    ],
)
def test_what_no_reference_kernel_has_is_refused_by_name(
    type_: LayerType, descriptor: Descriptor, shape: Shape, dtype: DataType, message: str
) -> None:
    source = info("input", shape, dtype)
    network = layer_network(type_, descriptor, [source], source.quantization)
    with pytest.raises(UnsupportedError, match=message):
        network.validate()


@pytest.mark.parametrize(
    ("type_", "descriptor", "shapes", "message"),
    [
        (LayerType.GATHER, GatherDescriptor(axis=2), [(3, 2), (1,)], "the axis is 2"),
        (LayerType.GATHER, GatherDescriptor(axis=0, batch_dims=1), [(3, 2), (3,)], "1 batch axes"),
        (LayerType.GATHER, GatherDescriptor(axis=1, batch_dims=1), [(3, 2), (2,)], "the same first 1 extents"),
        (LayerType.GATHER_ND, GatherNdDescriptor(), [(3, 2), (1, 3)], "at most 2 elements"),
        (LayerType.GATHER_ND, GatherNdDescriptor(), [(3, 2), ()], "at most 2 elements"),
        (LayerType.BROADCAST_TO, BroadcastToDescriptor(shape=(3,)), [(1, 3)], "does not broadcast to shape"),
        (LayerType.BROADCAST_TO, BroadcastToDescriptor(shape=(1, 2)), [(3,)], "does not broadcast to shape"),
        (LayerType.EMBEDDING_LOOKUP, EmbeddingLookupDescriptor(), [(1, 1), (3, 2)], "expected a vector"),
        (LayerType.DYNAMIC_UPDATE_SLICE, DynamicUpdateSliceDescriptor(), [(3,), (4,), (1,)], "expected a part"),
        (LayerType.DYNAMIC_UPDATE_SLICE, DynamicUpdateSliceDescriptor(), [(3,), (2,), (2,)], "one start per axis"),
        (LayerType.SLICE, SliceDescriptor(begin=(), size=(2,)), [(3,), (2,)], "expected 1 elements"),
        (LayerType.SLICE, SliceDescriptor(begin=(0,), size=(2,)), [(3,), (1,)], "1 constants"),
        (LayerType.SLICE, SliceDescriptor(begin=(), size=(-1,)), [(3,), (1,)], "expected 1 to the extent"),
    ],
)
def test_indices_that_do_not_fit_are_refused(
    type_: LayerType, descriptor: Descriptor, shapes: list[Shape], message: str
) -> None:
    infos = [info(f"input_{i}", shape, DataType.INT32) for i, shape in enumerate(shapes)]
    with pytest.raises(ModelError, match=message):
        layer_network(type_, descriptor, infos)


def test_indices_are_int32() -> None:
    infos = [info("x", (3,), DataType.INT8), info("indices", (2,), DataType.INT64)]
    network = layer_network(LayerType.GATHER, GatherDescriptor(axis=0), infos, infos[0].quantization)
    with pytest.raises(UnsupportedError, match="the indices 'indices' are int64, expected int32"):
        network.validate()


def test_an_index_out_of_range_counts_as_the_nearest() -> None:
    infos = [info("x", (3,), DataType.INT32), info("indices", (4,), DataType.INT32)]
    network = layer_network(LayerType.GATHER, GatherDescriptor(axis=0), infos)
    values, indices = np.array([5, 6, 7], np.int32), np.array([-(2**31), -1, 3, 2**31 - 1], np.int32)
    assert network.run([values, indices])[0].tolist() == [5, 5, 7, 7]


def test_a_slice_that_would_leave_its_tensor_is_moved_into_it() -> None:
    infos = [info("x", (5,), DataType.INT32), info("begin", (1,), DataType.INT32)]
    network = layer_network(LayerType.SLICE, SliceDescriptor(begin=(), size=(2,)), infos)
    values = np.arange(5, dtype=np.int32)
    found = [network.run([values, np.array([begin], np.int32)])[0].tolist() for begin in (-(2**31), 2, 4, 2**31 - 1)]
    assert found == [[0, 1], [2, 3], [3, 4], [3, 4]]
    for begin in (0, 3):
        inputs = [values, np.array([begin], np.int32)]
        assert_array_equal(network.run(inputs)[0], tflm(network, inputs)[0])


def test_a_begin_from_run_time_is_int32() -> None:
    infos = [info("x", (3,), DataType.INT8), info("begin", (1,), DataType.INT64)]
    network = layer_network(LayerType.SLICE, SliceDescriptor(begin=(), size=(2,)), infos, infos[0].quantization)
    with pytest.raises(UnsupportedError, match="the begin 'begin' is int64, expected int32"):
        network.validate()


def test_a_constant_index_out_of_range_is_refused() -> None:
    infos = [info("x", (3,), DataType.INT8), info("indices", (2,), DataType.INT32)]
    constant = {1: np.array([0, 3], np.int32)}
    network = layer_network(LayerType.GATHER, GatherDescriptor(axis=0), infos, infos[0].quantization, constant)
    with pytest.raises(ModelError, match="its indices contain 3, expected 0 to 2"):
        formats.load(to_tflite(network))


def test_more_inputs_can_be_joined_than_the_micro_kernel_takes() -> None:
    infos = [info(f"input_{i}", (2, 1 + i % 3), DataType.INT8, 1) for i in range(13)]
    descriptor = ConcatenationDescriptor(axis=1)
    network = layer_network(LayerType.CONCATENATION, descriptor, infos, infos[0].quantization)
    inputs = random_inputs(network)
    assert_array_equal(network.run(inputs)[0], litert_reference(network, inputs)[0])


def test_concatenation_does_not_requantise() -> None:
    infos = [info("a", (2,), DataType.INT8, 1), info("b", (2,), DataType.INT8, 2)]
    network = layer_network(LayerType.CONCATENATION, ConcatenationDescriptor(axis=0), infos, Quantization.of(0.25, 1))
    with pytest.raises(UnsupportedError, match="'b' has another quantisation"):
        network.validate()


def test_joined_tensors_have_one_shape_apart_from_the_axis() -> None:
    infos = [info("a", (2, 3), DataType.INT8), info("b", (2, 4), DataType.INT8)]
    with pytest.raises(ModelError, match=r"'b' has shape \[2, 4\]"):
        layer_network(LayerType.CONCATENATION, ConcatenationDescriptor(axis=0), infos)


def test_a_scalar_can_be_expanded_and_squeezed() -> None:
    scalar = info("input", (), DataType.FLOAT32)
    network = layer_network(LayerType.EXPAND_DIMS, ExpandDimsDescriptor(axis=0), [scalar])
    (result,) = network.run([np.array(3, np.float32)])
    assert_array_equal(result, np.array([3], np.float32))
    assert (
        layer_network(LayerType.SQUEEZE, SqueezeDescriptor(), [info("x", (1, 1), DataType.BOOL)]).outputs[0].shape == ()
    )
