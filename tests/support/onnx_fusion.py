# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime's optimiser fuses in random quantised graphs, compared with what the reader says, and the outputs.

    python tests/support/onnx_fusion.py [--graphs N] [--first N]

A graph has up to five operators between conversions, which share tensors, constants and conversions, move elements and
clamp; its inputs and outputs are float32 or 8 bits. Whether an operator is fused is read in the optimised model that
onnxruntime saves. The exit status is 1 if an operator is fused in another way than said, or an output differs. Where
the float32 result of an operator is an output, too, there is a float32 layer: it may differ by 1e-5, and integers
behind it by a step. Two kinds of graphs are only counted: those that onnxruntime itself cannot optimise, since from
opset 21 on it gives up where it moves int8 conversions; and those in which it moves a Transpose over other operators,
and conversions with it, which the reader does not follow.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from amounts import amount
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ferrule import load
from ferrule.formats.onnx.folding import Folding
from ferrule.formats.onnx.fusion import FUSED, fusions
from ferrule.formats.onnx.normalise import normalised
from ferrule.formats.onnx.parse import parse
from ferrule.formats.onnx.quantised import without_repetitions
from ferrule.graph import Array

OPSETS = (13, 17, 18, 19, 21, 23)
SHAPE = (1, 4, 4, 4)
SCALES = (0.05, 0.03, 0.0625)
FLOAT = "float32"

Stored = tuple[str, tuple[str, str]]
"""The name of an 8-bit tensor, and those of its scale and zero point."""


