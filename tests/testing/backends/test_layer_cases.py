# SPDX-License-Identifier: Apache-2.0
"""The random layers of the families: the values of each parameter and each axis, over many seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from golden import Golden

from ferrule.graph import DataType, LayerType
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case

SEEDS = range(100)
MOST = 8
"""Values that are listed one by one; of more, the lowest and the highest."""


def test_the_values_of_each_parameter(golden: Golden) -> None:
    golden.check("layer_cases.txt", "\n".join(line for type_ in LAYER_TYPES for line in _lines(type_)) + "\n")


def _lines(type_: LayerType) -> Iterator[str]:
    yield str(type_)
    found: dict[str, set[Any]] = {}
    for seed in SEEDS:
        for name, value in _values(type_, seed):
            found.setdefault(name, set()).add(value)
    for name, values in found.items():
        ordered = sorted(values, key=lambda value: (isinstance(value, str), value))
        listed = ordered if len(ordered) <= MOST else [ordered[0], "...", ordered[-1], f"({len(ordered)} values)"]
        yield f"    {name}: {' '.join(map(str, listed))}"


def _values(type_: LayerType, seed: int) -> Iterator[tuple[str, Any]]:
    graph = layer_case(type_, DataType.INT8, seed)
    (layer,) = graph.layers
    yield from _fields("", layer.descriptor)
    for place, name in enumerate(layer.present_inputs):
        info = graph.info(name)
        yield f"input {place} axes", len(info.shape)
        yield from ((f"input {place} axis {axis}", extent) for axis, extent in enumerate(info.shape))
        if info.quantization is not None:
            yield f"input {place} scales", len(info.quantization.scales)
            yield f"input {place} scale", round(info.quantization.scales[0], 6)
            yield f"input {place} zero point", info.quantization.zero_points[0]


def _fields(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - descriptors have fields of any type
    for field in fields(value):
        member = getattr(value, field.name)
        if is_dataclass(member):
            yield from _fields(f"{prefix}{field.name}.", member)
        else:
            yield prefix + field.name, member if isinstance(member, int | float) else str(member)
