# SPDX-License-Identifier: Apache-2.0
"""The operators' rows state their traits; other modules ask for these instead of naming layer types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ferrule.graph import Array, DataType, Graph, LayerType
from ferrule.network.execution import run_graph
from ferrule.operators.operator import Operands, never
from ferrule.operators.table import OPERATORS, having
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layers import shared_case

PACKAGE = Path(__file__).parents[2] / "sdk" / "ferrule"
SHEETS = ("graph", "operators")
ROWS = ("backends", "codegen/acl", "formats")
"""The packages with a row for each operator, which says how it is read, written or computed; the latter may be code."""
OTHERS = {
    "optimizer/simplify/rectifiers.py": "it replaces a pattern of layers by a PRELU",
    "quantization/equalisation.py": "the types that keep the factor of a channel",
    "quantization/folding.py": "what each type that is affine by channels does with its constant",
    "quantization/own.py": "how each type that has integers of its own is quantised",
    "quantization/unrolling.py": "the layers of which a step of an LSTM consists",
    "quantization/rewriting.py": "as which layers each type without a kernel for its integers is written",
    "runtime/loading.py": "it runs the layers that transfer tensors, each in its own way",
}
"""The modules outside of them that name more than two layer types."""
OWN_SETS = {
    "backends/ethos_u/known_differences.py": "the arithmetic of the NPU that saturates",
    "backends/ethos_u/tables.py": "the layers that Vela compiles to tables",
    "backends/gpu_acc/workloads/rows.py": "an argument of its kernel",
    "formats/onnx/narrowing.py": "the types whose elements have the range of their inputs",
}
"""The modules with rows that have a set of layer types, which states a fact about their own code."""
SEEDS = range(4)


def modules(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules of some packages, by their path below `ferrule`, without the tests of backends."""
    for package in packages:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            if "tests" not in path.parts[len(PACKAGE.parts) :]:
                yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def named(node: ast.AST) -> set[str]:
    """Return the layer types that code names."""
    found = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
    return {each.attr for each in found if isinstance(each.value, ast.Name) and each.value.id == "LayerType"}


def test_no_module_names_three_types_but_sheets_and_rows() -> None:
    others = {name for name, tree in modules("") if len(named(tree)) > 2 and not name.startswith((*SHEETS, *ROWS))}
    assert others == set(OTHERS)


def test_rows_have_no_sets_that_state_a_trait() -> None:
    sets = ast.Set | ast.Tuple | ast.List
    found = {
        name
        for name, tree in modules(*ROWS)
        for node in ast.walk(tree)
        if isinstance(node, sets) and len(set().union(*(named(each) for each in node.elts if not deeper(each)))) > 2
    }
    assert found == set(OWN_SETS)


def deeper(node: ast.AST) -> bool:
    """Whether an element of a set is more than a layer type, as a part of a row is."""
    return not isinstance(node, ast.Attribute)


def cases(type_: LayerType) -> Iterator[tuple[Graph, list[Array], list[Array]]]:
    """Yield graphs of one layer with their inputs, constants included, and outputs; NaN are left out."""
    for dtype in DataType:
        for seed in SEEDS:
            graph, refusal = shared_case(type_, dtype, seed)
            if not refusal:
                inputs = random_inputs(graph, seed)
                values = dict(zip((info.name for info in graph.inputs), inputs, strict=True))
                (layer,) = graph.layers
                read = [values.get(name, graph.tensor(name).data) for name in layer.present_inputs]
                yield graph, [array for array in read if array is not None], run_graph(graph, inputs)


@pytest.mark.parametrize("type_", sorted(having(moves=True)))
def test_movements_have_elements_of_their_inputs(type_: LayerType) -> None:
    """All but at most one value of the outputs are elements of the inputs; a view has all of them in order."""
    for _, inputs, outputs in cases(type_):
        known = {element.tobytes() for array in inputs for element in array.reshape(-1)}
        made = {element.tobytes() for array in outputs for element in array.reshape(-1)}
        assert len(made - known) <= 1
        if OPERATORS[type_].view:
            assert outputs[0].tobytes() == inputs[0].tobytes()


@pytest.mark.parametrize("type_", sorted(having(elementwise=True)))
def test_elementwise_layers_compute_the_elements_in_any_order(type_: LayerType) -> None:
    for graph, inputs, outputs in cases(type_):
        (layer,) = graph.layers
        shape = graph.info(layer.outputs[0]).shape
        flat = [np.broadcast_to(array, shape).reshape(-1)[::-1] for array in inputs]
        operands = Operands.of(graph, layer)
        turned = replace(
            operands,
            inputs=tuple(replace(info, shape=flat[0].shape) for info in operands.inputs if info is not None),
            outputs=(replace(operands.output, shape=flat[0].shape),),
        )
        (found,) = OPERATORS[type_].kernel(layer.descriptor, turned, flat)
        assert_array_equal(found[::-1].reshape(shape), outputs[0])


def test_clamps_have_the_limits_of_their_activation() -> None:
    for type_ in set(OPERATORS) - having(clamp=None):
        for graph, (data,), (output,) in cases(type_):
            activation = OPERATORS[type_].clamp
            if graph.inputs[0].dtype is DataType.FLOAT32 and activation is not None:
                assert_array_equal(output, np.clip(data, *activation.limits))


@pytest.mark.parametrize("type_", sorted(set(OPERATORS) - having(is_identity=never)))
def test_identities_return_their_input(type_: LayerType) -> None:
    for graph, inputs, outputs in cases(type_):
        (layer,) = graph.layers
        operands = Operands.of(graph, layer)
        same = replace(operands.input(0), name="") == replace(operands.output, name="")
        if same and OPERATORS[type_].is_identity(layer.descriptor, operands):
            assert inputs[0].tobytes() == outputs[0].tobytes()


def test_weights_have_their_channels_on_the_stated_axis() -> None:
    for type_ in having(weighted=True):
        for graph, _, (output,) in cases(type_):
            axis = OPERATORS[type_].channel_axis
            assert axis is not None
            assert graph.info(str(graph.layers[0].inputs[1])).shape[axis] == output.shape[-1]


def test_a_query_names_a_trait() -> None:
    assert having(view=True) < having(moves=True)
    with pytest.raises(AttributeError, match="no_trait"):
        having(no_trait=True)
