# SPDX-License-Identifier: Apache-2.0
"""Ferrule's reference compared with onnxruntime, operator by operator, on ONNX models or on random single operators.

    python benchmarks/onnx_oracle.py [model.onnx ...] [--inputs N] [--cases N] [--operators Conv ...] [--as-written]

A random operator stands between conversions, in a model with 8-bit or float32 inputs and outputs (`Edges`), and the
model's outputs are compared. Of a model from a file, onnxruntime runs the whole, and each int8 or uint8 tensor that it
computes is compared with what Ferrule's reference computes for that tensor alone, from the 8-bit tensors that
onnxruntime has before it, by the rule that the layer has in the whole model. So a difference counts once, at its
operator. onnxruntime has the configuration of `onnxruntime_outputs` (tests/support/oracle.py); with --as-written it
does not optimise.

On x86-64 processors without VNNI, onnxruntime's products of uint8 data and int8 weights saturate in pairs. All
sessions have `session.x64quantprecision`, by which the optimiser of onnxruntime 1.32.0 avoids that, but not in
QLinearMatMul of opset 21, and without the optimiser nowhere. A difference counts as `saturated` only if onnxruntime's
value is the one that `saturating` (tests/support/onnx_saturation.py) computes with such pairs. The last line has the
sums of all counts. The exit status is 1 if a difference remains that is neither saturated nor one step of an operator
in `NEAR`, or if an operator is refused in all models.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from onnx_cases import OPERATORS, case_of, edges_of
from onnx_saturation import saturating
from oracle import onnxruntime_outputs

from ferrule import FerruleError, Network, load
from ferrule.graph import Array, Layer, LayerType, Rounding

NEAR: Mapping[str, str] = {
    "Conv": "onnxruntime adds up float32 products where it does not fuse, in an order of its own",
    "ConvTranspose": "the same: onnxruntime has no such operator on integers",
    "Gemm": "as Conv",
    "MatMul": "as Conv",
    "ReduceMean": "onnxruntime adds up float32 values in vectors of its own",
}
"""The operators whose results next to a tie may differ by 1, with the reason."""
CONVERSIONS = ("QuantizeLinear", "DequantizeLinear")
EIGHT_BITS = (TensorProto.INT8, TensorProto.UINT8)
OBSERVED = "__observed"


@dataclass(slots=True)
class Count:
    """How often one operator was compared."""

    values: int = 0
    differences: int = 0
    saturated: int = 0
    """The differences that are onnxruntime's saturation."""
    largest: int = 0
    """The largest of the other differences."""
    refused: set[str] = field(default_factory=set)
    """Messages of the reader."""

    def add(self, distance: Array, different: Array, saturated: Array) -> None:
        """Count the values of one tensor: their distances in steps, which differ at all, and which saturate."""
        explained = different & saturated
        self.values += distance.size
        self.differences += int(different.sum())
        self.saturated += int(explained.sum())
        self.largest = max(self.largest, int(distance[~explained].max(initial=0)))

    @property
    def others(self) -> int:
        """The differences that are not saturation."""
        return self.differences - self.saturated


