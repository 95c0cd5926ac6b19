# SPDX-License-Identifier: Apache-2.0
"""The operator versions that TensorFlow Lite's runtimes demand.

They follow `tflite/tools/versioning/op_version.cc` of LiteRT, for the types that a network can have. Interpreters
refuse a version that they do not know, and some pick a kernel by it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.graph import DataType, LayerType, TensorInfo

_INT8_2_INT16_3 = frozenset(
    {
        LayerType.AVERAGE_POOL_2D,
        LayerType.CONCATENATION,
        LayerType.LOGISTIC,
        LayerType.MAX_POOL_2D,
        LayerType.MEAN,
        LayerType.RELU,
        LayerType.RELU6,
        LayerType.SOFTMAX,
        LayerType.TANH,
    }
)
_BY_TYPE: Mapping[LayerType, Mapping[DataType, int]] = {
    LayerType.ADD: {DataType.INT8: 2, DataType.INT16: 3, DataType.INT64: 4},
    LayerType.DEQUANTIZE: {DataType.INT8: 2, DataType.INT16: 3},
    LayerType.LEAKY_RELU: {DataType.INT16: 2},
    LayerType.MAXIMUM: {DataType.INT8: 2, DataType.INT16: 4},
    LayerType.MINIMUM: {DataType.INT8: 2, DataType.INT16: 4},
    LayerType.PAD: {DataType.INT8: 2, DataType.INT16: 3, DataType.BOOL: 5},
    LayerType.PADV2: {DataType.INT8: 2, DataType.INT16: 3, DataType.BOOL: 5},
    LayerType.SLICE: {DataType.INT8: 2, DataType.INT16: 4},
    LayerType.SPLIT: {DataType.INT8: 2, DataType.INT32: 3, DataType.INT16: 4},
    LayerType.STRIDED_SLICE: {DataType.INT8: 2, DataType.BOOL: 3},
    LayerType.SUB: {DataType.INT8: 2, DataType.INT64: 4, DataType.INT16: 5},
    LayerType.SUM: {DataType.INT8: 2},
    LayerType.TRANSPOSE: {DataType.INT8: 2, DataType.BOOL: 3, DataType.INT16: 5},
    **{type_: {DataType.INT8: 2, DataType.INT16: 3} for type_ in _INT8_2_INT16_3},
}
_ABOVE_4_DIMENSIONS: Mapping[LayerType, int] = {
    LayerType.MAXIMUM: 3,
    LayerType.MINIMUM: 3,
    LayerType.PAD: 4,
    LayerType.PADV2: 4,
    LayerType.SLICE: 5,
    LayerType.STRIDED_SLICE: 4,
    LayerType.SUB: 3,
    LayerType.TRANSPOSE: 4,
}


def operator_version(
    type_: LayerType, inputs: tuple[TensorInfo | None, ...], outputs: tuple[TensorInfo, ...], **traits: bool
) -> int:
    """Return the version of an operator with these data inputs and outputs.

    `traits` are `dilated` for convolutions and `keep_num_dims` for FULLY_CONNECTED.
    """
    present = [info for info in inputs if info is not None]
    dtype = present[0].dtype
    if type_ in {LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D}:
        return _convolution(type_, present, dilated=traits.get("dilated", False))
    if type_ is LayerType.FULLY_CONNECTED:
        return _fully_connected(present, keep_num_dims=traits.get("keep_num_dims", False))
    if type_ is LayerType.MUL:
        return _mul(present, outputs[0])
    if type_ is LayerType.QUANTIZE:
        return _quantize(outputs[0])
    if type_ is LayerType.DEQUANTIZE and _per_channel(present[0]):
        return 5
    version = _BY_TYPE.get(type_, {}).get(dtype, 1)
    if max(len(info.shape) for info in present) > 4:
        version = max(version, _ABOVE_4_DIMENSIONS.get(type_, 1))
    return version


def bias_is_int32_with_int16(inputs: tuple[TensorInfo | None, ...]) -> bool:
    """Whether int16 activations meet an int32 bias, which the options must say (`quantized_bias_type`)."""
    first = inputs[0] if inputs else None
    bias = inputs[2] if len(inputs) > 2 else None
    return first is not None and first.dtype is DataType.INT16 and bias is not None and bias.dtype is DataType.INT32


def _convolution(type_: LayerType, inputs: list[TensorInfo], *, dilated: bool) -> int:
    dtype = inputs[0].dtype
    if type_ is LayerType.CONV_2D:
        if bias_is_int32_with_int16(tuple(inputs)):
            return 8
        if inputs[1].shape[-1] != inputs[0].shape[-1]:
            return 6
        return {DataType.INT8: 3, DataType.INT16: 4}.get(dtype, 1)
    return {DataType.INT8: 3, DataType.INT16: 5}.get(dtype, 2 if dilated else 1)


def _fully_connected(inputs: list[TensorInfo], *, keep_num_dims: bool) -> int:
    if bias_is_int32_with_int16(tuple(inputs)):
        return 11
    if inputs[0].dtype is DataType.INT16:
        return 7
    if len(inputs) == 2:
        return 6
    if keep_num_dims:
        return 5
    return {DataType.INT8: 4}.get(inputs[0].dtype, 1)


def _mul(inputs: list[TensorInfo], output: TensorInfo) -> int:
    first = inputs[0]
    if first.dtype is DataType.INT16:
        return 4 if first.quantization is not None else 7
    if first.dtype is DataType.INT64:
        return 5
    quantizations = [info.quantization for info in (*inputs, output)]
    if all(quantization is not None for quantization in quantizations):
        scales = [quantization.scale for quantization in quantizations if quantization is not None]
        if scales[0] * scales[-2] / scales[-1] >= 1:
            return 3
    return {DataType.INT8: 2}.get(first.dtype, 1)


def _quantize(output: TensorInfo) -> int:
    if _per_channel(output):
        return 3
    return 2 if output.dtype is DataType.INT16 else 1


def _per_channel(info: TensorInfo) -> bool:
    return info.quantization is not None and info.quantization.per_channel
