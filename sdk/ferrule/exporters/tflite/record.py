# SPDX-License-Identifier: Apache-2.0
"""What stands in a TensorFlow Lite file, before it becomes bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferrule.graph import LayerType, Tensor

OptionValue = bool | int | float | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One member of the schema's union BuiltinOptions."""

    table: str
    """The table's name in the schema; "" stands for no options."""
    fields: Mapping[str, OptionValue] = field(default_factory=dict)
    """By the schema's names, in camel case."""


NO_OPTIONS = Options(table="")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecord:
    """One operator; tensors by name, None for an absent optional input."""

    type: LayerType
    version: int
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    options: Options = NO_OPTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """One model with one subgraph; tensors and operators in the order of the file."""

    name: str
    description: str
    tensors: tuple[Tensor, ...]
    operators: tuple[OperatorRecord, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
