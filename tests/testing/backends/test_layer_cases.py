# SPDX-License-Identifier: Apache-2.0
"""The random layers of the families: the values of each parameter and each axis, over many seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest
from golden import Golden

from ferrule.errors import ModelError
from ferrule.graph import DataType, Graph, LayerType, TensorInfo
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case
from ferrule.testing.backends.layers import refusal_of_reference, shared_case

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


@pytest.mark.parametrize("type_", LAYER_TYPES, ids=str)
def test_nothing_can_change_what_the_families_share(type_: LayerType) -> None:
    graph, refusal = shared_case(type_, DataType.INT8, 0)
    assert shared_case(type_, DataType.INT8, 0)[0] is graph
    fresh = layer_case(type_, DataType.INT8, 0)
    assert refusal == refusal_of_reference(fresh)
    assert [tensor.info for tensor in graph.tensors] == [tensor.info for tensor in fresh.tensors]
    _check_fixed(graph)


def _check_fixed(value: Any) -> None:  # noqa: ANN401 - descriptors have fields of any type
    match value:
        case Graph():
            with pytest.raises(ModelError, match="is finished"):
                value.add_input(TensorInfo("new", (1,), DataType.INT8))
            with pytest.raises(ModelError, match="is finished"):
                value.set_outputs(())
            _check_fixed((value.tensors, value.layers, value.states))
        case np.ndarray():
            assert not value.flags.writeable
        case tuple():
            for item in value:
                _check_fixed(item)
        case None | bool() | int() | float() | str() | Enum():
            pass
        case _:
            assert type(value).__dataclass_params__.frozen
            for field in fields(value):
                _check_fixed(getattr(value, field.name))
