# SPDX-License-Identifier: Apache-2.0
"""What stands in a TensorFlow Lite file, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ferrule.graph import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationRecord:
    """The quantisation of a tensor; all empty where it has none."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    custom: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRecord:
    """A tensor as the file has it, unchecked but for its offsets."""

    index: int
    name: str
    """Unique, not empty and printable."""
    type: int
    """A number of the schema's enum TensorType."""
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    buffer: int
    quantization: QuantizationRecord
    is_variable: bool
    is_sparse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecord:
    """An operator as the file has it."""

    index: int
    type: str
    """A name of the schema's enum BuiltinOperator, or a number that the schema lacks."""
    custom_code: str
    inputs: tuple[int, ...]
    """Tensor indices; -1 stands for an absent optional input."""
    outputs: tuple[int, ...]
    options_kind: int
    """A number of the schema's union BuiltinOptions; 0 without options."""
    options: Any
    """The accessor of that union's table; None if its kind is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """A file's one subgraph."""

    buffers: tuple[Array | None, ...]
    """Bytes (uint8, read-only views of the file), None where a buffer is empty."""
    tensors: tuple[TensorRecord, ...]
    operators: tuple[OperatorRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
