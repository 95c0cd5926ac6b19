# SPDX-License-Identifier: Apache-2.0
"""The scoreboard's suite of CMSIS-NN: the data sets of its unit tests, read with a C preprocessor and a C parser."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import score_cmsis_float
from layer_case import layer_network, tensor
from score_cases import Case, Run, SourceError, Suite, pinned
from score_headers import DataSet, Translated, padding_of, read

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.arithmetic.fixed_point import quantize_multiplier
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor

COMMIT = "99f736a63036613032f9b70de36b493bcd7802d4"
_DIGEST = "844c254d3d060f5654a594a8b78dd916a9c5adcb2cd0a0ac4ccaea86f1b7c2b9"
_CASES = Path("Tests/UnitTest/TestCases")
_DATA = _CASES / "TestData"
_INCLUDE = '#include "../TestData/'
_CANDIDATES = 1 << 14


def cases(source: Path) -> Iterator[Case]:
    """Return a case for each data set, in the order of names."""
    functions = _functions(source)
    for folder in sorted(each for each in (source / _DATA).iterdir() if each.is_dir()):
        yield _case(folder, functions[folder.name])


def _case(folder: Path, functions: Sequence[str]) -> Case:
    """Return the case of a data set that these functions of CMSIS-NN are tested with."""
    return Case(name=folder.name, make=functools.partial(_translated, folder, functions))


def _translated(folder: Path, functions: Sequence[str]) -> Translated:
    """Return a data set as a network; UnsupportedError says why it is none."""
    if not functions:
        raise UnsupportedError("not translated: no test of CMSIS-NN uses it")
    if all(name.endswith("_f16") for name in functions):
        raise UnsupportedError("float16: Ferrule has no C kernels for it")
    kinds = score_cmsis_float.KINDS if all(name.endswith("_f32") for name in functions) else _KINDS
    for kind, translate in kinds.items():
        if any(name.startswith(kind) for name in functions):
            return translate(read(folder), functions)
    raise UnsupportedError(f"not translated: {functions[0]}")


def _functions(source: Path) -> dict[str, list[str]]:
    """Return the functions of CMSIS-NN that each data set is for, by the `#include` lines of their tests."""
    found: dict[str, list[str]] = defaultdict(list)
    for test in sorted((source / _CASES).glob("test_arm_*/test_arm_*.c")):
        for line in test.read_text(encoding="utf-8").splitlines():
            if line.startswith(_INCLUDE):
                found[line.removeprefix(_INCLUDE).partition("/")[0]].append(test.stem.removeprefix("test_arm_"))
    return found


def _factor(multiplier: int, shift: int) -> float:
    return float(multiplier) * 2.0 ** (shift - 31)


def _scales(multipliers: Sequence[int], shifts: Sequence[int]) -> tuple[float, tuple[float, ...]]:
    """Return a scale of the input and scales of the weights whose products have these factors, as exact as possible."""
    factors = [_factor(*each) for each in zip(multipliers, shifts, strict=True)]
    wanted = list(zip(multipliers, shifts, strict=True))
    if len(set(wanted)) == 1:
        for step in range(_CANDIDATES):
            first = float(np.float32(1 + step / _CANDIDATES))
            second = float(np.float32(factors[0] / first))
            if quantize_multiplier(first * second) == wanted[0]:
                return first, (second,) * len(wanted)
    return 1.0, tuple(float(np.float32(each)) for each in factors)


def _clamped(network: Network, name: str, data: DataSet, dtype: np.dtype[Any]) -> None:
    """Make a tensor the output, clamped to the activation's range, which is any range of stored values here."""
    low = data.number("OUT_ACTIVATION_MIN", "ACTIVATION_MIN")
    high = data.number("OUT_ACTIVATION_MAX", "ACTIVATION_MAX")
    quantization = network.info(name).quantization
    limits = np.iinfo(dtype)
    if low > limits.min:
        network.add_constant_array("low", np.array([low], dtype), quantization)
        name = network.add_maximum_layer(name, "low")
    if high < limits.max:
        network.add_constant_array("high", np.array([high], dtype), quantization)
        name = network.add_minimum_layer(name, "high")
    network.set_outputs([name])


def _network(*inputs: TensorInfo) -> Network:
    network = Network("case")
    for info in inputs:
        network.add_input(info)
    return network


def _dtype(array: Array) -> DataType:
    return DataType(array.dtype.name)


