# SPDX-License-Identifier: Apache-2.0
"""The operator contract, which every operator module of this package fulfils."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Descriptor, LayerType, Shape, TensorInfo
from ferrule.operators.sample import LayerSample


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """The tensor infos of a layer's inputs and outputs; None stands for an absent optional input."""

    inputs: tuple[TensorInfo | None, ...]
    outputs: tuple[TensorInfo, ...]

    def input(self, index: int) -> TensorInfo:
        """Return the info of a required input; UnsupportedError if the input is absent."""
        info = self.inputs[index] if index < len(self.inputs) else None
        if info is None:
            raise UnsupportedError(f"input {index} is absent, expected a tensor")
        return info

    @property
    def output(self) -> TensorInfo:
        """The first output."""
        return self.outputs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One row of the operator table.

    The callables take the operator's own descriptor; they are pure and never modify their arguments.
    """

    descriptor: type[Descriptor]
    type: LayerType
    infer: Callable[[Any, Sequence[TensorInfo | None]], tuple[Shape, ...]]
    """(descriptor, inputs) -> output shapes; UnsupportedError or ModelError names the mismatch."""
    check: Callable[[Any, Operands], None]
    """(descriptor, operands): UnsupportedError names the tensor, type or parameter that the kernel refuses."""
    kernel: Callable[[Any, Operands, Sequence[Array | None]], list[Array]]
    """(descriptor, operands, input arrays) -> output arrays; the reference that every backend must match."""
    macs: Callable[[Any, Operands], int] | None = None
    """(descriptor, operands) -> multiply-accumulates of one run; None if the operator is counted as having none."""
    sample: Callable[[LayerSample], None] | None = None
    """Draws a random layer for backend tests; None for layers that the runtime itself runs."""
