# SPDX-License-Identifier: Apache-2.0
"""Which rule of rounding LiteRT's kernels follow, measured per operator for three ways of running a model.

    python benchmarks/rounding_rules.py [operator ...] [--cases N] [--details]

Each case is a network of one layer with random scales, among them powers of two and values next to them. Biases put
the sums of layers with weights next to half a step; elementwise layers get every pair of int8 values. The table names
the first rule that computes each value of all cases, or else the nearest rule and how many values differ.

The rules of `ferrule.graph.Rounding` are computed by Ferrule itself. The others, which Ferrule does not have:

    float64     float64 product, rounded once, halves away from zero
    twice, up   as tflm, but the second rounding turns halves upwards
    21 bits     ADD, SUB: factors of 21 bits, one rounding, halves up
    8 bits      QUANTIZE, LEAKY_RELU: factors with 8 bits behind the point, one rounding, halves up
    float32     float32 product, halves to even
"""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from ferrule import DataType, FerruleError, Network, Quantization, TensorInfo
from ferrule.formats import to_tflite
from ferrule.graph import Array, Rounding
from ferrule.operators import quantize_multiplier, saturating_rounding_doubling_high_mul

WAYS = {"reference": "BUILTIN_REF", "no delegate": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "XNNPACK": "AUTO"}
"""The members of LiteRT's `OpResolverType`, by the names of the columns."""
INT8, INT16 = DataType.INT8, DataType.INT16
CHANNELS = 96
LARGEST_SUM = {INT8: 2**30, INT16: 2**40}
NEAR = 0.1
"""The largest share of differing values of a rule that is called the nearest."""


