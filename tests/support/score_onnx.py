# SPDX-License-Identifier: Apache-2.0
"""The scoreboard's suite of ONNX: the node tests of the package `onnx`, each a model of one node with its results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from score_cases import Case, Run, Suite

from ferrule import formats
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.formats.onnx.operators import OPERATORS
from ferrule.graph import Array
from ferrule.network import Network

_OTHERS = {
    "test_resize_downsample_scales_linear_align_corners": (
        "Resize: the test scales by the extent before it is rounded, onnxruntime and Ferrule by the rounded one"
    )
}
"""Tests with other results than onnxruntime's, which are Ferrule's."""
_ROUNDED = {"test_averagepool_2d_ceil_last_window_starts_on_pad": 1e-3}
"""Tests whose results were written down with fewer digits, and the tolerance that these need."""


@cache
def packaged_tests() -> tuple[Any, ...]:
    """Return all node tests of the package, which makes them once per process only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package computes infinities and NaN on purpose
        return tuple(load_model_tests(kind="node"))


def node_tests(_: Path) -> Iterator[Case]:
    """Return the tests whose nodes are all operators that the reader knows."""
    for test in sorted(packaged_tests(), key=lambda each: str(each.name)):
        keys = {node.op_type if not node.domain else f"{node.domain}.{node.op_type}" for node in test.model.graph.node}
        if keys and keys <= OPERATORS.keys():
            relative = _ROUNDED.get(test.name, 0.0)
            yield Case(name=test.name, make=partial(_case, test), relative=relative)


def _case(test: Any) -> tuple[Network, list[Run]]:  # noqa: ANN401 - onnx has no types
    """Return the network and its runs; inputs that must be constants get the values of the first run.

    The tests pass weights, axes and shapes as inputs of the graph, which exported models have as initialisers.
    """
    if reason := _OTHERS.get(test.name):
        raise UnsupportedError(reason)
    names = [value.name for value in test.model.graph.input]
    feeds = dict(zip(names, map(_array, test.data_sets[0][0]), strict=False))
    try:
        network, free = _load(test.model), names
    except FerruleError as error:
        free = names[:1]
        if len(names) == 1:
            raise
        try:
            network = _load(_with_constants(test.model, {name: feeds[name] for name in names[1:] if name in feeds}))
        except FerruleError:
            raise error from None
    runs = []
    for inputs, outputs in test.data_sets:
        given = dict(zip(names, map(_array, inputs), strict=False))
        run = Run([given[name] for name in free], list(map(_array, outputs)))
        if not all(array.size for array in (*run.inputs, *run.outputs)):
            raise UnsupportedError("a tensor is empty, expected one element or more")
        runs.append(run)
    return network, runs


def _load(model: Any) -> Network:  # noqa: ANN401
    return formats.load(model.SerializeToString())


def _with_constants(model: Any, values: dict[str, Array]) -> Any:  # noqa: ANN401
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    kept = [value for value in changed.graph.input if value.name not in values]
    del changed.graph.input[:]
    changed.graph.input.extend(kept)
    changed.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in values.items())
    return changed


def _array(value: Any) -> Array:  # noqa: ANN401
    return np.asarray(value if not hasattr(value, "SerializeToString") else numpy_helper.to_array(value))


def _version(_: Path) -> str:
    return f"onnx {onnx.__version__}"


NODES = Suite(
    name="onnx",
    title="ONNX's node tests",
    variable="",
    source="",
    least=250,
    cases=node_tests,
    version=_version,
)