def _weighted(data: DataSet, functions: Sequence[str]) -> Translated:
    depthwise = functions[0].startswith("depthwise")
    image = data.array("input", "input_tensor")
    shape = tuple(data.number(name) for name in ("INPUT_BATCHES", "INPUT_H", "INPUT_W", "IN_CH"))
    outputs = data.number("OUT_CH")
    kernel = (data.number("FILTER_Y"), data.number("FILTER_X"))
    dilations = (data.number("DILATION_Y"), data.number("DILATION_X"))
    spread = tuple((size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True))
    weights = _unpacked(data, functions)
    first, scales = _scales(data.array("output_mult").tolist(), data.array("output_shift").tolist())
    quantized = Quantization(scales=scales, zero_points=(0,) * outputs, axis=3 if depthwise else 0)
    source = tensor("x", shape, _dtype(image), first, -data.number("INPUT_OFFSET"))
    network = _network(source)
    weights = weights.reshape((1, *kernel, outputs) if depthwise else (outputs, *kernel, -1))
    add = network.add_depthwise_conv2d_layer if depthwise else network.add_conv2d_layer
    name = add(
        "x",
        weights,
        _bias(data, image),
        strides=(data.number("STRIDE_Y"), data.number("STRIDE_X")),
        dilations=dilations,
        padding=padding_of(data, (spread[0], spread[1]), (data.number("PAD_Y"), data.number("PAD_X"))),
        weights_quantization=quantized,
        quantization=Quantization.of(1.0, data.number("OUTPUT_OFFSET")),
    )
    _clamped(network, name, data, image.dtype)
    return network, [Run([image.reshape(shape)], [data.array("output_ref", "output")])]


def _transpose_conv(data: DataSet, _functions: Sequence[str]) -> Translated:
    image, outputs = data.array("input"), data.number("OUT_CH")
    shape = (data.number("INPUT_BATCHES"), data.number("INPUT_H"), data.number("INPUT_W"), data.number("IN_CH"))
    first, scales = _scales(data.array("output_mult").tolist(), data.array("output_shift").tolist())
    quantized = Quantization(scales=scales, zero_points=(0,) * outputs)
    weights = data.array("weights").reshape(outputs, data.number("FILTER_Y"), data.number("FILTER_X"), -1)
    bias = data.array("biases") if data.array("biases").size else np.zeros(outputs, np.int32)
    constants = {1: weights, 2: bias}
    infos = [
        tensor("x", shape, _dtype(image), first, -data.number("INPUT_OFFSET")),
        replace(tensor("weights", weights.shape, _dtype(weights)), quantization=quantized),
        tensor("bias", (outputs,), DataType.INT32),
    ]
    descriptor = TransposeConvDescriptor(
        output_h=data.number("OUTPUT_H"),
        output_w=data.number("OUTPUT_W"),
        stride_h=data.number("STRIDE_Y"),
        stride_w=data.number("STRIDE_X"),
        pad_top=data.number("PAD_Y"),
        pad_left=data.number("PAD_X"),
    )
    output = Quantization.of(1.0, data.number("OUTPUT_OFFSET"))
    network = layer_network(LayerType.TRANSPOSE_CONV, descriptor, infos, output, constants)
    _clamped(network, network.outputs[0].name, data, image.dtype)
    return network, [Run([image.reshape(shape)], [data.array("output_ref")])]


def _bias(data: DataSet, image: Array) -> Array | None:
    """Return the biases; an absent one of int32 with int16 data is zeros, since it decides how sums are rounded."""
    bias = data.arrays.get("biases")
    if bias is not None and not bias.size:
        return np.zeros(data.number("OUT_CH"), np.int32) if image.dtype == np.int16 and bias.dtype == np.int32 else None
    return bias


def _unpacked(data: DataSet, functions: Sequence[str]) -> Array:
    """Return the weights as int8; those of 4 bits are two in a byte, the first in the low half."""
    weights = data.array("weights")
    if not any("_s4" in name for name in functions):
        return weights
    halves = np.stack([(weights << 4) >> 4, weights >> 4], axis=-1).ravel()
    shape = [data.number("OUT_CH")]
    if "ACCUMULATION_DEPTH" in data.macros:
        shape.append(data.number("ACCUMULATION_DEPTH"))
    else:
        shape += [data.number("FILTER_Y"), data.number("FILTER_X")]
        shape += [] if functions[0].startswith("depthwise") else [data.number("IN_CH")]
    return halves[: int(np.prod(shape))]