class Quantizations(TypedDict):
    """The arguments of the `add_*` methods of layers with weights."""

    weights_quantization: Quantization
    quantization: Quantization


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A network of one layer, its inputs, and its outputs by rules that Ferrule does not have."""

    network: Network
    inputs: Sequence[Array]
    others: Mapping[str, Array]


class Draw:
    """Random tensors of one type, whose scales and values favour ties."""

    def __init__(self, seed: int, dtype: DataType) -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = dtype
        self.network = Network("case")
        self.arrays: list[Array] = []

    def scale(self) -> float:
        """Return a float32 scale: any, a power of two, or one next to a power of two."""
        power = 2.0 ** -int(self.random.integers(3, 8))
        near = 1 + int(self.random.integers(-6, 7)) * 2.0 ** -int(self.random.integers(18, 23))
        chosen = (self.random.uniform(0.005, 0.1), power, power * near)[self.random.integers(3)]
        return float(np.float32(chosen / (1 if self.dtype is INT8 else 256)))

    def quantization(self, scale: float | None = None) -> Quantization:
        """Return a quantisation with a random zero point, and a random scale unless one is given."""
        zero_point = int(self.random.integers(-128, 128)) if self.dtype is INT8 else 0
        return Quantization.of(float(np.float32(self.scale() if scale is None else scale)), zero_point)

    def values(self, shape: Sequence[int]) -> Array:
        """Return random values of the whole range of the type."""
        limits = np.iinfo(self.dtype.numpy)
        return self.random.integers(limits.min, limits.max, tuple(shape), self.dtype.numpy, endpoint=True)

    def every(self) -> Array:
        """Return every value of the type, in one row."""
        limits = np.iinfo(self.dtype.numpy)
        return np.arange(limits.min, limits.max + 1).astype(self.dtype.numpy)[None]

    def input(self, data: Array, scale: float | None = None) -> tuple[str, Array]:
        """Add an input and return its name and its values less the zero point."""
        quantization, name = self.quantization(scale), f"input_{len(self.arrays)}"
        info = TensorInfo(name=name, shape=data.shape, dtype=self.dtype, quantization=quantization)
        self.arrays.append(data)
        return self.network.add_input(info), data.astype(np.int64) - quantization.zero_point

    def case(self, output: str, others: Mapping[str, Array] | None = None) -> Case:
        """Return the finished case; the values of `others` still lack the zero point and the limits of the type."""
        self.network.set_outputs([output])
        limits, info = np.iinfo(self.dtype.numpy), self.network.info(output)
        zero_point = 0 if info.quantization is None else info.quantization.zero_point
        stored = {
            rule: np.clip(np.asarray(steps, np.float64) + zero_point, limits.min, limits.max).reshape(info.shape)
            for rule, steps in (others or {}).items()
        }
        return Case(network=self.network, inputs=self.arrays, others=stored)

    def scale_of(self, name: str) -> float:
        """Return the scale of a tensor."""
        return self.network.info(name).scale


def away(steps: Array) -> Array:
    """Return values rounded to whole numbers, halves away from zero."""
    return np.copysign(np.floor(np.abs(steps) + 0.5), steps)


def half_up(products: Array, shift: int) -> Array:
    """Return integers divided by 2**shift, halves up."""
    return (products + (1 << shift >> 1)) >> shift


def twice_up(sums: Array, factors: Sequence[float]) -> Array:
    """Return sums times one factor per column by TFLM's rule, but with the second rounding's halves upwards."""
    pairs = [quantize_multiplier(factor) for factor in factors]
    multiplier, shift = (np.array(column) for column in zip(*pairs, strict=True))
    right = np.maximum(-shift, 0)
    high = saturating_rounding_doubling_high_mul(sums << np.maximum(shift, 0), multiplier)
    rounded: Array = (high + (1 << right >> 1)) >> right
    return rounded


def weighted(draw: Draw, operator: str) -> Case:
    """Return a layer with weights whose biases put the first pixel's sums next to half a step of the output."""
    images = {"CONV_2D": (1, 6, 3, 8), "DEPTHWISE_CONV_2D": (1, 6, 3, CHANNELS), "FULLY_CONNECTED": (4, 32)}
    kernels = {
        "CONV_2D": (CHANNELS, 3, 3, 8),
        "DEPTHWISE_CONV_2D": (1, 3, 3, CHANNELS),
        "FULLY_CONNECTED": (CHANNELS, 32),
        "TRANSPOSE_CONV": (CHANNELS, 3, 3, 8),
    }
    source, image = draw.input(draw.values(images.get(operator, (1, 1, 1, 8))))
    weights = draw.random.integers(-127, 128, kernels[operator]).astype(np.int8)
    sums = _sums(operator, image, weights.astype(np.int64))
    output = draw.quantization()
    per_channel = bool(draw.random.integers(2))
    count = CHANNELS if per_channel else 1
    small = 2.0 ** -int(draw.random.integers(3, 20))
    scales = (draw.random.uniform(0.001, 0.02, count) if draw.random.integers(3) else 2.0**-7 * np.ones(count)) * small
    scales = scales.astype(np.float32).astype(np.float64)
    factors = draw.scale_of(source) * scales / output.scale
    largest = 120 if draw.dtype is INT8 else 32000
    wanted = (draw.random.integers(-largest, largest, CHANNELS) + 0.5) / factors
    limit = LARGEST_SUM[draw.dtype]
    bias = np.clip(np.rint(wanted) + draw.random.integers(-1, 2, CHANNELS), -limit, limit).astype(np.int64) - sums[0]
    sums = sums + bias
    axis = 3 if operator == "DEPTHWISE_CONV_2D" else 0
    each = Quantization(scales=tuple(scales.tolist()), zero_points=(0,) * CHANNELS, axis=axis) if per_channel else None
    stored = bias.astype(np.int32 if draw.dtype is INT8 else np.int64)
    quantizations: Quantizations = {
        "weights_quantization": each or Quantization.of(float(scales[0])),
        "quantization": output,
    }
    network = draw.network
    layer = {
        "CONV_2D": lambda: network.add_conv2d_layer(source, weights, stored, **quantizations),
        "DEPTHWISE_CONV_2D": lambda: network.add_depthwise_conv2d_layer(source, weights, stored, **quantizations),
        "FULLY_CONNECTED": lambda: network.add_fully_connected_layer(source, weights, stored, **quantizations),
        "TRANSPOSE_CONV": lambda: network.add_transpose_conv_layer(
            source, weights, stored, size=(3, 3), **quantizations
        ),
    }[operator]()
    others = {"float64": away(sums * factors)}
    if draw.dtype is INT8:
        others["twice, up"] = twice_up(sums, np.broadcast_to(factors, CHANNELS).tolist())
    return draw.case(layer, others)


def _sums(operator: str, image: Array, weights: Array) -> Array:
    """Return the sums of products, [pixels, channels]."""
    if operator == "FULLY_CONNECTED":
        return np.asarray(image @ weights.T)
    if operator == "TRANSPOSE_CONV":
        return np.asarray(np.einsum("c,oijc->ijo", image[0, 0, 0], weights)).reshape(-1, CHANNELS)
    windows = [image[0, row : row + 3] for row in range(4)]
    if operator == "CONV_2D":
        return np.stack([np.einsum("ijc,oijc->o", window, weights) for window in windows])
    return np.stack([(window * weights[0]).sum((0, 1)) for window in windows])


def batch_matmul(draw: Draw, operator: str) -> Case:
    """Return BATCH_MATMUL of two inputs."""
    del operator
    (left, first), (right, second) = draw.input(draw.values((2, 16, 64))), draw.input(draw.values((2, 64, 24)))
    sums = first @ second
    product = draw.scale_of(left) * draw.scale_of(right)
    wide = product * float(np.abs(sums).max()) / (100 if draw.dtype is INT8 else 30000)
    output = draw.quantization(wide if draw.random.integers(2) else 2.0 ** float(np.ceil(np.log2(wide))))
    layer = draw.network.add_batch_matmul_layer(left, right, quantization=output)
    return draw.case(layer, {"float64": away(sums * (product / output.scale))})


