# SPDX-License-Identifier: Apache-2.0
"""From layers to operators of the file: options, parameter tensors and recovered padding schemes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.exporters.tflite.padding import PaddingScheme, explicit_pad, padding_scheme
from ferrule.exporters.tflite.record import NO_OPTIONS, OperatorRecord, Options, OptionValue
from ferrule.exporters.tflite.version import bias_is_int32_with_int16, operator_version
from ferrule.graph import Array, DataType, Graph, Layer, LayerType, Tensor, TensorInfo
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.pool2d import Pool2dDescriptor

_ACTIVATIONS: Mapping[str, int] = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
_BIAS_INT32 = 2
"""TensorType.INT32 in the field `quantized_bias_type`."""


class Translator:
    """Collects the operators of one file and the tensors that the network does not have itself."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._names = {tensor.info.name for tensor in graph.tensors}
        self._parameters: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.tensors: list[Tensor] = []
        """Parameter tensors and the outputs of added PADs, beside those of the graph."""
        self.operators: list[OperatorRecord] = []

    def translate(self, layer: Layer) -> None:
        """Append the operators of one layer.

        Raises:
            UnsupportedError: TensorFlow Lite cannot say what the layer does.
        """
        rule = _RULES.get(layer.type)
        if rule is None:
            raise UnsupportedError(f"layer '{layer.name}': {layer.type} has no form in TensorFlow Lite")
        rule(self, layer, layer.descriptor)

    def emit(
        self,
        layer: Layer,
        options: Options = NO_OPTIONS,
        *,
        inputs: Sequence[str | None] | None = None,
        **traits: bool,
    ) -> None:
        """Append one operator; `inputs` default to the layer's."""
        version = operator_version(
            layer.type, self._graph.input_infos(layer), self._graph.output_infos(layer), **traits
        )
        sources = list(layer.inputs if inputs is None else inputs)
        while sources and sources[-1] is None:  # LiteRT takes a listed bias for a present one
            sources.pop()
        record = OperatorRecord(
            type=layer.type,
            version=version,
            inputs=tuple(sources),
            outputs=layer.outputs,
            options=options,
        )
        self.operators.append(record)

    def parameter(self, layer: Layer, role: str, values: Array) -> str:
        """Return the name of a constant tensor with these values; equal ones are shared."""
        key = (str(values.dtype), values.shape, values.tobytes())
        if key not in self._parameters:
            info = TensorInfo(
                name=self._fresh(f"{layer.name}/{role}"), shape=values.shape, dtype=DataType(str(values.dtype))
            )
            self.tensors.append(Tensor(info=info, data=values))
            self._parameters[key] = info.name
        return self._parameters[key]

    def integers(self, layer: Layer, role: str, values: Sequence[int]) -> str:
        """Return the name of a vector of int32."""
        return self.parameter(layer, role, np.array(values, np.int32))

    def padded(self, layer: Layer, info: TensorInfo, pads: Array, fill: Array | None) -> str:
        """Append a PAD, or a PADV2 with `fill`, before a layer and return its output."""
        shape = tuple(int(n) for n in np.array(info.shape) + pads.sum(axis=1))
        output = replace(info, name=self._fresh(f"{layer.name}/padded"), shape=shape)
        self.tensors.append(Tensor(info=output))
        inputs = [info.name, self.parameter(layer, "paddings", pads)]
        type_, table = (LayerType.PAD, "PadOptions") if fill is None else (LayerType.PADV2, "PadV2Options")
        if fill is not None:
            inputs.append(self._fill(layer, output, fill))
        record = OperatorRecord(
            type=type_,
            version=operator_version(type_, (info,), (output,)),
            inputs=tuple(inputs),
            outputs=(output.name,),
            options=Options(table=table),
        )
        self.operators.append(record)
        return output.name

    def fill(self, layer: Layer, value: float) -> str:
        """Return the name of a PADV2's fill, a scalar in the output's type and quantisation."""
        output = self.output_info(layer)
        try:
            return self._fill(layer, output, np.array(value, output.dtype.numpy))
        except OverflowError:
            raise ModelError(f"layer '{layer.name}': the fill {value} does not fit into {output.dtype}") from None

    def input_info(self, layer: Layer, index: int) -> TensorInfo:
        """Return what is known of an input that must be there."""
        infos = self._graph.input_infos(layer)
        info = infos[index] if index < len(infos) else None
        if info is None:
            raise UnsupportedError(f"layer '{layer.name}': {layer.type} lacks input {index}")
        return info

    def output_info(self, layer: Layer) -> TensorInfo:
        """Return what is known of the first output."""
        return self._graph.output_infos(layer)[0]

    def input_infos(self, layer: Layer) -> tuple[TensorInfo | None, ...]:
        """Return what is known of a layer's inputs."""
        return self._graph.input_infos(layer)

    def _fill(self, layer: Layer, output: TensorInfo, value: Array) -> str:
        name = self._fresh(f"{layer.name}/fill")
        info = TensorInfo(name=name, shape=(), dtype=output.dtype, quantization=output.quantization)
        self.tensors.append(Tensor(info=info, data=value))
        return name

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name