def _fully_connected(data: DataSet, functions: Sequence[str]) -> Translated:
    image, outputs = data.array("input"), data.number("OUT_CH")
    depth = data.number("ACCUMULATION_DEPTH")
    if "output_mult" in data.arrays:
        factors = data.array("output_mult").tolist(), data.array("output_shift").tolist()
    else:
        factors = [data.number("OUTPUT_MULTIPLIER", "OUTPUT_MULT")], [data.number("OUTPUT_SHIFT")]
    first, scales = _scales(*factors)
    zero = -data.number("FILTER_OFFSET") if "FILTER_OFFSET" in data.macros else 0
    shape = (data.number("INPUT_BATCHES"), depth)
    network = _network(tensor("x", shape, _dtype(image), first, -data.number("INPUT_OFFSET")))
    name = network.add_fully_connected_layer(
        "x",
        _unpacked(data, functions).reshape(outputs, depth),
        _bias(data, image),
        weights_quantization=Quantization(scales=scales, zero_points=(zero,) * len(scales)),
        quantization=Quantization.of(1.0, data.number("OUTPUT_OFFSET")),
    )
    _clamped(network, name, data, image.dtype)
    return network, [Run([image.reshape(shape)], [data.array("output_ref", "output")])]


def _pool(data: DataSet, functions: Sequence[str]) -> Translated:
    image = data.array("input_tensor", "input")
    shape = (-1, *(data.number(f"INPUT_{axis}") for axis in "HWC"))
    image = image.reshape(shape)
    window = (data.number("FILTER_H"), data.number("FILTER_W"))
    network = _network(tensor("x", image.shape, _dtype(image), 1.0))
    add = network.add_max_pool2d_layer if functions[0].startswith("max") else network.add_average_pool2d_layer
    padding = padding_of(data, window, (data.number("PADDING_H"), data.number("PADDING_W")))
    name = add("x", window, strides=(data.number("STRIDE_H"), data.number("STRIDE_W")), padding=padding)
    _clamped(network, name, data, image.dtype)
    return network, [Run([image], [data.array("output", "output_ref")])]


def _softmax(data: DataSet, _functions: Sequence[str]) -> Translated:
    image, output = data.array("input"), data.array("output_ref")
    shape = (data.number("NUM_ROWS"), data.number("ROW_SIZE"))
    factor = _factor(data.number("INPUT_MULT"), data.number("INPUT_LEFT_SHIFT"))
    scale = factor / (1 << 26) if image.dtype == np.int8 else factor * 10 / 65535
    info = tensor("x", shape, _dtype(image), float(np.float32(scale)))
    fixed = {
        ("int8", "int8"): Quantization.of(1 / 256, -128),
        ("int8", "int16"): Quantization.of(1 / 65536, -32768),
        ("int16", "int16"): Quantization.of(1 / 32768),
    }[image.dtype.name, output.dtype.name]
    network = layer_network(LayerType.SOFTMAX, SoftmaxDescriptor(), [info], output=fixed, output_dtype=_dtype(output))
    return network, [Run([image.reshape(shape)], [output])]


def _binary(data: DataSet, functions: Sequence[str]) -> Translated:
    left, right = data.array("input1"), data.array("input2")
    factor = _factor(data.number("OUTPUT_MULT"), data.number("OUTPUT_SHIFT"))
    product = functions[0].startswith("elementwise_mul")
    if product:
        first, (second,) = _scales([data.number("OUTPUT_MULT")], [data.number("OUTPUT_SHIFT")])
        scale = 1.0
    else:
        halves = [_factor(data.number(f"INPUT{i}_MULT"), data.number(f"INPUT{i}_SHIFT")) for i in (1, 2)]
        first, second = (float(np.float32(2 * each)) for each in halves)
        scale = float(np.float32(2 / (factor * (1 << data.number("LEFT_SHIFT")))))
    shape = (1, left.size)
    network = _network(
        tensor("x", shape, _dtype(left), first, -data.number("INPUT1_OFFSET")),
        tensor("y", shape, _dtype(right), second, -data.number("INPUT2_OFFSET")),
    )
    add = network.add_mul_layer if product else network.add_add_layer
    name = add("x", "y", quantization=Quantization.of(scale, data.number("OUTPUT_OFFSET")))
    _clamped(network, name, data, left.dtype)
    return network, [Run([left.reshape(shape), right.reshape(shape)], [data.array("output_ref", "output")])]