@dataclass(slots=True)
class Graph:
    """A random graph while it grows."""

    dice: random.Random
    dtype: str
    nodes: list[NodeProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    """The types of the outputs, by name."""
    real: dict[str, str] = field(default_factory=dict)
    """What a DequantizeLinear made of 8-bit tensors."""

    def name(self, letter: str) -> str:
        """Return a name that nothing has."""
        return f"{letter}{len(self.nodes)}_{len(self.constants)}_{len(self.inputs)}"

    def constant(self, data: object, dtype: object = None) -> str:
        """Add a constant and return its name."""
        name = self.name("k")
        self.constants[name] = np.asarray(data, dtype)  # type: ignore[call-overload]
        return name

    def parameters(self) -> tuple[str, str]:
        """Add a scale and a zero point, at the end of the range or inside."""
        low = np.iinfo(self.dtype).min
        scale = self.constant(self.dice.choice(SCALES), np.float32)
        return scale, self.constant(self.dice.choice([low, low + 128, low + 90]), self.dtype)

    def node(self, op: str, inputs: Sequence[str], **attributes: object) -> str:
        """Add a node and return its output."""
        output = self.name(op[0].lower())
        self.nodes.append(helper.make_node(op, list(inputs), [output], **attributes))  # type: ignore[arg-type]
        return output

    def source(self) -> Stored:
        """Add an input of either type, or a constant, which may be narrow."""
        parameters, kind = self.parameters(), self.dice.random()
        if kind > 0.75:
            reach = 60 if self.dice.random() < 0.4 else 128
            values = np.random.default_rng(self.dice.getrandbits(32)).integers(-reach, reach, SHAPE)
            return self.constant(values + (128 if self.dtype == "uint8" else 0), self.dtype), parameters
        name, stored = self.name("x"), kind < 0.4
        self.inputs.append(_info(name, self.dtype if stored else FLOAT, SHAPE))
        return (name if stored else self.node("QuantizeLinear", [name, *parameters])), parameters

    def dequantised(self, stored: Stored) -> str:
        """Return a DequantizeLinear of a tensor, an old one or a new one."""
        if stored[0] not in self.real or self.dice.random() < 0.5:
            self.real[stored[0]] = self.node("DequantizeLinear", [stored[0], *stored[1]])
        return self.real[stored[0]]

    def operator(self, first: Stored, tensors: Sequence[Stored]) -> Stored:
        """Add an operator between conversions, with what may stand before the second one."""
        op = self.dice.choice([*FUSED, "Add", "Mul", "Reshape", "Transpose", "MaxPool", "Relu"])
        sources = [self.dequantised(first)]
        if FUSED.get(op) == 2:
            sources.append(self.dequantised(self.dice.choice(tensors)))
            self.dice.shuffle(sources)
        result = self._applied(op, sources)
        if self.dice.random() < 0.25:
            result = self._clamped(result)
        if self.dice.random() < 0.15:
            result = self._applied(self.dice.choice(["Reshape", "Transpose", "MaxPool"]), [result])
        if self.dice.random() < 0.05:
            self.outputs[result] = FLOAT
        same = op in {"Reshape", "Transpose", "MaxPool"} or self.dice.random() < 0.3
        parameters = first[1] if same else self.parameters()
        return self.node("QuantizeLinear", [result, *parameters]), parameters

    def _applied(self, op: str, sources: list[str]) -> str:
        match op:
            case "AveragePool" | "MaxPool":
                sizes = {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}
                return self.node(op, sources, **sizes)
            case "Softmax":
                return self.node(op, sources, axis=-1)
            case "Reshape":
                return self.node(op, [*sources, self.constant([0, 0, 0, -1])])
            case "Transpose":
                return self.node(op, sources, perm=[0, 1, 3, 2])
        return self.node(op, sources)

    def _clamped(self, source: str) -> str:
        if self.dice.random() < 0.5:
            return self.node("Relu", [source])
        scale = self.dice.choice(SCALES)
        low = self.constant(self.dice.choice([0, -1e9, -128 * scale]), np.float32)
        return self.node("Clip", [source, low, self.constant(self.dice.choice([6, 127 * scale, 1e9]), np.float32)])

    def model(self) -> ModelProto:
        """Return the model, without constants and inputs that nothing reads."""
        used = {name for node in self.nodes for name in node.input}
        constants = [numpy_helper.from_array(data, name) for name, data in self.constants.items() if name in used]
        inputs = [each for each in self.inputs if each.name in used]
        results = [_info(name, dtype, None) for name, dtype in self.outputs.items()]
        graph = helper.make_graph(self.nodes, "random", inputs, results, constants)
        opsets = [helper.make_opsetid("", self.dice.choice(OPSETS)), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _info(name: str, dtype: str, shape: Sequence[int] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def random_graph(seed: int) -> ModelProto:
    """Return a random quantised model; every operator depends on an input."""
    dice = random.Random(seed)
    graph = Graph(dice, dice.choice(["int8", "int8", "int8", "uint8"]))
    tensors = [graph.source() for _ in range(dice.randint(1, 3))]
    varying = [each for each in tensors if each[0] not in graph.constants]
    while not varying:
        tensors.append(graph.source())
        varying = [each for each in tensors if each[0] not in graph.constants]
    made = []
    for _ in range(dice.randint(1, 5)):
        made.append(graph.operator(dice.choice(varying), tensors))
        tensors.append(made[-1])
        varying.append(made[-1])
    read = {name for node in graph.nodes for name in node.input}
    for stored in made:
        if stored[0] not in read or dice.random() < 0.15:
            if dice.random() < 0.6:
                graph.outputs[stored[0]] = graph.dtype
            else:
                graph.outputs[graph.node("DequantizeLinear", [stored[0], *stored[1]])] = FLOAT
    return graph.model()


def session(model: ModelProto, saved: Path) -> ort.InferenceSession:
    """Return a session in the configuration of docs/onnx.md, which saves its optimised model."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.optimized_model_filepath = str(saved)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def found(model: ModelProto) -> Counter[tuple[str, str]]:
    """Return the operators of an optimised model, with the type of their integers or float32."""
    types = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    kinds: Counter[tuple[str, str]] = Counter()
    for node in model.graph.node:
        op = node.op_type.removeprefix("QLinear")
        if op in FUSED:
            unsigned = types.get(node.input[-1]) == TensorProto.UINT8
            kinds[op, FLOAT if op == node.op_type else "uint8" if unsigned else "int8"] += 1
    return kinds


def said(model: ModelProto) -> Counter[tuple[str, str]]:
    """Return what the reader says of the same operators."""
    record = parse(model.SerializeToString(), None)
    graph, outputs = normalised(record, Folding()), frozenset(value.name for value in record.outputs)
    nodes = without_repetitions(graph.nodes, set(outputs), graph.constants)
    types = fusions(nodes, graph.constants, outputs).types
    return Counter((node.op, types.get(node.outputs[0], FLOAT)) for node in nodes if node.op in FUSED)


def differing(model: ModelProto, running: ort.InferenceSession, seed: int) -> int:
    """Return how many elements of the outputs differ for random inputs."""
    generator = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for info in running.get_inputs():
        limits = None if info.type == "tensor(float)" else np.iinfo(info.type.removeprefix("tensor(").rstrip(")"))
        values = generator.normal(size=info.shape) * 3 if limits is None else None
        feeds[info.name] = (
            generator.integers(limits.min, limits.max, info.shape, limits.dtype, endpoint=True)
            if limits is not None
            else np.asarray(values, np.float32)
        )
    network = load(model.SerializeToString())
    stored = {name for each in model.graph.node if "Linear" in each.op_type for name in each.output}
    real = any(info.name not in stored for info in model.graph.output)
    count = 0
    for got, wanted in zip(network.run(dict(feeds)), running.run(None, feeds), strict=True):
        step = max(SCALES) + 1e-5 if wanted.dtype == np.float32 else 1
        far = np.abs(got.astype(np.float64) - wanted) > step if real else got != wanted
        count += int(far.sum())
    return count


@dataclass(slots=True)
class Tally:
    """What random graphs showed."""

    graphs: int = 0
    refused: int = 0
    """Those that onnxruntime cannot optimise."""
    transposed: list[int] = field(default_factory=list)
    """The seeds of graphs with a Transpose of which the reader says something else."""
    operators: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[int] = field(default_factory=list)
    """The seeds of graphs of which the reader says something else."""
    differing: list[int] = field(default_factory=list)
    """The seeds of graphs with other outputs."""


def compare(seed: int, tally: Tally) -> None:
    """Add what one random graph shows."""
    model = random_graph(seed)
    tally.graphs += 1
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "optimised.onnx"
        try:
            running = session(model, saved)
        except (ort.capi.onnxruntime_pybind11_state.Fail, ort.capi.onnxruntime_pybind11_state.RuntimeException):
            tally.refused += 1
            return
        kinds = found(onnx.load(saved))
    tally.operators += kinds
    if kinds != said(model):
        moved = any(node.op_type == "Transpose" for node in model.graph.node)
        (tally.transposed if moved else tally.wrong).append(seed)
    if differing(model, running, seed):
        tally.differing.append(seed)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=amount, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args(arguments)
    tally = Tally()
    for seed in range(options.first, options.first + options.graphs):
        compare(seed, tally)
    lines = [f"{tally.graphs} graphs, of which onnxruntime cannot optimise {tally.refused}"]
    lines += [f"  {op:20}{kind:10}{count:6}" for (op, kind), count in sorted(tally.operators.items())]
    lines.append(f"with a Transpose that onnxruntime moves: {len(tally.transposed)} {tally.transposed[:10]}")
    lines.append(f"fused in another way than said: {len(tally.wrong)} {tally.wrong[:10]}")
    lines.append(f"with other outputs: {len(tally.differing)} {tally.differing[:10]}")
    sys.stdout.write("\n".join(lines) + "\n")
    compared = tally.graphs > tally.refused and tally.operators.total() > 0
    return 0 if compared and not tally.wrong and not tally.differing else 1


if __name__ == "__main__":
    sys.exit(main())
