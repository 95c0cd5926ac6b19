# SPDX-License-Identifier: Apache-2.0
"""The exporter, which has the model already."""

from __future__ import annotations

from types import SimpleNamespace as Namespace
from typing import Any

from torch.export import ExportedProgram


class DispatchError(Exception):
    """An operator has no function."""


def export(
    program: ExportedProgram, args: tuple[Any, ...], *, kwargs: object, dynamo: bool, verbose: bool
) -> Namespace:
    """Return the ONNX model of a program, or raise as torch does: a long text whose cause is short."""
    assert (args, kwargs, dynamo, verbose) == ((), {}, True, False)
    if "fails" in program.facts:
        raise RuntimeError("Failed to convert the program\nNext steps:") from DispatchError(program.facts["fails"])
    return made(program.facts)


class Graph(list[Namespace]):
    """The operators, with the ends."""

    inputs: list[Namespace]
    outputs: list[Namespace]
    initializers: dict[str, Namespace]


def made(facts: dict[str, Any]) -> Namespace:
    """Return what an export returns; each of the nodes has an argument `train` that is true."""
    values = [Namespace(name=name) for name in facts["outputs"]]
    inputs = [Namespace(name=name) for name in facts.get("inputs", ["x"])]
    schema = Namespace(arguments=[Namespace(name="input"), Namespace(name="train")])
    nodes = [
        Namespace(name=name, target=Namespace(_schema=schema), args=(None, True), kwargs={}) for name in facts["nodes"]
    ]

    graph = Graph([Namespace(outputs=values)])
    graph.inputs, graph.outputs, graph.initializers = inputs, values, {}
    spec = Namespace(num_leaves=len(values), structure=facts["structure"])
    return Namespace(
        model=Namespace(graph=graph),
        exported_program=Namespace(graph=Namespace(nodes=nodes), call_spec=Namespace(out_spec=spec)),
        model_proto=Namespace(SerializeToString=lambda: _renamed(facts["onnx"], facts["outputs"], values)),
    )


def _renamed(data: bytes, before: list[str], values: list[Any]) -> bytes:
    import onnx

    model = onnx.ModelProto.FromString(data)
    names = {old: value.name for old, value in zip(before, values, strict=True)}
    for node in model.graph.node:
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in model.graph.output:
        value.name = names.get(value.name, value.name)
    return model.SerializeToString()
