# SPDX-License-Identifier: Apache-2.0
"""A layer of each type that has float32 between dense layers, at the inputs and at the outputs, becomes integers."""

from __future__ import annotations

import math
import random as dice
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from float_networks import FLOAT32, random
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import interpreter, litert_reference

import ferrule
from ferrule.graph import Array, Layer, LayerType, TensorInfo
from ferrule.graph.assembly import assemble
from ferrule.network.copying import network_of
from ferrule.operators.elementwise.comparison import COMPARISONS
from ferrule.operators.elementwise.quantize import CONVERSIONS
from ferrule.operators.operator import Operands, keeps_nothing
from ferrule.operators.sample import LayerSample
from ferrule.operators.table import BEYOND_TFLITE, OPERATORS
from ferrule.quantization import QuantizedModel
from ferrule.quantization.own import is_float
from ferrule.quantization.recurrent import KEPT

PLACES = ("middle", "input", "output")
WIDTH = 12
TRIES = 8
"""Random layers of a type, of which the first is taken that a float32 network can have."""
APART = {*CONVERSIONS, *KEPT}
"""Types with state, which have tests of their own, and those that quantise."""
POSITIVE = {
    LayerType.LOG,
    LayerType.SQRT,
    LayerType.RSQRT,
    LayerType.DIV,
    LayerType.FLOOR_DIV,
    LayerType.FLOOR_MOD,
}
"""Types whose results for other numbers are not finite, or very large."""
STEPS = {
    LayerType.CEIL,
    LayerType.FLOOR,
    LayerType.FLOOR_DIV,
    LayerType.FLOOR_MOD,
    LayerType.ROUND,
    LayerType.SIGN,
    LayerType.ZEROS_LIKE,
    LayerType.DETECTION_POSTPROCESS,
    *(row.type for row in COMPARISONS),
}
"""Types whose results jump, so that a small error before them can become a large one."""
LEAST_DB = {"int8": 20.0, "int16": 30.0}
"""The signal to quantisation noise ratio that each layer has, against the float network."""


class Built:
    """A network with a branch for each type of layer; the names of a branch's tensors begin with the type."""

    def __init__(self, place: str) -> None:
        self.network = ferrule.Network("branches")
        self.network.add_input(TensorInfo("x", (1, WIDTH), FLOAT32))
        self._place = place
        outputs = ["x0"]
        self._dense("x", (1, 3), "x0", seed=1)
        self.types: list[LayerType] = []
        for type_, operator in sorted(OPERATORS.items()):
            if operator.sample is None or operator.states is not keeps_nothing or type_ in APART | BEYOND_TFLITE:
                continue
            results = self._branch(type_)
            outputs += results
            self.types += [type_] * bool(results)
        self.network.set_outputs(outputs)

    def data(self, folder: Path, count: int = 16) -> list[str]:
        """Write samples, and return what `quantize` gets."""
        found = []
        for index, info in enumerate(self.network.inputs):
            np.save(folder / f"{index}.npy", values(info, count, seed=5))
            found.append(f"{info.name}={folder / f'{index}.npy'}")
        return found

    def _branch(self, type_: LayerType) -> list[str]:
        for seed in range(TRIES):
            sample = LayerSample(dice=dice.Random(f"{type_} {seed}"), dtype=FLOAT32)
            draw = OPERATORS[type_].sample
            assert draw is not None
            descriptor = draw(sample)
            real = [index for index in range(len(sample.inputs)) if index not in sample.constants]
            shapes = [sample.inputs[index].shape for index in real]
            if not real or not all(shapes) or any(sample.inputs[index].dtype is not FLOAT32 for index in real):
                continue
            infos = OPERATORS[type_].infer(descriptor, sample.inputs)
            kinds = [sample.output_type or FLOAT32, *(each[0] for each in sample.further)]
            results = [
                TensorInfo(f"{type_}_out{index}", shape, kinds[min(index, len(kinds) - 1)])
                for index, shape in enumerate(infos)
            ]
            operands = Operands(tuple(sample.inputs), outputs=tuple(results))
            if not sample.absent and OPERATORS[type_].accepts(descriptor, operands):
                names = [self._input(type_, index, sample) for index in range(len(sample.inputs))]
                layer = Layer(f"{type_}_layer", type_, descriptor, tuple(names), tuple(info.name for info in results))
                self.network.add_layer(layer, results)
                return self._behind(type_, results)
        return []

    def _input(self, type_: LayerType, index: int, sample: LayerSample) -> str:
        info = replace(sample.inputs[index], name=f"{type_}_in{index}")
        if index in sample.constants:
            return self.network.add_constant(info, sample.constants[index])
        if self._place == "input":
            return self.network.add_input(info)
        return self._dense("x", info.shape, info.name, seed=index + 2, positive=type_ in POSITIVE)

    def _behind(self, type_: LayerType, results: Sequence[TensorInfo]) -> list[str]:
        first = results[0]
        if self._place == "output" or first.dtype is not FLOAT32:
            return [info.name for info in results]
        return [self._dense(first.name, (1, 5), f"{type_}_y", seed=9)]

    def _dense(self, source: str, shape: tuple[int, ...], name: str, *, seed: int, positive: bool = False) -> str:
        network, size, count = self.network, math.prod(shape), self.network.info(source).elements
        if network.info(source).shape != (1, count):
            source = network.add_reshape_layer(source, (1, count), name=f"{name}_flat")
        weights, bias = random(size, count, seed=seed) / np.float32(count**0.5), random(size, seed=seed) / 4
        if positive:
            weights, bias = np.abs(weights), np.abs(bias) + 1
        weights, bias = weights.astype(np.float32), bias.astype(np.float32)
        if shape == (1, size):
            return network.add_fully_connected_layer(source, weights, bias, name=name)
        made = network.add_fully_connected_layer(source, weights, bias, name=f"{name}_dense")
        return network.add_reshape_layer(made, shape, name=name)


