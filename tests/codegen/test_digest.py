# SPDX-License-Identifier: Apache-2.0
"""Digests of graphs, also of those that contain pre-compiled layers."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from ferrule.backends import PreCompiledDescriptor
from ferrule.codegen.digest import digest
from ferrule.graph import DataType, Graph, GraphEditor, Layer, LayerType, Rounding, TensorInfo
from ferrule.testing.backends.layer_cases import layer_case


def graph(descriptor: PreCompiledDescriptor) -> Graph:
    made = Graph("compiled")
    made.add_input(TensorInfo("x", (3,), DataType.FLOAT32))
    layer = Layer("p", LayerType.PRE_COMPILED, descriptor, inputs=("x",), outputs=("y",))
    made.add_layer(layer, [TensorInfo("y", (3,), DataType.FLOAT32)])
    made.set_outputs(["y"])
    return made


def of(payload: object, label: str = "program", macs: int = 1) -> str:
    return digest(graph(PreCompiledDescriptor(payload=payload, label=label, macs=macs)))


def test_equal_payloads_are_equal() -> None:
    word = "".join(["a", "dd"])
    assert of((word, word, 1.5)) == of((word, "".join(["ad", "d"]), 1.5))


def test_graphs_in_payloads_count_by_their_contents() -> None:
    inner, other = graph(PreCompiledDescriptor(payload=1)), graph(PreCompiledDescriptor(payload=2))
    before = of(("chain", inner))
    inner.unique_name("x")  # the graph now keeps a number for the name
    assert of(("chain", inner)) == before != of(("chain", other))


def test_payload_label_and_macs_count() -> None:
    assert len({of(1), of(2), of(1, label="other"), of(1, macs=2), of("1")}) == 5


def test_what_cannot_be_pickled_counts_by_its_label() -> None:
    assert of(lambda: 1) == of(lambda: 2)
    assert of(lambda: 1) != of(lambda: 1, label="other")


def test_a_payload_that_holds_itself_counts_by_its_label() -> None:
    ring: list[object] = [1]
    ring.append(ring)
    assert of(ring) == of(lambda: 1)


def test_the_graph_of_a_pre_compiled_layer_has_one_digest_in_every_process() -> None:
    program = (
        "from ferrule.codegen.digest import _pickled; from ferrule.graph.names import UniqueNames; "
        "print(_pickled(UniqueNames(map(str, range(40)))))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_layer_without_another_rule_has_the_digest_of_earlier_versions() -> None:
    found = digest(layer_case(LayerType.ADD, DataType.INT8, 0))
    assert found == "d16b59bd78385193a7a4e3f702c3c70bfed603c1ddb46cd1be35a9533fa22c87"


def test_the_rule_of_a_layer_counts() -> None:
    found = set()
    for rule in Rounding:
        case = layer_case(LayerType.ADD, DataType.INT8, 0)
        graph = GraphEditor(case)
        graph.replace_layer(replace(case.layer("layer"), rounding=rule))
        found.add(digest(graph.finish()))
    assert len(found) == len(Rounding)
