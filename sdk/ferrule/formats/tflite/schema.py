# SPDX-License-Identifier: Apache-2.0
"""The part of TensorFlow Lite's schema (version 3c) that the reader uses, as a specification for the verifier.

Slots and sizes follow `tensorflow/compiler/mlir/lite/schema/schema.fbs`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.formats.tflite.verifier import (
    ScalarField,
    TableField,
    TableSpec,
    TableVectorField,
    UnionField,
    VectorField,
)

FILE_IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3

_BYTE = ScalarField(size_bytes=1)
_WORD = ScalarField(size_bytes=4)
_LONG = ScalarField(size_bytes=8)
_BYTES = VectorField(size_bytes=1)
_WORDS = VectorField(size_bytes=4)
_LONGS = VectorField(size_bytes=8)

OPTION_KINDS: Mapping[str, int] = {
    "Conv2DOptions": 1,
    "DepthwiseConv2DOptions": 2,
    "Pool2DOptions": 5,
    "SVDFOptions": 6,
    "FullyConnectedOptions": 8,
    "SoftmaxOptions": 9,
    "ConcatenationOptions": 10,
    "AddOptions": 11,
    "L2NormOptions": 12,
    "ResizeBilinearOptions": 15,
    "ReshapeOptions": 17,
    "MulOptions": 21,
    "ReducerOptions": 27,
    "SubOptions": 28,
    "DivOptions": 29,
    "SqueezeOptions": 30,
    "StridedSliceOptions": 32,
    "SplitOptions": 35,
    "PackOptions": 59,
    "SpaceToDepthOptions": 19,
    "GatherOptions": 23,
    "MirrorPadOptions": 77,
    "DepthToSpaceOptions": 94,
    "UnpackOptions": 64,
    "TransposeConvOptions": 49,
    "UnidirectionalSequenceLSTMOptions": 71,
    "ResizeNearestNeighborOptions": 74,
    "LeakyReluOptions": 75,
    "IfOptions": 92,
    "WhileOptions": 93,
    "CallOnceOptions": 103,
    "BatchMatMulOptions": 101,
    "CumsumOptions": 102,
    "VarHandleOptions": 111,
    "SplitVOptions": 79,
}
"""The members of the union BuiltinOptions whose fields are read, with their numbers."""


def _numbers(name: str, **fields: ScalarField | VectorField) -> TableSpec:
    """Return a table whose fields fill the slots in order."""
    return TableSpec(name=name, fields=dict(enumerate(fields.items())))


_OPTIONS = (
    _numbers(
        "Conv2DOptions",
        padding=_BYTE,
        stride_w=_WORD,
        stride_h=_WORD,
        fused_activation_function=_BYTE,
        dilation_w_factor=_WORD,
        dilation_h_factor=_WORD,
        quantized_bias_type=_BYTE,
    ),
    _numbers(
        "DepthwiseConv2DOptions",
        padding=_BYTE,
        stride_w=_WORD,
        stride_h=_WORD,
        depth_multiplier=_WORD,
        fused_activation_function=_BYTE,
        dilation_w_factor=_WORD,
        dilation_h_factor=_WORD,
    ),
    _numbers(
        "Pool2DOptions",
        padding=_BYTE,
        stride_w=_WORD,
        stride_h=_WORD,
        filter_width=_WORD,
        filter_height=_WORD,
        fused_activation_function=_BYTE,
    ),
    _numbers(
        "FullyConnectedOptions",
        fused_activation_function=_BYTE,
        weights_format=_BYTE,
        keep_num_dims=_BYTE,
        asymmetric_quantize_inputs=_BYTE,
        quantized_bias_type=_BYTE,
    ),
    _numbers("BatchMatMulOptions", adj_x=_BYTE, adj_y=_BYTE, asymmetric_quantize_inputs=_BYTE),
    _numbers("CumsumOptions", exclusive=_BYTE, reverse=_BYTE),
    _numbers("SoftmaxOptions", beta=_WORD),
    _numbers("IfOptions", then_subgraph_index=_WORD, else_subgraph_index=_WORD),
    _numbers("WhileOptions", cond_subgraph_index=_WORD, body_subgraph_index=_WORD),
    _numbers("ConcatenationOptions", axis=_WORD, fused_activation_function=_BYTE),
    _numbers("AddOptions", fused_activation_function=_BYTE, pot_scale_int16=_BYTE),
    _numbers("L2NormOptions", fused_activation_function=_BYTE),
    _numbers("ResizeBilinearOptions", new_height=_WORD, new_width=_WORD, align_corners=_BYTE, half_pixel_centers=_BYTE),
    _numbers("ReshapeOptions", new_shape=_WORDS),
    _numbers("MulOptions", fused_activation_function=_BYTE),
    _numbers("ReducerOptions", keep_dims=_BYTE),
    _numbers("DivOptions", fused_activation_function=_BYTE),
    _numbers("SubOptions", fused_activation_function=_BYTE, pot_scale_int16=_BYTE),
    _numbers("SqueezeOptions", squeeze_dims=_WORDS),
    _numbers(
        "StridedSliceOptions",
        begin_mask=_WORD,
        end_mask=_WORD,
        ellipsis_mask=_WORD,
        new_axis_mask=_WORD,
        shrink_axis_mask=_WORD,
        offset=_BYTE,
    ),
    _numbers("SplitOptions", num_splits=_WORD),
    _numbers("SpaceToDepthOptions", block_size=_WORD),
    _numbers("GatherOptions", axis=_WORD, batch_dims=_WORD),
    _numbers("MirrorPadOptions", mode=_BYTE),
    _numbers("DepthToSpaceOptions", block_size=_WORD),
    _numbers("PackOptions", values_count=_WORD, axis=_WORD),
    _numbers("UnpackOptions", num=_WORD, axis=_WORD),
    _numbers(
        "TransposeConvOptions",
        padding=_BYTE,
        stride_w=_WORD,
        stride_h=_WORD,
        fused_activation_function=_BYTE,
        quantized_bias_type=_BYTE,
    ),
    _numbers("ResizeNearestNeighborOptions", align_corners=_BYTE, half_pixel_centers=_BYTE),
    _numbers("LeakyReluOptions", alpha=_WORD),
    _numbers("SVDFOptions", rank=_WORD, fused_activation_function=_BYTE, asymmetric_quantize_inputs=_BYTE),
    _numbers(
        "UnidirectionalSequenceLSTMOptions",
        fused_activation_function=_BYTE,
        cell_clip=_WORD,
        proj_clip=_WORD,
        time_major=_BYTE,
    ),
    _numbers("CallOnceOptions", init_subgraph_index=_WORD),
    _numbers("VarHandleOptions", container=_BYTES, shared_name=_BYTES),
    _numbers("SplitVOptions", num_splits=_WORD),
)

_QUANTIZATION = TableSpec(
    name="QuantizationParameters",
    fields={
        2: ("scale", _WORDS),
        3: ("zero_point", _LONGS),
        4: ("details_type", _BYTE),
        6: ("quantized_dimension", _WORD),
    },
)
_TENSOR = TableSpec(
    name="Tensor",
    fields={
        0: ("shape", _WORDS),
        1: ("type", _BYTE),
        2: ("buffer", _WORD),
        3: ("name", _BYTES),
        4: ("quantization", TableField(table=_QUANTIZATION)),
        5: ("is_variable", _BYTE),
        6: ("sparsity", TableField(table=TableSpec(name="SparsityParameters", fields={}))),
        7: ("shape_signature", _WORDS),
    },
)
_OPERATOR = TableSpec(
    name="Operator",
    fields={
        0: ("opcode_index", _WORD),
        1: ("inputs", _WORDS),
        2: ("outputs", _WORDS),
        3: ("builtin_options_type", _BYTE),
        4: (
            "builtin_options",
            UnionField(kind_slot=3, tables={OPTION_KINDS[spec.name]: spec for spec in _OPTIONS}),
        ),
        5: ("custom_options", _BYTES),
    },
)
_SUBGRAPH = TableSpec(
    name="SubGraph",
    fields={
        0: ("tensors", TableVectorField(table=_TENSOR)),
        1: ("inputs", _WORDS),
        2: ("outputs", _WORDS),
        3: ("operators", TableVectorField(table=_OPERATOR)),
        4: ("name", _BYTES),
    },
)
_OPERATOR_CODE = TableSpec(
    name="OperatorCode",
    fields={
        0: ("deprecated_builtin_code", _BYTE),
        1: ("custom_code", _BYTES),
        2: ("version", _WORD),
        3: ("builtin_code", _WORD),
    },
)
_BUFFER = TableSpec(name="Buffer", fields={0: ("data", _BYTES), 1: ("offset", _LONG), 2: ("size", _LONG)})
_SIGNATURE = TableSpec(name="SignatureDef", fields={2: ("signature_key", _BYTES), 4: ("subgraph_index", _WORD)})
MODEL = TableSpec(
    name="Model",
    fields={
        0: ("version", _WORD),
        1: ("operator_codes", TableVectorField(table=_OPERATOR_CODE)),
        2: ("subgraphs", TableVectorField(table=_SUBGRAPH)),
        4: ("buffers", TableVectorField(table=_BUFFER)),
        7: ("signature_defs", TableVectorField(table=_SIGNATURE)),
    },
)
"""The root table."""
