# SPDX-License-Identifier: Apache-2.0
"""ONNX models made of a few nodes, and their comparison with onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import onnxruntime_outputs

from ferrule import formats
from ferrule.graph import Array, LayerType
from ferrule.network import Network
from ferrule.network.bounds import outside, run_bounded
from ferrule.operators.arithmetic.error_bound import or_zeros
from ferrule.operators.arithmetic.running_error import Bounded

OPSET = 21
Tensors = Mapping[str, tuple[str, Sequence[int | str]]]
"""By name: the element type and the shape."""


def node(op: str, inputs: str, outputs: str, /, domain: str = "", **attributes: Any) -> Any:  # noqa: ANN401
    """Return a node; names are separated by spaces, and "-" stands for an absent input."""
    require_module("onnx", "pip install 'ferrule[onnx]'")
    from onnx import helper

    names = ["" if name == "-" else name for name in inputs.split()]
    results = outputs.split()
    return helper.make_node(op, names, results, name=f"{op}_{results[0]}", domain=domain, **attributes)


def model(
    nodes: Sequence[Any],
    inputs: Tensors,
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, npt.ArrayLike] | None = None,
    opset: int = OPSET,
) -> Any:  # noqa: ANN401
    """Return a model; outputs are declared without type and shape."""
    require_module("onnx", "pip install 'ferrule[onnx]'")
    from onnx import helper, numpy_helper

    arrays = {name: np.asarray(data) for name, data in (constants or {}).items()}
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [_described(name, dtype, shape) for name, (dtype, shape) in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(data, name) for name, data in arrays.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _described(name: str, dtype: str, shape: Sequence[int | str]) -> Any:  # noqa: ANN401
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def load(made: Any) -> Network:  # noqa: ANN401
    """Return the network of a model."""
    return formats.load(made.SerializeToString())


def drawn(network: Network, seed: int = 0) -> dict[str, Array]:
    """Return an array for each input: normally distributed floats, small integers, and any bools."""
    generator = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for info in network.inputs:
        if info.dtype.is_float:
            arrays[info.name] = generator.normal(size=info.shape).astype(info.dtype.numpy)
        else:
            arrays[info.name] = generator.integers(0, 2, info.shape).astype(info.dtype.numpy)
    return arrays


_LESS_ONE = {"BiasGelu", "Celu", "Elu", "Gelu", "Selu"}
"""Operators in which onnxruntime takes 1 off a number near it, or adds it, which leaves an error of the size of 1."""


def agrees(made: Any, inputs: Mapping[str, Array] | None = None, *, exact: bool = False) -> Network:  # noqa: ANN401
    """Assert that a model's network has the outputs of onnxruntime, with their names and types, and return it.

    Floats may be off as the bound of each element says, unless `exact`.
    """
    network = load(made)
    given = drawn(network) if inputs is None else inputs
    expected = onnxruntime_outputs(made, given)
    actual = network.run(given)
    assert [info.name for info in network.outputs] == [each.name for each in made.graph.output]
    for info, ours, theirs in zip(network.outputs, actual, expected, strict=True):
        assert ours.dtype == theirs.dtype, f"{info.name}: {ours.dtype}, expected {theirs.dtype}"
        assert ours.shape == theirs.shape, f"{info.name}: {ours.shape}, expected {theirs.shape}"
        if exact:
            assert_array_equal(ours, theirs)
    absolute = 2.0**-21 if _LESS_ONE & {node.op_type for node in made.graph.node} else 0.0
    for wanted, theirs in zip(run_bounded(network, given), expected, strict=True):
        wider = or_zeros(wanted.error, wanted.values) + absolute * (theirs.dtype.kind == "f")
        wrong = outside(theirs, Bounded(wanted.values, wider))
        assert not wrong.any(), f"{int(wrong.sum())} of {wrong.size} elements differ: {theirs[wrong][:3]}"
    return network


def count(network: Network, *types: LayerType) -> int:
    """Return the number of layers of the given types."""
    return sum(layer.type in types for layer in network.layers)