def elementwise(draw: Draw, operator: str) -> Case:
    """Return ADD, SUB, MUL or SQUARED_DIFFERENCE of every pair of int8 values, or of random int16 values."""
    every = draw.every() if draw.dtype is INT8 else draw.values((1, 256))
    grid = np.meshgrid(every, every)
    (left, first), (right, second) = (draw.input(array.reshape(1, -1)) for array in grid)
    a, b = draw.scale_of(left), draw.scale_of(right)
    reach = 1.0 if draw.dtype is INT8 else 256.0
    wide = {"MUL": a * b * 100 * reach, "SQUARED_DIFFERENCE": max(a, b) ** 2 * 300 * reach}.get(operator, 2 * max(a, b))
    output = draw.quantization(wide if draw.random.integers(2) else 2.0 ** float(np.round(np.log2(wide))))
    method = getattr(draw.network, f"add_{operator.lower()}_layer")
    layer = method(left, right, quantization=output)
    if operator in {"ADD", "SUB"}:
        sign = 1 if operator == "ADD" else -1
        return draw.case(layer, {"21 bits": _sum_of_21_bits(first, sign * second, a, b, output.scale)})
    if operator == "MUL":
        factor = np.float32(a) * np.float32(b) / np.float32(output.scale)
        return draw.case(layer, {"float32": np.rint((first * second).astype(np.float32) * factor)})
    return draw.case(layer)


def _sum_of_21_bits(first: Array, second: Array, a: float, b: float, scale: float) -> Array:
    left, right = np.float32(a) / np.float32(scale), np.float32(b) / np.float32(scale)
    shift = 20 - int(np.floor(np.log2(max(left, right))))
    factors = [int(np.rint(float(factor) * 2.0**shift)) for factor in (left, right)]
    return half_up(first * factors[0] + second * factors[1], shift)


def table(draw: Draw, operator: str) -> Case:
    """Return a function of one tensor, of every value of its type."""
    source, values = draw.input(draw.every())
    output = draw.quantization()
    network, ratio = draw.network, draw.scale_of(source) / output.scale
    alpha = np.array([100], np.int8)
    of_alpha = Quantization.of(0.0025, 3 if draw.dtype is INT8 else 0)
    layer = {
        "QUANTIZE": lambda: network.add_quantize_layer(source, draw.dtype, output),
        "RELU": lambda: network.add_relu_layer(source, quantization=output),
        "LEAKY_RELU": lambda: network.add_leaky_relu_layer(source, 0.1, quantization=output),
        "PRELU": lambda: network.add_prelu_layer(source, alpha, alpha_quantization=of_alpha, quantization=output),
        "HARD_SWISH": lambda: network.add_hard_swish_layer(source, quantization=output),
        "DEQUANTIZE": lambda: network.add_dequantize_layer(source),
        "LOGISTIC": lambda: network.add_logistic_layer(source),
        "TANH": lambda: network.add_tanh_layer(source),
    }[operator]()
    slope = float(np.float32(0.1)) if operator == "LEAKY_RELU" else 1.0
    if operator in {"QUANTIZE", "LEAKY_RELU"} and draw.dtype is INT8:
        eighths = [int(np.rint(256 * np.float32(ratio))), int(np.rint(256 * np.float32(ratio * slope)))]
        return draw.case(layer, {"8 bits": half_up(values * np.where(values >= 0, *eighths), 8)})
    return draw.case(layer)


def rows(draw: Draw, operator: str) -> Case:
    """Return an operator over the last axis."""
    source, _ = draw.input(draw.values((64, 20)))
    method = draw.network.add_softmax_layer if operator == "SOFTMAX" else draw.network.add_l2_normalization_layer
    return draw.case(method(source))