class Model:
    """An ONNX model whose 8-bit tensors can be observed and computed one by one."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        graph = model.graph
        self._constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self._constants |= {node.output[0]: _constant(node) for node in graph.node if node.op_type == "Constant"}
        self._producers = {name: node for node in graph.node for name in node.output}
        self.inputs = [info for info in graph.input if info.name not in self._constants]
        self._outputs = [info.name for info in graph.output]
        inferred = onnx.shape_inference.infer_shapes(model).graph
        self._eight_bits = {
            info.name
            for info in (*inferred.value_info, *inferred.output)
            if info.type.tensor_type.elem_type in EIGHT_BITS and info.name in self._producers
        }
        self._eight_bits |= {node.output[0] for node in graph.node if node.op_type.startswith(("QLinear", "QGemm"))}
        self._eight_bits &= self._varying()

    def _varying(self) -> set[str]:
        """Return the tensors that depend on an input; the others are constants, such as weights that are quantised."""
        varying = {info.name for info in self.inputs}
        for node in self._model.graph.node:
            if not varying.isdisjoint(node.input):
                varying.update(node.output)
        return varying

    def feeds(self, random: np.random.Generator) -> dict[str, Array]:
        """Return random inputs: integers of the whole range, floats a little beyond that of their QuantizeLinear."""
        return {info.name: self._random(random, info) for info in self.inputs}

    def _random(self, random: np.random.Generator, info: onnx.ValueInfoProto) -> Array:
        tensor = info.type.tensor_type
        shape = tuple(max(dimension.dim_value, 1) for dimension in tensor.shape.dim)
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(dtype, np.integer):
            limits = np.iinfo(dtype)
            return np.asarray(random.integers(limits.min, limits.max, shape, dtype, endpoint=True))
        for node in self._model.graph.node:
            if node.op_type == "QuantizeLinear" and node.input[0] == info.name:
                scale, zero_point = (self._constants[name] for name in node.input[1:3])
                limits = np.iinfo(zero_point.dtype)
                low, high = (1.05 * float(scale) * (end - int(zero_point)) for end in (limits.min, limits.max))
                return random.uniform(low, high, shape).astype(np.float32)
        return random.normal(size=shape).astype(np.float32)

    def observed(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Return what onnxruntime computes for each 8-bit tensor.

        A tensor between QuantizeLinear and DequantizeLinear is observed behind another DequantizeLinear: as an output
        of the graph it would keep onnxruntime from fusing the nodes before it. An int8 tensor that
        is used once becomes uint8 in onnxruntime, but not if it is used twice: the model is then cut behind the first.
        Values next to a tie may differ between such runs; the parts that read them then count more differences.
        """
        paired = {
            name: [node for node in self._readers(name) if node.op_type == "DequantizeLinear"]
            for name in self._eight_bits
            if self._producers[name].op_type == "QuantizeLinear"
            and len(self._producers[name].input) > 2
            and name not in self._outputs
        }
        cut = {
            name
            for name, readers in paired.items()
            if self._zero_point(name).dtype == np.int8 and self._uses(name) == 1 and len(readers) == 1
        }
        model, sources = ModelProto(), {}
        model.CopyFrom(self._model)
        for name in sorted(self._eight_bits - cut):
            sources[name] = f"{name}{OBSERVED}" if name in paired else name
            if name in paired:
                parameters = self._producers[name].input[1:3]
                model.graph.node.append(helper.make_node("DequantizeLinear", [name, *parameters], [sources[name]]))
            if name not in self._outputs:
                model.graph.output.append(helper.make_empty_tensor_value_info(sources[name]))
        arrays = onnxruntime_outputs(model, feeds, list(sources.values())) if sources else []
        found = dict(zip(sources, arrays, strict=True))
        for name in sorted(cut):
            (reader,) = paired[name]
            found[name] = onnxruntime_outputs(self._before(reader), feeds, [reader.output[0]])[0]
        return {
            name: array if array.dtype != np.float32 else self._stored(name, array) for name, array in found.items()
        }

    def scale_of(self, output: str) -> float:
        """Return the scale of an output that a DequantizeLinear makes."""
        return float(self._constants[self._producers[output].input[1]])

    def _readers(self, name: str) -> list[NodeProto]:
        return [node for node in self._model.graph.node if name in node.input]

    def _uses(self, name: str) -> int:
        """Return how often a tensor is used; onnxruntime makes a DequantizeLinear for each use."""
        uses = 0
        for node in self._readers(name):
            real = node.op_type == "DequantizeLinear"
            uses += len(self._readers(node.output[0])) + (node.output[0] in self._outputs) if real else 1
        return uses

    def _zero_point(self, name: str) -> Array:
        return self._constants[self._producers[name].input[2]]

    def _before(self, last: NodeProto) -> ModelProto:
        """Return the model without the nodes that depend on a node; what they read besides becomes an output."""
        model, gone = ModelProto(), set(last.output)
        model.CopyFrom(self._model)
        del model.graph.node[:], model.graph.output[:]
        outputs = dict.fromkeys(last.output)
        for node in self._model.graph.node:
            if gone.isdisjoint(node.input):
                model.graph.node.append(node)
                continue
            gone.update(node.output)
            outputs |= dict.fromkeys(name for name in node.input if name in self._varying())
        kept = [name for name in (*outputs, *self._outputs) if name in last.output or name not in gone]
        model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(kept))
        return model

    def _stored(self, name: str, real: Array) -> Array:
        scale, zero_point = (self._constants[source] for source in self._producers[name].input[1:3])
        return (np.rint(real.astype(np.float64) / float(scale)) + float(zero_point)).astype(zero_point.dtype)

    def parts(self, values: Mapping[str, Array]) -> Iterator[tuple[str, str, ModelProto]]:
        """Return, for each 8-bit tensor, its name, its operators and a model that computes it from those before it.

        Tensors whose stored values are only moved or selected, as by Reshape or MaxPool, are left out: their parts
        have no scale.
        """
        for name in self._eight_bits:
            nodes, sources = self._closure(name, values)
            if not any("Linear" in node.op_type or node.op_type == "QGemm" for node in nodes):
                continue
            names = [node.op_type for node in nodes if node.op_type not in {*CONVERSIONS, "Constant"}]
            if not names:
                names = [kind for kind in reversed(CONVERSIONS) if any(node.op_type == kind for node in nodes)]
            used = {source for node in nodes for source in node.input}
            kept = [tensor for tensor in self._model.graph.initializer if tensor.name in used]
            inputs = [_value_info(source, values[source]) for source in sources]
            graph = helper.make_graph(nodes, "part", inputs, [_value_info(name, values[name])], kept)
            part = helper.make_model(graph, opset_imports=self._model.opset_import, functions=self._model.functions)
            part.ir_version = self._model.ir_version
            yield name, " + ".join(names), part

    def _closure(self, name: str, values: Mapping[str, Array]) -> tuple[list[NodeProto], list[str]]:
        """Return the nodes that compute a tensor, in order, and the tensors with known values which they read."""
        wanted, sources, taken = [name], [], set()
        while wanted:
            node = self._producers[wanted.pop()]
            taken.add(node.output[0])
            for source in filter(None, node.input):
                if source in values and source not in sources:
                    sources.append(source)
                elif source in self._producers and self._producers[source].output[0] not in taken:
                    wanted.append(source)
        return [node for node in self._model.graph.node if node.output[0] in taken], sources


