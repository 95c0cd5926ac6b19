# SPDX-License-Identifier: Apache-2.0
"""The part of TensorFlow Lite's schema (version 3c) that the reader uses.

Slots and types follow `tensorflow/compiler/mlir/lite/schema/schema.fbs`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.formats.tflite.flatbuffer import Field, ScalarField, TableField, TableSpec, UnionField, VectorField

FILE_IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3

_BOOL, _BYTE, _UBYTE = ScalarField("?", False), ScalarField("b"), ScalarField("B")
_INT, _UINT, _FLOAT, _ULONG = ScalarField("i"), ScalarField("I"), ScalarField("f"), ScalarField("Q")
_BYTES, _INTS = VectorField("B"), VectorField("i")
_STEPS = {"padding": _BYTE, "stride_w": _INT, "stride_h": _INT}
_DILATIONS = {"dilation_w_factor": ScalarField("i", 1), "dilation_h_factor": ScalarField("i", 1)}
_ACTIVATION = {"fused_activation_function": _BYTE}
_CORNERS = {"align_corners": _BOOL, "half_pixel_centers": _BOOL}
_BIAS = {"quantized_bias_type": _BYTE}

OPTIONS: Mapping[str, tuple[int, Mapping[str, Field]]] = {
    "AddOptions": (11, {**_ACTIVATION, "pot_scale_int16": _BOOL}),
    "BatchMatMulOptions": (101, {"adj_x": _BOOL, "adj_y": _BOOL, "asymmetric_quantize_inputs": _BOOL}),
    "CallOnceOptions": (103, {"init_subgraph_index": _INT}),
    "ConcatenationOptions": (10, {"axis": _INT, **_ACTIVATION}),
    "Conv2DOptions": (1, {**_STEPS, **_ACTIVATION, **_DILATIONS, **_BIAS}),
    "CumsumOptions": (102, {"exclusive": _BOOL, "reverse": _BOOL}),
    "DepthToSpaceOptions": (94, {"block_size": _INT}),
    "DepthwiseConv2DOptions": (2, {**_STEPS, "depth_multiplier": _INT, **_ACTIVATION, **_DILATIONS}),
    "DivOptions": (29, _ACTIVATION),
    "FullyConnectedOptions": (
        8,
        {**_ACTIVATION, "weights_format": _BYTE, "keep_num_dims": _BOOL, "asymmetric_quantize_inputs": _BOOL, **_BIAS},
    ),
    "GatherOptions": (23, {"axis": _INT, "batch_dims": _INT}),
    "IfOptions": (92, {"then_subgraph_index": _INT, "else_subgraph_index": _INT}),
    "L2NormOptions": (12, _ACTIVATION),
    "LeakyReluOptions": (75, {"alpha": _FLOAT}),
    "MirrorPadOptions": (77, {"mode": _BYTE}),
    "MulOptions": (21, _ACTIVATION),
    "PackOptions": (59, {"values_count": _INT, "axis": _INT}),
    "Pool2DOptions": (5, {**_STEPS, "filter_width": _INT, "filter_height": _INT, **_ACTIVATION}),
    "ReducerOptions": (27, {"keep_dims": _BOOL}),
    "ReshapeOptions": (17, {"new_shape": _INTS}),
    "ResizeBilinearOptions": (15, {"new_height": _INT, "new_width": _INT, **_CORNERS}),
    "ResizeNearestNeighborOptions": (74, _CORNERS),
    "SVDFOptions": (6, {"rank": _INT, **_ACTIVATION, "asymmetric_quantize_inputs": _BOOL}),
    "SoftmaxOptions": (9, {"beta": _FLOAT}),
    "SpaceToDepthOptions": (19, {"block_size": _INT}),
    "SplitOptions": (35, {"num_splits": _INT}),
    "SplitVOptions": (79, {"num_splits": _INT}),
    "SqueezeOptions": (30, {"squeeze_dims": _INTS}),
    "StridedSliceOptions": (
        32,
        {
            "begin_mask": _INT,
            "end_mask": _INT,
            "ellipsis_mask": _INT,
            "new_axis_mask": _INT,
            "shrink_axis_mask": _INT,
            "offset": _BOOL,
        },
    ),
    "SubOptions": (28, {**_ACTIVATION, "pot_scale_int16": _BOOL}),
    "TransposeConvOptions": (49, {**_STEPS, **_ACTIVATION, **_BIAS}),
    "UnidirectionalSequenceLSTMOptions": (
        71,
        {**_ACTIVATION, "cell_clip": _FLOAT, "proj_clip": _FLOAT, "time_major": _BOOL},
    ),
    "UnpackOptions": (64, {"num": _INT, "axis": _INT}),
    "VarHandleOptions": (111, {"container": _BYTES, "shared_name": _BYTES}),
    "WhileOptions": (93, {"cond_subgraph_index": _INT, "body_subgraph_index": _INT}),
}
"""The members of the union BuiltinOptions that are read: their numbers, and their fields, which fill the slots."""

_QUANTIZATION = TableSpec(
    "QuantizationParameters",
    {
        2: ("scale", VectorField("f")),
        3: ("zero_point", VectorField("q")),
        4: ("details_type", _UBYTE),
        6: ("quantized_dimension", _INT),
    },
)
_TENSOR = TableSpec(
    "Tensor",
    {
        0: ("shape", _INTS),
        1: ("type", _BYTE),
        2: ("buffer", _UINT),
        3: ("name", _BYTES),
        4: ("quantization", TableField(_QUANTIZATION)),
        5: ("is_variable", _BOOL),
        6: ("sparsity", TableField(TableSpec("SparsityParameters", {}))),
        7: ("shape_signature", _INTS),
    },
)
_TABLES = {number: TableSpec(name, dict(enumerate(fields.items()))) for name, (number, fields) in OPTIONS.items()}
_OPERATOR = TableSpec(
    "Operator",
    {
        0: ("opcode_index", _UINT),
        1: ("inputs", _INTS),
        2: ("outputs", _INTS),
        3: ("builtin_options_type", _UBYTE),
        4: ("builtin_options", UnionField(3, _TABLES)),
        5: ("custom_options", _BYTES),
    },
)
_SUBGRAPH = TableSpec(
    "SubGraph",
    {
        0: ("tensors", TableField(_TENSOR, many=True)),
        1: ("inputs", _INTS),
        2: ("outputs", _INTS),
        3: ("operators", TableField(_OPERATOR, many=True)),
        4: ("name", _BYTES),
    },
)
_OPERATOR_CODE = TableSpec(
    "OperatorCode",
    {
        0: ("deprecated_builtin_code", _BYTE),
        1: ("custom_code", _BYTES),
        2: ("version", _INT),
        3: ("builtin_code", _INT),
    },
)
_BUFFER = TableSpec("Buffer", {0: ("data", _BYTES), 1: ("offset", _ULONG), 2: ("size", _ULONG)})
_SIGNATURE = TableSpec("SignatureDef", {2: ("signature_key", _BYTES), 4: ("subgraph_index", _UINT)})
MODEL = TableSpec(
    "Model",
    {
        0: ("version", _UINT),
        1: ("operator_codes", TableField(_OPERATOR_CODE, many=True)),
        2: ("subgraphs", TableField(_SUBGRAPH, many=True)),
        4: ("buffers", TableField(_BUFFER, many=True)),
        7: ("signature_defs", TableField(_SIGNATURE, many=True)),
    },
)
"""The root table."""