_Rule = Callable[[Translator, Layer, Any], None]


def _plain(table: str = "", **names: str) -> _Rule:
    """Return the rule of an operator whose options are fields of its descriptor: schema name=attribute."""

    def rule(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
        fields: dict[str, OptionValue] = {}
        for schema_name, attribute in names.items():
            value = getattr(descriptor, attribute)
            fields[schema_name] = _ACTIVATIONS[value.value] if attribute == "activation" else value
        translator.emit(layer, Options(table=table, fields=fields))

    return rule


def _with_parameter(role: str, attribute: str, table: str = "") -> _Rule:
    """Return the rule of an operator with one parameter tensor after its data."""

    def rule(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
        vector = translator.integers(layer, role, getattr(descriptor, attribute))
        translator.emit(layer, Options(table=table), inputs=[*layer.inputs, vector])

    return rule


def _convolution(
    translator: Translator, layer: Layer, descriptor: Conv2dDescriptor | DepthwiseConv2dDescriptor
) -> None:
    weights = translator.input_info(layer, 1)
    window = (weights.shape[1], weights.shape[2])
    dilation = (descriptor.dilation_h, descriptor.dilation_w)
    image = translator.input_info(layer, 0)
    scheme = padding_scheme(image, descriptor.padding, window, (descriptor.stride_h, descriptor.stride_w), dilation)
    source = image.name
    if scheme is None:
        source = translator.padded(layer, image, explicit_pad(descriptor.padding), None)
        scheme = PaddingScheme.VALID
    fields: dict[str, OptionValue] = {
        "Padding": scheme.value,
        "StrideW": descriptor.stride_w,
        "StrideH": descriptor.stride_h,
        "FusedActivationFunction": _ACTIVATIONS[descriptor.activation.value],
        "DilationWFactor": descriptor.dilation_w,
        "DilationHFactor": descriptor.dilation_h,
    }
    table = "Conv2DOptions"
    if isinstance(descriptor, DepthwiseConv2dDescriptor):
        table = "DepthwiseConv2DOptions"
        fields["DepthMultiplier"] = descriptor.depth_multiplier
    elif bias_is_int32_with_int16(translator.input_infos(layer)):
        fields["QuantizedBiasType"] = _BIAS_INT32
    options = Options(table=table, fields=fields)
    translator.emit(layer, options, inputs=[source, *layer.inputs[1:]], dilated=dilation != (1, 1))


def _fully_connected(translator: Translator, layer: Layer, descriptor: FullyConnectedDescriptor) -> None:
    fields: dict[str, OptionValue] = {
        "FusedActivationFunction": _ACTIVATIONS[descriptor.activation.value],
        "KeepNumDims": descriptor.keep_num_dims,
    }
    if bias_is_int32_with_int16(translator.input_infos(layer)):
        fields["QuantizedBiasType"] = _BIAS_INT32
    options = Options(table="FullyConnectedOptions", fields=fields)
    translator.emit(layer, options, keep_num_dims=descriptor.keep_num_dims)


def _pool(translator: Translator, layer: Layer, descriptor: Pool2dDescriptor) -> None:
    image = translator.input_info(layer, 0)
    window = (descriptor.pool_h, descriptor.pool_w)
    scheme = padding_scheme(image, descriptor.padding, window, (descriptor.stride_h, descriptor.stride_w), (1, 1))
    source = image.name
    if scheme is None:
        if layer.type is not LayerType.MAX_POOL_2D:
            raise UnsupportedError(
                f"layer '{layer.name}': {layer.type} with {descriptor.padding} has no form in TensorFlow Lite, "
                "which knows SAME and VALID padding only",
                hint="put a PAD layer before it if the padded pixels may count as zeros",
            )
        source = translator.padded(layer, image, explicit_pad(descriptor.padding), _lowest(image.dtype))
        scheme = PaddingScheme.VALID
    options = Options(
        table="Pool2DOptions",
        fields={
            "Padding": scheme.value,
            "StrideW": descriptor.stride_w,
            "StrideH": descriptor.stride_h,
            "FilterWidth": descriptor.pool_w,
            "FilterHeight": descriptor.pool_h,
            "FusedActivationFunction": _ACTIVATIONS[descriptor.activation.value],
        },
    )
    translator.emit(layer, options, inputs=[source])


def _lowest(dtype: DataType) -> Array:
    if dtype.is_float:
        return np.array(np.finfo(np.float32).min, np.float32)
    return np.array(np.iinfo(dtype.numpy).min, dtype.numpy)


def _pad(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
    pads = np.array([descriptor.before, descriptor.after], np.int32).T.copy()
    inputs = [*layer.inputs, translator.parameter(layer, "paddings", pads)]
    if layer.type is LayerType.PAD:
        translator.emit(layer, Options(table="PadOptions"), inputs=inputs)
        return
    inputs.append(translator.fill(layer, descriptor.value))
    translator.emit(layer, Options(table="PadV2Options"), inputs=inputs)


def _reshape(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
    shape = tuple(descriptor.shape)
    # An empty tensor cannot be told from one without data, so a scalar's shape stands in the options alone.
    vector = [translator.integers(layer, "shape", shape)] if shape else []
    options = Options(table="ReshapeOptions", fields={"NewShape": shape})
    translator.emit(layer, options, inputs=[*layer.inputs, *vector])


def _expand_dims(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
    axis = translator.integers(layer, "axis", [descriptor.axis])
    translator.emit(layer, Options(table="ExpandDimsOptions"), inputs=[*layer.inputs, axis])


def _split(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
    axis = translator.parameter(layer, "axis", np.array(descriptor.axis, np.int32))
    options = Options(table="SplitOptions", fields={"NumSplits": descriptor.splits})
    translator.emit(layer, options, inputs=[axis, *layer.inputs])


def _slice(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
    begin = translator.integers(layer, "begin", descriptor.begin)
    size = translator.integers(layer, "size", descriptor.size)
    translator.emit(layer, Options(table="SliceOptions"), inputs=[*layer.inputs, begin, size])


def _strided_slice(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
    vectors = [translator.integers(layer, role, getattr(descriptor, role)) for role in ("begin", "end", "strides")]
    options = Options(
        table="StridedSliceOptions",
        fields={
            "BeginMask": descriptor.begin_mask,
            "EndMask": descriptor.end_mask,
            "ShrinkAxisMask": descriptor.shrink_axis_mask,
        },
    )
    translator.emit(layer, options, inputs=[*layer.inputs, *vectors])


def _reduce(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
    if not descriptor.axes:
        raise UnsupportedError(f"layer '{layer.name}': {layer.type} over no axis has no form in TensorFlow Lite")
    axes = translator.integers(layer, "axes", descriptor.axes)
    options = Options(table="ReducerOptions", fields={"KeepDims": descriptor.keep_dims})
    translator.emit(layer, options, inputs=[*layer.inputs, axes])


def _sum_or_difference(table: str) -> _Rule:
    """ADD and SUB: int16 with any scale, as TensorFlow Lite Micro computes it, not with powers of two."""

    def rule(translator: Translator, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
        fields: dict[str, OptionValue] = {
            "FusedActivationFunction": _ACTIVATIONS[descriptor.activation.value],
            "PotScaleInt16": False,
        }
        translator.emit(layer, Options(table=table, fields=fields))

    return rule


_RULES: Mapping[LayerType, _Rule] = {
    LayerType.ADD: _sum_or_difference("AddOptions"),
    LayerType.AVERAGE_POOL_2D: _pool,
    LayerType.CONCATENATION: _plain("ConcatenationOptions", Axis="axis"),
    LayerType.CONV_2D: _convolution,
    LayerType.DEPTHWISE_CONV_2D: _convolution,
    LayerType.DEQUANTIZE: _plain("DequantizeOptions"),
    LayerType.EXPAND_DIMS: _expand_dims,
    LayerType.FULLY_CONNECTED: _fully_connected,
    LayerType.HARD_SWISH: _plain("HardSwishOptions"),
    LayerType.LEAKY_RELU: _plain("LeakyReluOptions", Alpha="alpha"),
    LayerType.LOGISTIC: _plain(),
    LayerType.MAXIMUM: _plain("MaximumMinimumOptions"),
    LayerType.MAX_POOL_2D: _pool,
    LayerType.MEAN: _reduce,
    LayerType.MINIMUM: _plain("MaximumMinimumOptions"),
    LayerType.MUL: _plain("MulOptions", FusedActivationFunction="activation"),
    LayerType.PAD: _pad,
    LayerType.PADV2: _pad,
    LayerType.PRELU: _plain(),
    LayerType.QUANTIZE: _plain("QuantizeOptions"),
    LayerType.RELU: _plain(),
    LayerType.RELU6: _plain(),
    LayerType.RELU_N1_TO_1: _plain(),
    LayerType.RESHAPE: _reshape,
    LayerType.SLICE: _slice,
    LayerType.SOFTMAX: _plain("SoftmaxOptions", Beta="beta"),
    LayerType.SPLIT: _split,
    LayerType.SQUEEZE: _plain("SqueezeOptions", SqueezeDims="axes"),
    LayerType.STRIDED_SLICE: _strided_slice,
    LayerType.SUB: _sum_or_difference("SubOptions"),
    LayerType.SUM: _reduce,
    LayerType.TANH: _plain(),
    LayerType.TRANSPOSE: _with_parameter("permutation", "permutation", "TransposeOptions"),
}