def values(info: TensorInfo, count: int, seed: int) -> Array:
    """Return samples of an input: positive numbers for "x" and for the types that need them."""
    found = random(count * info.shape[0], *info.shape[1:], seed=seed)
    needs = info.name == "x" or any(info.name.startswith(f"{type_}_in") for type_ in POSITIVE)
    return np.asarray(np.abs(found) + np.float32(0.5 if needs and info.name != "x" else 0)) if needs else found


def alone(network: ferrule.Network, layer: Layer) -> ferrule.Network:
    """Return a network of one layer of another, whose inputs and outputs have the names that they have there."""
    tensors = {tensor.info.name: tensor for tensor in network.tensors}
    inputs = dict.fromkeys(name for name in layer.present_inputs if not tensors[name].is_constant)
    parts = {"inputs": list(inputs), "outputs": list(layer.outputs), "layers": [layer], "tensors": tensors}
    return network_of(assemble(network.name, states=(), **parts))  # type: ignore[arg-type]


def quantised(place: str, scheme: str, folder: Path) -> tuple[Built, QuantizedModel]:
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")
    built = Built(place)
    return built, ferrule.quantize(built.network, built.data(folder), scheme=scheme, compared=3)


@pytest.mark.parametrize(
    ("place", "scheme"),
    [
        pytest.param(place, scheme, marks=[] if place == "middle" else [pytest.mark.nightly])
        for place in PLACES
        for scheme in ("int8", "int16")
    ],
)
def test_each_type_of_layer(tmp_path: Path, place: str, scheme: str) -> None:
    """Integers, or float32 with a reason for users; near the float network; equal to an interpreter bit for bit."""
    built, done = quantised(place, scheme, tmp_path)
    assert len(built.types) > 70
    other = "int16" if scheme == "int8" else "int8"
    for each in done.floats:
        reasons = {
            f"{each.type} has no integer kernel",
            f"{each.type} has no kernel for {scheme}, but one for {other}",
            f"{each.type} of integers takes samples without a scale",
        }
        assert each.reason in reasons, each
    floats = [layer for layer in done.network.layers if layer.type not in CONVERSIONS and is_float(done.network, layer)]
    assert sorted(each.type for each in done.floats) == sorted(str(layer.type) for layer in floats)
    jumps = tuple(f"{type_}_" for type_ in STEPS)
    weak = {
        each.name: each.sqnr_db
        for each in done.losses
        if each.sqnr_db is not None and each.sqnr_db < LEAST_DB[scheme] and not each.tensor.startswith(jumps)
    }
    assert weak == {}
    given = [
        info.quantize(values(real, 1, 77)) if info.quantization else values(real, 1, 77)
        for info, real in zip(done.network.inputs, done.float_network.inputs, strict=True)
    ]
    seen: dict[str, Array] = dict(zip((info.name for info in done.network.inputs), given, strict=True))

    def observe(layer: Layer, made: Sequence[Array]) -> None:
        seen.update(zip(layer.outputs, made, strict=True))

    found = done.network.run(given, observe=observe)
    for ours, again in zip(found, ferrule.load(done.tflite).run(given), strict=True):
        assert_array_equal(ours, again)
    refused = set()
    for layer in done.network.layers:
        if layer.type not in built.types or is_float(done.network, layer):
            continue
        part = alone(done.network, layer)
        try:
            reference = litert_reference if layer.type in UNWRITTEN else interpreter
            expected = reference(part, [seen[info.name] for info in part.inputs])
        except (RuntimeError, ValueError):
            refused.add(layer.type)
            continue
        for name, theirs in zip(layer.outputs, expected, strict=True):
            assert_array_equal(seen[name], theirs, f"{layer.type} {name}")
    assert refused <= REFUSED


UNWRITTEN = {LayerType.SPACE_TO_BATCH_ND}
"""Types whose padding TensorFlow Lite Micro leaves unwritten, for 3 axes."""
REFUSED: set[LayerType] = set()
"""Types for which neither interpreter has the integers, and whose results the tests of their kernels check."""