def _batch_matmul(data: DataSet, _functions: Sequence[str]) -> Translated:
    operands = [data.array(f"{side}_input_tensor") for side in ("lhs", "rhs")]
    first, (second,) = _scales([data.number("OUTPUT_MULTIPLIER")], [data.number("OUTPUT_SHIFT")])
    infos = [
        tensor(f"x{index}", shape, _dtype(operands[index]), scale, -data.number(f"{'LR'[index]}HS_OFFSET"))
        for index, (shape, scale) in enumerate(zip(data.matrices(), (first, second), strict=True))
    ]
    network = _network(*infos)
    output = Quantization.of(1.0, data.number("OUTPUT_OFFSET"))
    adjoint = [data.number(f"ADJ_{side}") == 1 for side in "XY"]
    name = network.add_batch_matmul_layer("x0", "x1", adj_x=adjoint[0], adj_y=adjoint[1], quantization=output)
    _clamped(network, name, data, operands[0].dtype)
    inputs = [array.reshape(info.shape) for array, info in zip(operands, infos, strict=True)]
    return network, [Run(inputs, [data.array("output")])]


def _extremum(data: DataSet, _functions: Sequence[str]) -> Translated:
    operands = [data.array(f"input_tensor_{i}") for i in (1, 2)]
    shapes = [tuple(data.number(f"{axis}_{i}") for axis in ("BATCH", "HEIGHT", "WIDTH", "CHANNEL")) for i in (1, 2)]
    infos = [tensor(f"x{i}", shape, DataType.INT8, 1.0) for i, shape in enumerate(shapes)]
    network = _network(*infos)
    add = network.add_maximum_layer if data.macros["LAYER_TYPE"] == "maximum" else network.add_minimum_layer
    network.set_outputs([add("x0", "x1")])
    inputs = [array.reshape(shape) for array, shape in zip(operands, shapes, strict=True)]
    return network, [Run(inputs, [data.array("output")])]


def _pad(data: DataSet, _functions: Sequence[str]) -> Translated:
    image = data.array("input_tensor")
    shape = tuple(data.number(f"INPUT_{axis}") for axis in "NHWC")
    network = _network(tensor("x", shape, _dtype(image), 1.0, data.number("PAD_VALUE")))
    paddings = [(data.number(f"PRE_PAD_{axis}"), data.number(f"POST_PAD_{axis}")) for axis in "NHWC"]
    network.set_outputs([network.add_pad_layer("x", paddings)])
    return network, [Run([image.reshape(shape)], [data.array("output")])]


def _transpose(data: DataSet, _functions: Sequence[str]) -> Translated:
    image, permutation = data.array("input_tensor"), data.numbers("PERM")
    shape = data.numbers("IN_DIM")[: len(permutation)]
    network = _network(tensor("x", shape, _dtype(image), 1.0))
    network.set_outputs([network.add_transpose_layer("x", permutation)])
    return network, [Run([image.reshape(shape)], [data.array("output")])]


_KINDS: Mapping[str, Callable[[DataSet, Sequence[str]], Translated]] = {
    "batch_matmul": _batch_matmul,
    "convolve": _weighted,
    "grouped_convolve": _weighted,
    "depthwise_conv": _weighted,
    "fully_connected": _fully_connected,
    "avgpool": _pool,
    "max_pool": _pool,
    "softmax": _softmax,
    "elementwise": _binary,
    "maximum": _extremum,
    "minimum": _extremum,
    "pad_s8": _pad,
    "reverse_transpose_conv": _transpose_conv,
    "transpose_conv": _transpose_conv,
    "transpose_s8": _transpose,
}
"""By the beginning of the function's name."""


def _version(source: Path) -> str:
    if not (source / _DATA).is_dir():
        raise SourceError(f"it has no folder {_DATA}")
    return pinned((source / _DATA).glob("*/*.h"), source, _DIGEST, f"CMSIS-NN {COMMIT[:8]}")


CMSIS_NN = Suite(
    name="cmsis-nn",
    title="CMSIS-NN's unit test data",
    variable="FERRULE_CMSIS_NN_SOURCE",
    source=f"a checkout of ARM-software/CMSIS-NN at commit {COMMIT}",
    least=450,
    cases=cases,
    version=_version,
)