def spatial(draw: Draw, operator: str) -> Case:
    """Return an operator over the pixels of an image."""
    source, values = draw.input(draw.values((1, 5, 6, 32)))
    network, output = draw.network, draw.quantization()
    if operator == "AVERAGE_POOL_2D":
        return draw.case(network.add_average_pool2d_layer(source, (3, 3)))
    if operator == "RESIZE_BILINEAR":
        return draw.case(network.add_resize_bilinear_layer(source, (7, 9), half_pixel_centers=True))
    count = 30 if operator == "MEAN" else 1
    output = draw.quantization(output.scale * (30 // count))
    method = network.add_mean_layer if operator == "MEAN" else network.add_sum_layer
    factor = np.float32(draw.scale_of(source)) / (np.float32(output.scale) * np.float32(count))
    sums = values.sum((1, 2))
    others = {"float32": np.rint(sums.astype(np.float32) * factor), "float64": away(sums * float(factor))}
    return draw.case(method(source, [1, 2], quantization=output), others)


def concatenation(draw: Draw, operator: str) -> Case:
    """Return CONCATENATION of two inputs with one quantisation."""
    del operator
    quantization = draw.quantization()
    names: list[str] = []
    for _ in range(2):
        draw.arrays.append(draw.values((1, 256)))
        info = TensorInfo(name=f"x{len(names)}", shape=(1, 256), dtype=draw.dtype, quantization=quantization)
        names.append(draw.network.add_input(info))
    return draw.case(draw.network.add_concatenation_layer(names, 1))


Builder = Callable[[Draw, str], Case]
KINDS: Sequence[tuple[Builder, Sequence[str], Sequence[str]]] = (
    (weighted, ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"), ()),
    (batch_matmul, ("BATCH_MATMUL",), ()),
    (elementwise, ("ADD", "SUB", "MUL"), ("SQUARED_DIFFERENCE",)),
    (spatial, ("MEAN", "SUM", "AVERAGE_POOL_2D"), ("RESIZE_BILINEAR",)),
    (table, ("QUANTIZE", "DEQUANTIZE", "RELU", "LEAKY_RELU", "PRELU", "LOGISTIC", "TANH"), ("HARD_SWISH",)),
    (rows, ("SOFTMAX",), ("L2_NORMALIZATION",)),
    (concatenation, ("CONCATENATION",), ()),
)
"""What builds cases of which operators; the second group has no int16 kernel in LiteRT or in Ferrule."""


def operators() -> Iterator[tuple[str, DataType, Builder]]:
    """Return each row of the table: the operator, the type of its data, and what builds a case."""
    for dtype in (INT8, INT16):
        for build, both, int8_only in KINDS:
            for name in (*both, *(int8_only if dtype is INT8 else ())):
                yield name, dtype, build


def with_rule(network: Network, rule: Rounding) -> Network:
    """Return the network of one layer with another rule; UnsupportedError if the layer does not know the rule."""
    (layer,) = network.layers
    result = Network(network.name)
    for tensor in network.tensors:
        if tensor.data is not None:
            result.add_constant(tensor.info, tensor.data)
    for info in network.inputs:
        result.add_input(info)
    result.add_layer(replace(layer, rounding=rule), network.output_infos(layer))
    result.set_outputs(layer.outputs)
    return result


def by_rule(case: Case) -> dict[str, Array]:
    """Return the outputs of a case by each rule, Ferrule's own first."""
    results = {}
    for rule in (Rounding.TFLM, Rounding.SINGLE, Rounding.ONNX):
        with contextlib.suppress(FerruleError):
            results[str(rule)] = with_rule(case.network, rule).run(case.inputs)[0]
    return {**results, **case.others}


def litert(model: bytes, inputs: Sequence[Array], resolver: str) -> Array:
    """Return the output of LiteRT on one thread."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=OpResolverType[resolver], num_threads=1
    )
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def measure(operator: str, dtype: DataType, build: Builder, cases: int) -> tuple[int, dict[str, Counter[str]]]:
    """Return the number of values of all cases, and how many differ from each rule, by way of running."""
    values, differences = 0, {way: Counter[str]() for way in WAYS}
    for seed in range(cases):
        case = build(Draw(seed, dtype), operator)
        model, wanted = to_tflite(case.network), by_rule(case)
        values += wanted[Rounding.TFLM].size
        for way, resolver in WAYS.items():
            got = litert(model, case.inputs, resolver)
            differences[way].update({rule: int((got != array).sum()) for rule, array in wanted.items()})
    return values, differences


def verdict(differences: Counter[str], values: int) -> str:
    """Return the first rule without differences, or the nearest one with their number, or that none is near."""
    rule = min(differences, key=lambda name: differences[name])
    if not differences[rule]:
        return rule
    return f"{rule} but for {differences[rule]:,}" if differences[rule] < NEAR * values else "none of these"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operators", nargs="*", help="names of operators (default: all)")
    parser.add_argument("--cases", type=int, default=30, help="cases per operator and type")
    parser.add_argument("--details", action="store_true", help="print the number of differences of every rule")
    options = parser.parse_args()
    print(f"{'operator':20}{'type':7}{'values':>11}", *(f"{way:24}" for way in WAYS), sep="  ")
    for name, dtype, build in operators():
        if options.operators and name not in options.operators:
            continue
        values, differences = measure(name, dtype, build, options.cases)
        verdicts = [f"{verdict(differences[way], values):24}" for way in WAYS]
        print(f"{name:20}{dtype.value:7}{values:11,}", *verdicts, sep="  ")
        for way in WAYS if options.details else ():
            print(f"    {way}: {dict(differences[way])}")


if __name__ == "__main__":
    main()
