# SPDX-License-Identifier: Apache-2.0
"""The rules by which programs that run TensorFlow Lite models round.

A model does not state a rule. TensorFlow Lite Micro's is the default; LiteRT's were measured, operator by operator, by
benchmarks/rounding_rules.py (docs/operators.md has the table).
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.errors import FerruleError
from ferrule.graph import DataType, Graph, Layer, LayerType, Rounding
from ferrule.operators.table import having

VERSIONS: Mapping[str, frozenset[LayerType]] = {"tflm": frozenset(), "litert-2.3": having(weighted=True)}
"""By name of a version: the layers of int8 with constant weights that round by ONNX's rule; all others are TFLM's."""


def check_version(name: str) -> None:
    """Raise FerruleError if there is no version of this name."""
    if name not in VERSIONS:
        raise FerruleError(f"there is no rounding '{name}', expected {' or '.join(VERSIONS)}")


def rule_of(version: str, graph: Graph, layer: Layer) -> Rounding:
    """Return the rule of a layer whose inputs the graph has, by a version of `VERSIONS`."""
    if layer.type not in VERSIONS[version] or layer.inputs[0] is None or layer.inputs[1] is None:
        return Rounding.TFLM
    narrow = graph.info(layer.inputs[0]).dtype is DataType.INT8
    return Rounding.ONNX if narrow and graph.tensor(layer.inputs[1]).data is not None else Rounding.TFLM
