# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets: damaged ONNX models."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
from fuzzing import Check, Target, refused
from mutation import mutate
from onnx import TensorProto
from onnx_graphs import autoencoder, samples_of, small_cnn, squeeze_and_excitation, transformer, u_net
from onnx_storage import Form, quantised
from score_onnx import packaged_tests

from ferrule.formats import load
from ferrule.formats.onnx.operators import OPERATORS

_NUMBERS = (*range(-3, 9), 127, 128, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**63 - 1, -(2**31), -(2**63))
_TYPES = (*range(24), 99)


def graphs() -> list[Any]:
    """Return small models of the kinds that are read, float32 and quantised."""
    cnn = small_cnn(6)
    samples = samples_of(cnn, 2)
    return [
        cnn,
        small_cnn(6, clip=True, opset=13),
        squeeze_and_excitation(6, 4),
        autoencoder(12, 8, 4),
        u_net(8, 4),
        transformer(4, 8, 2),
        quantised(cnn, samples, Form()),
        quantised(cnn, samples, Form(operators=True, activations="QUInt8", weights="QUInt8", per_channel=False)),
    ]


def node_tests() -> list[Any]:
    """Return the models of ONNX's node tests whose operators the reader knows."""
    tests = packaged_tests()
    return [test.model for test in tests if all(node.op_type in OPERATORS for node in test.model.graph.node)]


def changed(model: Any, models: Sequence[Any], choice: random.Random) -> Any:  # noqa: ANN401 - onnx has no types
    """Return a copy with one to three fields of its messages changed."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for _ in range(choice.choice((1, 1, 2, 3))):
        graph = result.graph
        choice.choice(
            (_change_node, _change_node, _change_attribute, _change_attribute, _change_shape, _change_tensor)
        )(graph, models, choice)
    if choice.random() < 0.1:
        result.opset_import[0].version = choice.choice(_NUMBERS)
    return result


def _change_node(graph: Any, models: Sequence[Any], choice: random.Random) -> None:  # noqa: ANN401
    if not graph.node:
        return
    node = choice.choice(graph.node)
    names = [name for each in graph.node for name in (*each.input, *each.output)]
    names += [each.name for each in (*graph.input, *graph.initializer)]
    kind = choice.randrange(7)
    if kind == 0:
        node.op_type = choice.choice(choice.choice(models).graph.node).op_type
    elif kind == 1 and node.input:
        node.input[choice.randrange(len(node.input))] = choice.choice([*names, "", "x" * 70_000])
    elif kind == 2:
        node.input.append(choice.choice([*names, ""]))
    elif kind == 3 and node.input:
        del node.input[choice.randrange(len(node.input))]
    elif kind == 4 and node.output:
        node.output[choice.randrange(len(node.output))] = choice.choice([*names, "", "a\nb"])
    elif kind == 5:
        graph.node.add().CopyFrom(choice.choice(choice.choice(models).graph.node))
    else:
        node.domain = choice.choice(("com.microsoft", "ai.onnx.ml", "", "x"))


def _change_attribute(graph: Any, models: Sequence[Any], choice: random.Random) -> None:  # noqa: ANN401
    nodes = [node for node in graph.node if node.attribute]
    if not nodes:
        return
    node = choice.choice(nodes)
    attribute = choice.choice(node.attribute)
    kind = choice.randrange(7)
    if kind == 0:
        attribute.i = choice.choice(_NUMBERS)
    elif kind == 1 and attribute.ints:
        attribute.ints[choice.randrange(len(attribute.ints))] = choice.choice(_NUMBERS)
    elif kind == 2:
        attribute.ints.append(choice.choice(_NUMBERS))
    elif kind == 3:
        attribute.f = choice.choice((0.0, -1.0, 1e38, float("inf"), float("nan"), 1e-45))
    elif kind == 4:
        attribute.s = choice.choice((b"", b"SAME_UPPER", b"linear", b"\xff\xfe", b"x" * 5000))
    elif kind == 5:
        attribute.type = choice.choice(range(15))
    else:
        others = [each for other in models[:40] for each in other.graph.node if each.attribute]
        node.attribute.add().CopyFrom(choice.choice(choice.choice(others).attribute))


def _change_shape(graph: Any, models: Sequence[Any], choice: random.Random) -> None:  # noqa: ANN401
    del models
    values = [*graph.input, *graph.output, *graph.value_info]
    if not values:
        return
    tensor = choice.choice(values).type.tensor_type
    kind = choice.randrange(4)
    if kind == 0 and tensor.shape.dim:
        choice.choice(tensor.shape.dim).dim_value = choice.choice(_NUMBERS)
    elif kind == 1 and tensor.shape.dim:
        choice.choice(tensor.shape.dim).dim_param = choice.choice(("N", "", "batch"))
    elif kind == 2:
        tensor.shape.dim.add().dim_value = choice.choice(_NUMBERS)
    else:
        tensor.elem_type = choice.choice(_TYPES)


def _change_tensor(graph: Any, models: Sequence[Any], choice: random.Random) -> None:  # noqa: ANN401
    del models
    if not graph.initializer:
        return
    tensor = choice.choice(graph.initializer)
    kind = choice.randrange(6)
    if kind == 0 and tensor.dims:
        tensor.dims[choice.randrange(len(tensor.dims))] = choice.choice(_NUMBERS)
    elif kind == 1:
        tensor.dims.append(choice.choice(_NUMBERS))
    elif kind == 2:
        tensor.data_type = choice.choice(_TYPES)
    elif kind == 3 and tensor.raw_data:
        data = bytearray(tensor.raw_data)
        data[choice.randrange(len(data))] = choice.randrange(256)
        tensor.raw_data = bytes(data)
    elif kind == 4:
        tensor.raw_data = tensor.raw_data[: choice.randrange(len(tensor.raw_data) + 1)]
    else:
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key = choice.choice(("location", "offset", "length"))
        entry.value = choice.choice(("../x", "/etc/passwd", "-1", "x", "99999999999999999999"))


def _prepare(make: Callable[[], list[Any]]) -> Callable[[Path], Check]:
    def prepare(folder: Path) -> Check:
        del folder
        models = make()
        seeds = [model.SerializeToString() for model in models]

        def check(choice: random.Random) -> bool:
            if choice.random() < 0.75:
                data = changed(choice.choice(models), models, choice).SerializeToString()
            else:
                data = mutate(choice.choice(seeds), seeds, choice)
            with refused():
                load(data, name="fuzz")
                return True
            return False

        return check

    return prepare


TARGETS = (
    Target(name="onnx", share=0.06, prepare=_prepare(graphs), rate=100),
    Target(name="onnx-nodes", share=0.03, prepare=_prepare(node_tests), rate=1000, sample=0),
)