def _constant(node: NodeProto) -> Array:
    (attribute,) = node.attribute
    if attribute.name == "value":
        return np.asarray(numpy_helper.to_array(attribute.t))
    return np.asarray(helper.get_attribute_value(attribute))


def _value_info(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def compare(model: ModelProto, random: np.random.Generator, inputs: int, counts: dict[str, Count]) -> None:
    """Add what one model's tensors show on random inputs to the counts by operator."""
    subject = Model(model)
    rules = _rules(model)
    networks: dict[str, Network | None] = {}
    for index in range(inputs):
        feeds = subject.feeds(random)
        values = {**feeds, **subject.observed(feeds)}
        for name, operators, part in subject.parts(values):
            count = counts[operators]
            if index == 0:
                networks[name] = _network(part, count, rules)
            network = networks[name]
            if network is None:
                continue
            got = network.run([values[info.name] for info in part.graph.input])[0].astype(np.int64)
            distance = np.abs(got.reshape(values[name].shape) - values[name])
            count.add(distance, distance > 0, _saturated(part, values, values[name]))


def compare_case(model: ModelProto, random: np.random.Generator, count: Count, *, optimised: bool) -> None:
    """Add to a count what the outputs of a model of one operator show on random inputs."""
    subject = Model(model)
    feeds = subject.feeds(random)
    try:
        network = load(model.SerializeToString(), onnx_arithmetic="optimised" if optimised else "as-written")
    except FerruleError as error:
        count.refused.add(str(error))
        return
    wanted = onnxruntime_outputs(model, feeds, fused=optimised)
    for info, ours, theirs in zip(model.graph.output, network.run(dict(feeds)), wanted, strict=True):
        step = subject.scale_of(info.name) if theirs.dtype == np.float32 else 1.0
        distance = np.rint(np.abs(ours.astype(np.float64) - theirs) / step).astype(np.int64)
        count.add(distance, (distance > 0) | (ours != theirs), _saturated(model, feeds, theirs))


def _saturated(model: ModelProto, feeds: Mapping[str, Array], theirs: Array) -> Array:
    """Return which of onnxruntime's values are those of pairs that saturate."""
    expected = saturating(model, feeds)
    return np.zeros(theirs.shape, np.bool_) if expected is None else np.asarray(expected == theirs)


def _rules(model: ModelProto) -> dict[tuple[str, LayerType], Rounding]:
    """Return the rules of the layers of a whole model, by output and type."""
    return {(_plain(layer), layer.type): layer.rounding for layer in load(model.SerializeToString()).layers}


def _plain(layer: Layer) -> str:
    return layer.outputs[0].removesuffix("_unclamped").removesuffix("_int8")


def _network(part: ModelProto, count: Count, rules: Mapping[tuple[str, LayerType], Rounding]) -> Network | None:
    """Return the network of a part with the rules that its layers have in the whole model.

    If the reader refuses it, the message comes into the count.
    """
    try:
        network = load(part.SerializeToString())
    except FerruleError as error:
        count.refused.add(str(error))
        return None
    ruled = Network(network.name)
    for tensor in network.tensors:
        if tensor.data is not None:
            ruled.add_constant(tensor.info, tensor.data)
    for info in network.inputs:
        ruled.add_input(info)
    for layer in network.layers:
        rule = rules.get((_plain(layer), layer.type), layer.rounding)
        ruled.add_layer(replace(layer, rounding=rule), network.output_infos(layer))
    ruled.set_outputs([info.name for info in network.outputs])
    return ruled


def report(counts: Mapping[str, Count]) -> bool:
    """Print the table and the sums; return whether all operators were compared, and each difference has a reason."""
    print(f"{'operator':48}{'compared':>12}{'different':>11}{'saturated':>11}{'largest':>9}")
    unexplained = near_ties = 0
    for name, count in sorted(counts.items()):
        print(f"{name:48}{count.values:12,}{count.differences:11,}{count.saturated:11,}{count.largest:9}")
        for message in sorted(count.refused):
            print(f"    refused: {message.replace(chr(10), ';')}")
        operators = re.split(" [+] |[,:] ", name)
        near = next((reason for operator, reason in NEAR.items() if operator in operators), "")
        if count.others and near and count.largest <= 1:
            print(f"    {near}")
            near_ties += count.others
        else:
            unexplained += count.others
    totals = [sum(getattr(count, each) for count in counts.values()) for each in ("values", "differences", "saturated")]
    compared, different, saturated = totals
    print(
        f"compared {compared:,} values: different {different:,}, of which saturated {saturated:,}, "
        f"next to a tie {near_ties:,}, unexplained {unexplained:,}"
    )
    return not unexplained and all(count.values for count in counts.values())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path, help="ONNX models (default: random single operators)")
    parser.add_argument("--inputs", type=int, default=4, help="random inputs per model")
    parser.add_argument("--cases", type=int, default=20, help="random models per operator")
    parser.add_argument("--operators", nargs="*", choices=sorted(OPERATORS), help="random operators (default: all)")
    parser.add_argument("--as-written", action="store_true", help="compare random operators without the optimiser")
    options = parser.parse_args(arguments)
    counts: dict[str, Count] = defaultdict(Count)
    for path in options.models:
        compare(onnx.load(path), np.random.default_rng(0), options.inputs, counts)
    if not options.models:
        for name in options.operators or OPERATORS:
            for edges, dtype in product(edges_of(name), ("int8", "uint8")):
                for seed in range(options.cases):
                    random = np.random.default_rng(seed)
                    count = counts[f"{name}: {edges}"]
                    compare_case(case_of(name, random, edges, dtype), random, count, optimised=not options.as_written)
    return 0 if report(counts) else 1


if __name__ == "__main__":
    sys.exit(main())
