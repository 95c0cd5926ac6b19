# SPDX-License-Identifier: Apache-2.0
"""The scoreboard's suite of CMSIS-NN: the data sets of its unit tests, read with a C preprocessor and a C parser."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from layer_case import layer_network, tensor
from needs import require_cc
from pycparser import c_ast, c_parser
from score_cases import Case, Run, SourceError, Suite, pinned

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.fixed_point import quantize_multiplier
from ferrule.operators.softmax import SoftmaxDescriptor
from ferrule.operators.window import Padding

COMMIT = "99f736a63036613032f9b70de36b493bcd7802d4"
_DIGEST = "844c254d3d060f5654a594a8b78dd916a9c5adcb2cd0a0ac4ccaea86f1b7c2b9"
_CASES = Path("Tests/UnitTest/TestCases")
_DATA = _CASES / "TestData"
_INCLUDE = '#include "../TestData/'
_TYPES = {f"int{bits}_t": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)}
_TYPEDEFS = "".join(f"typedef long {name};\n" for name in (*_TYPES, "uint8_t", "uint16_t", "uint32_t", "bool"))
_CANDIDATES = 1 << 14


Translated = tuple[Network, list[Run]]


@dataclass(frozen=True, slots=True)
class DataSet:
    """The macros and arrays of a data set's headers, by their names without the name of the data set."""

    macros: Mapping[str, str]
    arrays: Mapping[str, Array]

    def number(self, *names: str) -> int:
        """Return the value of the first of the macros that is defined."""
        return int(next(self.macros[name] for name in names if name in self.macros), 0)

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return the values of a macro that is a list in braces."""
        return tuple(int(each, 0) for each in self.macros[name].strip("{}, ").split(","))

    def array(self, *names: str) -> Array:
        """Return the first of the arrays that is defined."""
        return next(self.arrays[name] for name in names if name in self.arrays)


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
    if all(name.endswith("_f32") for name in functions):
        raise UnsupportedError("not translated: float32, whose layouts and activations are CMSIS-NN's own")
    for kind, translate in _KINDS.items():
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


def read(folder: Path) -> DataSet:
    """Return the macros and arrays of a data set's headers."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdint.h", "stdbool.h", "stddef.h"):
            (Path(empty) / name).touch()
        words = [*require_cc(), "-E", "-P", "-dD", "-undef", "-nostdinc", "-I", empty, str(folder / "test_data.h")]
        text = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    lines = text.splitlines()
    upper, lower = f"{folder.name.upper()}_", f"{folder.name}_"
    defined = [line.split(None, 2) for line in lines if line.startswith("#define ")]
    macros = {words[1].removeprefix(upper): words[2] if len(words) > 2 else "" for words in defined}
    code = _TYPEDEFS + "\n".join(line for line in lines if not line.startswith("#"))
    arrays: dict[str, Array] = {}
    for node in c_parser.CParser().parse(code).ext:
        if not isinstance(node, c_ast.Decl):
            continue
        name = node.name.removeprefix(lower)
        if isinstance(node.init, c_ast.InitList):
            dtype = _TYPES[node.type.type.type.names[0]]
            arrays[name] = np.array([_value(each) for each in node.init.exprs], np.int64).astype(dtype)
        elif isinstance(node.init, c_ast.ID) and node.init.name == "NULL":
            arrays[name] = np.empty(0, _TYPES[node.type.type.type.names[0]])
        elif isinstance(node.init, c_ast.ID) and (alias := node.init.name.removeprefix(lower)) in arrays:
            arrays[name] = arrays[alias]
    return DataSet(macros, arrays)


def _value(node: c_ast.Node) -> int:
    if isinstance(node, c_ast.UnaryOp):
        return -_value(node.expr)
    if isinstance(node, c_ast.BinaryOp):  # the lowest int32 and int64, which C cannot write as one constant
        return _value(node.left) - _value(node.right)
    return int(node.value.rstrip("uUlL"), 0)


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


def _image(data: DataSet, kernel: tuple[int, int], pads: tuple[int, int]) -> Padding:
    """Return the padding of a window: the given pixels before, and after as many as the output needs."""
    after = []
    for axis, size, before in zip("HW", kernel, pads, strict=True):
        stride = data.number(f"STRIDE_{'Y' if axis == 'H' else 'X'}", f"STRIDE_{axis}")
        covered = (data.number(f"OUTPUT_{axis}") - 1) * stride + size
        after.append(max(0, covered - data.number(f"INPUT_{axis}") - before))
    return Padding(top=pads[0], bottom=after[0], left=pads[1], right=after[1])


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
        padding=_image(data, (spread[0], spread[1]), (data.number("PAD_Y"), data.number("PAD_X"))),
        weights_quantization=quantized,
        quantization=Quantization.of(1.0, data.number("OUTPUT_OFFSET")),
    )
    _clamped(network, name, data, image.dtype)
    return network, [Run([image.reshape(shape)], [data.array("output_ref", "output")])]


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
    padding = _image(data, window, (data.number("PADDING_H"), data.number("PADDING_W")))
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
        ("int16", "int16"): Quantization.of(1 / 32768, 0),
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
